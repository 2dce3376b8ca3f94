"""Numerical methods for ordinary differential equations on tensors; imports nothing from rkcnn.model."""
