"""Products of a few rows of X with weights of four bits, where the weights' bytes are the time."""
