"""Versions of JAX and XLA as loaded, and the flags that change what XLA compiles."""

import os
from importlib.metadata import PackageNotFoundError, version

import jax

from backends.variables import variables
from suite.backend import Fact
from suite.targets.names import XLA

# What changes a compiled program: that none is set is recorded too, for a run without is then another one.
FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "JAX_DEFAULT_MATMUL_PRECISION")
NOT_SET = "not set"
SETTINGS = ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
PACKAGES = ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm7-plugin", "libtpu")


def jax_facts(device: jax.Device) -> dict[str, Fact]:
    """Facts that every JAX device shares."""
    packages = {name.replace("-", "_"): _package(name) for name in PACKAGES}
    flags = {name.lower(): Fact.measured(NOT_SET) for name in FLAGS}
    found = variables(XLA) | {name: os.environ[name] for name in SETTINGS if os.environ.get(name)}
    settings = {name.lower(): Fact.measured(value) for name, value in found.items()}
    return {
        **packages,
        **flags,
        **settings,
        "jax_platform": Fact.measured(str(device.platform)),
        "jax_device_kind": Fact.measured(str(device.device_kind)),
        "jax_runtime": Fact.measured(" ".join(str(device.client.platform_version).split())),
        # With it, a compile time may be that of reading what an earlier process compiled.
        "jax_compilation_cache": Fact.measured("on" if jax.config.jax_compilation_cache_dir else "off"),
        "jax_enable_x64": Fact.measured(bool(jax.config.read("jax_enable_x64"))),
    }


def _package(name: str) -> Fact:
    try:
        return Fact.measured(version(name))
    except PackageNotFoundError:
        return Fact.unavailable(f"{name} is not installed")
