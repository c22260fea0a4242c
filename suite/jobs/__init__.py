"""One file a job: its axes, work model, tolerance and what it reports."""
