"""Readers of a device's state, behind the contract ``suite.backend.Telemetry``."""
