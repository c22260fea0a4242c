"""Processes that the kernel has killed for lack of memory: a process that is killed so leaves no words of its own."""

from pathlib import Path


def oom_kill_count(root: Path = Path("/")) -> int:
    """Processes the kernel has killed for lack of memory: in this process's control group, or on the whole machine.

    0 where neither counter can be read.
    """
    for path in [*_cgroup_counters(root), root / "proc/vmstat"]:
        count = _counter(path)
        if count is not None:
            return count
    return 0


def _cgroup_counters(root: Path) -> list[Path]:
    """Counter files of this process's control group, versions 2 and 1, where the host or the container has them."""
    paths = []
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, group = line.split(":", 2)
        inside = group.lstrip("/")
        if not controllers:
            paths += [root / "sys/fs/cgroup" / inside / "memory.events", root / "sys/fs/cgroup/memory.events"]
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            paths += [base / inside / "memory.oom_control", base / "memory.oom_control"]
    return paths


def _counter(path: Path) -> int | None:
    for line in _lines(path):
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
