"""A decode step of a whole model on torch devices, and the streaming of its weights alone.

Weights are n x k, as Linear layers store them.  Every layer has matrices of its own, so that no launch finds them in a cache.
"""

from backends.torch.decode_step.preparing import prepare
from backends.torch.decode_step.refusals import reason

__all__ = ["prepare", "reason"]
