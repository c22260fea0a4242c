"""Spec sheets, device matching, and what fits on a device."""
