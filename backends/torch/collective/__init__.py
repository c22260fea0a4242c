"""Collectives of torch.distributed: ranks that are children of the worker, and the kernel that has them move data together.

The worker is no rank.  It starts a crew of them, tells all the same and waits until all have answered, so that for the launcher
a case over many ranks is a case like any other: the deadline of a phase kills the worker's process group, ranks included, and
whatever a rank ends with becomes the outcome of that case.
"""

from backends.torch.collective.port import prepare, reason, sampler

__all__ = ["prepare", "reason", "sampler"]
