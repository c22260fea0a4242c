"""Which device a part measures: a backend by its name or as ``module:Class``, with its first device selected."""

from collections.abc import Mapping
from typing import Any

from suite.backend import Backend
from suite.worker.serve import made

TARGETS = {"cuda": "backends.cuda:CudaBackend", "cpu": "backends.cpu:CpuBackend", "xla": "backends.xla:XlaBackend"}


def selected(name: str, options: Mapping[str, Any] | None = None) -> Backend:
    """Load a backend and select its first device; raises what the backend raises where there is none."""
    backend: Backend = made(TARGETS.get(name, name), dict(options or {}))
    backend.select(0)
    return backend
