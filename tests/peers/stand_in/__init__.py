"""Peers and devices that follow a script, for testing the parts without a GPU."""
