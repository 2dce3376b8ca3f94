"""Trained networks that come with the package: NETWORK.SET.safetensors, what reads them, and what puts them here."""
