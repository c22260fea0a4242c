"""The process that holds a framework and a device: ``python -m suite.worker``, started by the launcher only."""
