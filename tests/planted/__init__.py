"""Real backends with faults planted in chosen shapes."""
