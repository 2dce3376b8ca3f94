"""Reads records and the paper's numbers, compares them, and writes tables, figures and pages. Imports no torch."""
