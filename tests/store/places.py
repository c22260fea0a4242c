"""Places where a store cannot be written, also for root, whom permission bits do not stop."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def unwritable(path: Path) -> Iterator[None]:
    """A file or folder that nobody can change: by its mode, or for root by the immutable attribute."""
    if os.geteuid() != 0:
        mode = path.stat().st_mode
        path.chmod(mode & ~0o222)
        try:
            yield
        finally:
            path.chmod(mode)
        return
    _or_skip("chattr", "+i", str(path))
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    """A file system of its own with so much room."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system; the file-size limit is tested for everyone")
    path.mkdir()
    _or_skip("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def _or_skip(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{' '.join(command)}: {done.stderr.strip()}")
