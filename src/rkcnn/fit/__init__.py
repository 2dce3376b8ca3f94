"""Training: recipes, the training loop, engines and checkpoints. Nothing here can read test images."""
