"""Products of few rows with weights that are read once and never again, and what a decode step puts into their launches."""
