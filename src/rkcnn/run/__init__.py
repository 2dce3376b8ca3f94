"""The corridor: data -> model -> train -> evaluate -> record. The only room that knows them all."""
