"""What is compiled for targets that need not be there, in a process that may die of it: ``python -m backends.targets``."""
