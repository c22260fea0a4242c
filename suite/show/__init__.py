"""Rows, runs and devices as text for a terminal, or as plain lines where there is none."""
