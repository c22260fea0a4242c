"""Limits that a container sets on memory and CPU time, for control groups of version 1 and 2."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def memory_limit_bytes(root: Path = ROOT) -> int | None:
    """The smallest memory limit on this process's path of control groups; ``None`` where there is none."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [limit for group in _groups(root, "memory") for name in names if (limit := _integer(group / name)) is not None]
    return min(limits, default=None)


def memory_left_bytes(root: Path = ROOT) -> int | None:
    """What may still be allocated before a limit is met; file cache that the kernel would give back is not counted as used."""
    left = []
    for group in _groups(root, "memory"):
        for limit_name, usage_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, usage = _integer(group / limit_name), _integer(group / usage_name)
            if limit is not None and usage is not None:
                left.append(max(0, limit - (usage - _reclaimable_bytes(group))))
    return min(left, default=None)


def cpu_quota(root: Path = ROOT) -> float | None:
    """CPUs' worth of time that this process may use (2.5 means two and a half CPUs); ``None`` where there is no quota."""
    quotas = [quota for group in _groups(root, "cpu") if (quota := _quota(group)) is not None]
    return min(quotas, default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Every group directory from this process's own up to the mount, for version 2 and for one controller of version 1."""
    for path, mount in _memberships(root, controller):
        group = mount / path.lstrip("/")
        while True:
            yield group
            if group == mount or mount not in group.parents:
                break
            group = group.parent


def _memberships(root: Path, controller: str) -> Iterator[tuple[str, Path]]:
    mounts = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield path, mounts / "unified" if (mounts / "unified").is_dir() else mounts
        elif controller in controllers.split(","):
            yield path, mounts / controller


def _quota(group: Path) -> float | None:
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        quota_us, period_us = _integer(group / "cpu.cfs_quota_us"), _integer(group / "cpu.cfs_period_us")
    return quota_us / period_us if quota_us is not None and quota_us > 0 and period_us else None


def _reclaimable_bytes(group: Path) -> int:
    try:
        fields = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(fields.get("total_inactive_file", fields.get("inactive_file", 0)))


def _integer(path: Path) -> int | None:
    """A file's number; ``None`` where it is missing, unreadable or ``max``."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
