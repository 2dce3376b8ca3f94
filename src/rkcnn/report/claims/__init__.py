"""The paper's claims, and what the records say about them."""
