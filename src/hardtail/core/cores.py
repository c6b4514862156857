"""Processor cores shared with others: how many this process may really use."""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def usable_cores(groups: Path = GROUPS, own: Path = OWN_GROUPS) -> int:
    """At least 1. A quota of 1.5 cores counts as 2: workers that never wait for each other use all of it."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(min([cores, *(math.ceil(quota) for quota in _quotas(groups, own))]), 1)


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """The limits of this process's control groups and of those around them, in cores."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2: one tree for everything
            for folder in _upwards(groups, path):
                quota, period = _words(folder / "cpu.max", 2)
                yield from _share(quota, period)
        elif "cpu" in controllers.split(","):
            for folder in _upwards(groups / controllers, path):
                (quota,), (period,) = _words(folder / "cpu.cfs_quota_us", 1), _words(folder / "cpu.cfs_period_us", 1)
                yield from _share(quota, period)


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """A group's folder and those above it; inside a container only the root may be there."""
    inner = PurePosixPath(path.lstrip("/"))
    return (root / folder for folder in (inner, *inner.parents))


def _words(file: Path, count: int) -> list[str]:
    """The words of a file; empty ones if it has another number of them or cannot be read."""
    try:
        words = file.read_text().split()
    except OSError:
        words = []
    return words if len(words) == count else [""] * count


def _share(quota: str, period: str) -> Iterator[float]:
    """Nothing if there is no limit: "max" in version 2, -1 in version 1."""
    if quota.isdecimal() and period.isdecimal() and int(period):
        yield int(quota) / int(period)
