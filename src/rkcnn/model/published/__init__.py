"""The published originals that the paper quotes, each as its own authors built it."""
