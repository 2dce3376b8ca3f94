"""What happened: runs and their results as JSON; imports no torch."""
