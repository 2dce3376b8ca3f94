"""Training one network or several: recipes, the training loop, engines and checkpoints. It can't reach a test set."""
