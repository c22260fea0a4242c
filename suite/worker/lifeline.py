"""A child process that never outlives its parent."""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def bind_to_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends, however that ends; leave at once if it already has.

    The kernel watches the parent's *thread* that made this process, so that thread must live as long as the parent
    needs the child.  Linux only: elsewhere a child leaves when its connection closes.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:  # it ended between our start and the call above, and the signal will never come
        os._exit(1)


def leave_no_core() -> None:
    """Write no core file: a crash is an expected outcome, and a core of a GPU process takes gigabytes and minutes."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
