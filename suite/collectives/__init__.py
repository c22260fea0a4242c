"""Collectives as arithmetic: what they move, which algorithms exist, how a library is forced and read, what is predicted."""
