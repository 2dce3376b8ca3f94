"""Other code for the same networks, given our weights. None of it is part of rkcnn: it is installed, or a checkout."""
