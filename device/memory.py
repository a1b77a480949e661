"""How much main memory there is, for the host as a device and for all that is checked ahead."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

#: Of the libraries of USD [bytes], most of it for threads; without it they crash.
USD_ADDRESSES = 2 * 10**9


def main_memory() -> tuple[int, int]:
    """Return (available, total) bytes of main memory, within limits of container and process."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            sizes = dict(line.split(":", 1) for line in lines)
        available, total = (int(sizes[key].split()[0]) * 1024
                            for key in ("MemAvailable", "MemTotal"))
    except (OSError, KeyError, ValueError):
        available = total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit, used in (container_memory(), process_memory()):
        available, total = min(available, max(0, limit - used)), min(total, limit)
    return available, total


def process_memory() -> tuple[int, int]:
    """Return (limit, used) bytes of this process's addresses, as ``ulimit -v`` sets them.

    Where nothing is limited, the limit is the largest that there can be.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize, 0
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return limit, 0
    return limit, pages * os.sysconf("SC_PAGE_SIZE")


def require_addresses(needed: int, what: str) -> None:
    """Raise MemoryError if a limit leaves less than ``needed`` bytes to a library that asks for it.

    Some do not look whether they got what they asked for.
    """
    limit, used = process_memory()
    if limit - used < needed:
        raise MemoryError(f"{what} takes {needed / 1e9:.1f} GB of addresses, but the limit of "
                          f"this process (ulimit -v) leaves {(limit - used) / 1e9:.1f} GB")


def container_memory(folder: Path = Path("/sys/fs/cgroup")) -> tuple[int, int]:
    """Return (limit, used) bytes of this container; file cache that can be dropped is not used.

    Where nothing is limited, the limit is the largest that there can be.
    """
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        stat = (folder / "memory.stat").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return sys.maxsize, 0
    cache = dict(zip(stat[::2], stat[1::2], strict=False)).get("inactive_file", "0")
    return int(limit) if limit.isdigit() else sys.maxsize, max(0, used - int(cache))
