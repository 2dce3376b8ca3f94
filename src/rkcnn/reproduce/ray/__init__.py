"""Trains the runs of a table on a Ray cluster."""
