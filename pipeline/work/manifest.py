"""What a stage has made: one JSON file beside its results.

A manifest lists the files of a stage with the fingerprint of what each was made from, the hash
and size of what was written, and the device that made it. A file whose bytes differ from the
listed hash is not trusted; one that is not listed, since the manifest was lost or a run was
killed before it could list it, is known by the fingerprint it carries. Several processes may
add to one manifest: each update reads, changes and publishes it under a lock.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vfx.pipeline.work.cache import Published, locked, publish_bytes
from vfx.pipeline.work.seal import read_regular

FILE_NAME = "manifest.json"
LOCK_NAME = ".manifest.lock"


class State(enum.Enum):
    """How far a result can be trusted."""

    DONE = "done"          # made from just the present inputs, its bytes as they were written
    STALE = "stale"        # made from other inputs
    DAMAGED = "damaged"    # its bytes have changed since
    MISSING = "missing"


@dataclass(frozen=True)
class Entry:
    """One file of a stage: what it was made from, what was written, and by which device."""

    fingerprint: str
    published: Published
    device: str


@dataclass
class Manifest:
    """The files of one stage by name; ``fault`` is "missing" or "damaged" if it was not read."""

    stage: str
    version: int
    files: dict[str, Entry] = field(default_factory=dict)
    fault: str = ""

    def to_json(self) -> str:
        """Return the manifest as readable JSON."""
        files = {
            name: {"fingerprint": entry.fingerprint, "hash": entry.published.hash,
                   "size": entry.published.size, "time": entry.published.time,
                   "device": entry.device}
            for name, entry in sorted(self.files.items())}
        return json.dumps(
            {"stage": self.stage, "version": self.version, "files": files}, indent=1) + "\n"


def read_manifest(folder: Path, stage: str, version: int) -> Manifest:
    """Return the manifest of a stage's folder; an absent or damaged one lists nothing."""
    try:
        document = json.loads(read_regular(folder / FILE_NAME))
        files = {name: _entry(table) for name, table in document["files"].items()}
    except (FileNotFoundError, NotADirectoryError):
        return Manifest(stage, version, fault="missing")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Manifest(stage, version, fault="damaged")
    return Manifest(stage, version, files)


def update_manifest(
    folder: Path, stage: str, version: int, change: Callable[[dict[str, Entry]], None]
) -> Manifest:
    """Apply ``change`` to the file list of a stage's manifest, and publish it."""
    with locked(folder / LOCK_NAME):
        manifest = read_manifest(folder, stage, version)
        manifest.fault = ""
        change(manifest.files)
        publish_bytes(folder / FILE_NAME, manifest.to_json().encode())
    return manifest


def _entry(table: dict[str, Any]) -> Entry:
    numbers = (table["size"], table.get("time", 0))
    words = (table["fingerprint"], table["hash"], table["device"])
    if not (all(isinstance(number, int) for number in numbers)
            and all(isinstance(word, str) for word in words)):
        raise TypeError("an entry of the manifest is malformed")
    return Entry(words[0], Published(words[1], *numbers), words[2])
