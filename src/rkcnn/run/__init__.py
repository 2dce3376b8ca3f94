"""Carrying out runs: from data and a network's name to a result on disk."""
