"""The rivals, one a file: each is what happens inside a period of the one frame."""
