"""One forward pass: specifications, the one frame, its steps, and what they cost."""
