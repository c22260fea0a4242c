"""How the process of a rank ended, in words that follow its name."""

import signal


def ended(status: int | None) -> str:
    """``died with SIGKILL``, ``left with status 1``; ``ended`` where nobody knows the status."""
    if status is None:
        return "ended"
    return f"died with {_signal_name(-status)}" if status < 0 else f"left with status {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"signal {number}"
