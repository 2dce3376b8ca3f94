"""The rivals, each in a file of its own: what happens inside a period of the one frame."""
