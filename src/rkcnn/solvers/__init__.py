"""Numerical methods for ordinary differential equations, on tensors; this room knows no layers."""
