"""What is read off records and the paper; imports no torch."""
