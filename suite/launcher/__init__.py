"""Starts a worker per device slot, feeds it cases, and turns exit codes, signals and deadlines into outcomes."""
