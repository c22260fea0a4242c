"""What runs on XLA through JAX: programs, their data, and how they are timed."""
