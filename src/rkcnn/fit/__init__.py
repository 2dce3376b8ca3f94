"""One fit: recipes, the engine, checkpoints. Has no way to reach a test set."""
