"""Trained networks that come with the package: NAME.SET.safetensors, what reads them, and what puts them here."""
