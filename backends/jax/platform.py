"""Starting JAX in a worker: which platform it computes on, and what has to be set before its first device exists."""

import os
import re
from collections.abc import Sequence

import jax

from backends.jax.flags import refuse_wrong_flags
from suite.errors import DeviceNotFound

PLATFORMS = ("auto", "cpu", "cuda", "rocm", "tpu")
# Read once, when the first client is made.  Reserving most of the memory would leave none to whoever measures beside it,
# and would hide what a case needs.
SETTINGS = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "2"}
# JAX gives itself three quarters of what is free; cases are planned for nearly all of it.
FRACTION, OLD_FRACTION, NEARLY_ALL = "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION", "0.95"

NARROWING = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")  # by which a user says where JAX may look
_JAXS_REMEDY = re.compile(r" *\(set JAX_PLATFORMS=.*\)")


def start(platform: str) -> Sequence[jax.Device]:
    """The devices of ``platform``, or of JAX's own choice for ``auto``; with 64-bit types, which JAX leaves out by default.

    Raises ``DeviceNotFound`` in JAX's words where the platform has none, ``UsageError`` in XLA's over its flags.
    """
    refuse_wrong_flags()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if OLD_FRACTION not in os.environ:  # JAX refuses both
        os.environ.setdefault(FRACTION, NEARLY_ALL)
    jax.config.update("jax_enable_x64", True)
    try:
        return tuple(jax.local_devices(backend=None if platform == "auto" else platform))
    except (RuntimeError, AssertionError) as error:
        raise DeviceNotFound(_no_device(platform, _told(error))) from error


def _no_device(platform: str, why: str) -> str:
    given = {name: value for name in NARROWING if (value := os.environ.get(name))}
    if not given:
        return f"JAX finds no device for platform {platform}: {why}"
    under = " and ".join(f"{name}={value}" for name, value in given.items())
    wanted = platform if platform != "auto" else next(iter(given.values()))
    return (
        f"JAX finds no device for platform {platform} under {under}: {why}; unset {' and '.join(given)}, or install JAX for "
        f"{wanted}"
    )


def _told(error: Exception) -> str:
    """JAX's own words; it has none where every platform that ``JAX_PLATFORMS`` names is one of its own without a device."""
    if not str(error):
        return "none is left"
    last = ": ".join(str(error).splitlines()[0].partition(". Available backends")[0].split(": ")[-2:])
    return _JAXS_REMEDY.sub("", last).rstrip(". ")


def kind_of(device: jax.Device) -> str:
    """``cpu``, ``cuda``, ``rocm`` or ``tpu``: JAX calls NVIDIA's and AMD's GPUs ``gpu`` alike."""
    if device.platform != "gpu":
        return str(device.platform)
    return "rocm" if "rocm" in str(device.client.platform_version).lower() else "cuda"
