"""``XLA_FLAGS`` looked at before XLA does, which ends the process over a flag that it does not know."""

import os
import re
import subprocess
import sys

from suite.errors import DeviceNotFound

NAME = "XLA_FLAGS"
# XLA reads its flags when the first options of a compilation are made, long before there is a device.  Where a version of
# jaxlib has nothing of this name, nothing is found out.
_CODE = "from jaxlib import _jax\nif hasattr(_jax, 'CompileOptions'): _jax.CompileOptions()"
_LIMIT_S = 60.0
_MOST_SHOWN, _MOST_SAID = 160, 240  # characters
_SAID = re.compile(r"^[EF]\d{4} [\d:.]+ +\d+ \S+\] (.+)$", re.MULTILINE)  # as absl's log begins a line


def refuse_wrong_flags() -> None:
    """``DeviceNotFound`` with XLA's words where it does not take ``XLA_FLAGS``."""
    if said := wrong_flags():
        given = os.environ[NAME]
        shown = given if len(given) <= _MOST_SHOWN else f"{given[: _MOST_SHOWN - 1]}…"
        raise DeviceNotFound(f"XLA does not take {NAME}={shown}: {said}; correct it, or unset {NAME}")


def wrong_flags() -> str:
    """What XLA has against ``XLA_FLAGS``, empty where nothing; a child process asks, for XLA would end this one."""
    if not os.environ.get(NAME):
        return ""
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _CODE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it was not read within {_LIMIT_S:g} s"
    said = _SAID.search(asked.stderr.decode(errors="replace"))
    return said[1].rstrip(".")[:_MOST_SAID] if asked.returncode and said else ""
