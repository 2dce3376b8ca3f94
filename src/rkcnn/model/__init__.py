"""The networks: their names, the frame they share, the steps that set them apart, and what they cost."""
