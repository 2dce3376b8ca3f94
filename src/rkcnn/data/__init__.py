"""Pixels: data sets by name, where their files come from, and batches as a function of (seed, epoch)."""
