"""Hydra groups: job, backend, measure, experiment, store, launcher and hardware."""
