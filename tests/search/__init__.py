"""The search for the fastest product."""
