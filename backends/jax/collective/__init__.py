"""Collectives of XLA: one program over a mesh of devices, in a process that has as many of them as there are ranks.

A CPU is one device to JAX unless it is told otherwise before it starts, and told so it shares its threads out differently: the
devices of a world are another process's, a child of the worker, which dies with it and is exchanged for another world.
"""

from backends.jax.collective.port import prepare, reason, sampler

__all__ = ["prepare", "reason", "sampler"]
