"""Timing single launches by the host's clock, whatever framework launches."""
