"""Finding the fastest matrix product of a device: few shapes are looked at, fewer for longer, and the best are measured."""
