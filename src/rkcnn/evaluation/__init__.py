"""Questions asked of a trained network."""
