"""Evaluates trained networks: predictions, metrics with their intervals and tests, weight files and GPU memory."""
