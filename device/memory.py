"""How much main memory there is, for the host as a device and for all that is checked ahead."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main_memory() -> tuple[int, int]:
    """Return (available, total) bytes of main memory, within a container's limit."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            sizes = dict(line.split(":", 1) for line in lines)
        available, total = (int(sizes[key].split()[0]) * 1024
                            for key in ("MemAvailable", "MemTotal"))
    except (OSError, KeyError, ValueError):
        available = total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, used = container_memory()
    return min(available, max(0, limit - used)), min(total, limit)


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
