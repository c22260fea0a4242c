"""``XLA_FLAGS`` looked at before XLA does, which ends the process over a flag that it does not know."""

import os
import subprocess
import sys

from suite.errors import UsageError
from suite.reason import logged_error, shortened

NAME = "XLA_FLAGS"
# XLA reads its flags when the first options of a compilation are made, long before there is a device.  Where a version of
# jaxlib has nothing of this name, nothing is found out.
_CODE = "from jaxlib import _jax\nif hasattr(_jax, 'CompileOptions'): _jax.CompileOptions()"
_LIMIT_S = 60.0
_MOST_SHOWN, _MOST_SAID = 160, 240  # characters


def refuse_wrong_flags() -> None:
    """``UsageError`` with XLA's words where it does not take ``XLA_FLAGS``."""
    if said := wrong_flags():
        given = shortened(os.environ[NAME], _MOST_SHOWN)
        raise UsageError(f"XLA does not take {NAME}={given}: {said}; correct it, or unset {NAME}")


def wrong_flags() -> str:
    """What XLA has against ``XLA_FLAGS``, empty where nothing; a child process asks, for XLA would end this one.

    A child that takes too long, as its first import from a slow disk may, has found nothing out.
    """
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
        return ""
    said = next(filter(None, map(logged_error, asked.stderr.decode(errors="replace").splitlines())), "")
    return shortened(said.rstrip("."), _MOST_SAID) if asked.returncode else ""
