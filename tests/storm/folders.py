"""Folders: every command, with names that hurt, for the shot, its work folder and its files.

A command either does what it says, with the same bits as under a plain name, or refuses in a
readable sentence.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from .case import QUICK, Case
from .plate import LAST, Reference, make_reference, write_shot
from .verdict import differences

_NAMES = (
    "a b", " lead", "trail ", "it's", 'say "so"', "new\nline", "tab\there", "back\\slash", "$HOME",
    "$(id)", "`id`", "a;b", "a&b", "a|b", "*", "?", "[a]", "{a,b}", "~", "#", "%s", "%04d", "%",
    "!", "-dash", "--work", "...", ".hidden", "ü", "e\u0301", "\u00e9", "日本", "😀", "\u202egnp",
    "\udcff", "caf\udce9", "\x01", "\x1b[31m", "\r", "x" * 200, "x" * 255, "ü" * 127, "é\u200b",
    "a/b/c", "d/" * 40 + "e", "work", "render", "con", "a:b", "a,b", "a=b", "1001-1003",
    "plate.toml",
)
#: Work folders that are none, or nobody's.
_PLACES = (
    "/proc/self/x", "/proc/1/x", "/dev/null", "/dev/null/x", "/dev/fd/9", "sky.exr", "plate.toml",
    "plate.toml/x", ".", "no/such/folder", "loop", "dead", "x" * 300, "y/" * 3000, "", " ")


def prepare(ground: Path) -> Reference:
    """Make the run that all are compared with."""
    return make_reference(ground)


def play(case: Case, reference: Reference) -> None:
    """Put the shot under one name, its work folder under another, and use them."""
    holder = case.root / "shot"
    folder, work = _name(case), _name(case)
    stem = _name(case).replace("/", "-")[:200] if case.random.random() < 0.5 else "plate"
    is_linked = case.random.random() < 0.15
    try:
        (holder / folder).mkdir(parents=True, exist_ok=True)
        write_shot(holder / folder)
        case.shot = holder / folder / f"{stem}.toml"
        (holder / folder / "plate.toml").rename(case.shot)
        if is_linked:
            (holder / "link").symlink_to(holder / folder)
            case.shot = holder / "link" / case.shot.name
        case.work = holder / work if case.random.random() < 0.8 else case.work / "deep" / "er"
        if case.random.random() < 0.6:
            shutil.copytree(reference.work, case.work, dirs_exist_ok=True)
            (case.work / f"render/plate.{LAST}.exr").unlink()
    except OSError:
        case.tally["no such name here"] += 1
        return
    if case.number % 8 == 0:
        _nowhere(case)
        return
    relative = case.random.random() < 0.5
    case.tell(f"shot {str(case.shot)!r}, work {str(case.work)!r}")
    words = {"shot": os.path.relpath(case.shot, holder) if relative else str(case.shot),
             "work": os.path.relpath(case.work, holder) if relative else str(case.work)}
    commands = [_run, _run, _look, _look, _look, _write]
    case.random.choice(commands)(case, words, reference)


def _nowhere(case: Case) -> None:
    """Give a work folder that can be none: it is refused, and nothing is written there."""
    folder = case.shot.parent
    (folder / "loop").symlink_to("loop")
    (folder / "dead").symlink_to("nowhere/at/all")
    place = case.random.choice(_PLACES)
    command = case.random.choice([("run", *QUICK), ("check",), ("status",), ("review",),
                                  ("clean", "--stage", "geometry"), ("export", "--to", "obj"),
                                  ("submit", "--farm", "slurm", "--no-start")])
    outcome = case.take(case.start(command[0], *command[1:], "--work", place, "--", case.shot.name,
                                   folder=folder, **_open(case)))
    case.tally["accepted" if outcome.code == 0 else "refused"] += 1


def _run(case: Case, words: dict[str, str], reference: Reference) -> None:
    """Run the shot."""
    outcome = _vfx(case, "run", words, *QUICK)
    if outcome == 0:
        case.faults += differences(case.work, reference.sums)
        if _vfx(case, "status", words) != 0:
            case.blame("untruthful", "what was run has no status")


def _look(case: Case, words: dict[str, str], reference: Reference) -> None:
    """Use a command that takes results or only looks."""
    command = case.random.choice([
        ("check",), ("status",), ("run", "--dry-run"), ("review",), ("stage", "comp"),
        ("export", "--to", "usd"), ("export", "--to", "obj"), ("export", "--to", "abc"),
        ("clean", "--stage", "render"), ("clean", "--stage", "geometry", "--dry-run"),
        ("preview", "--width", "16", "--samples", "1", *QUICK),
        *(("submit", "--farm", farm, flag) for farm in ("slurm", "openjd", "opencue", "deadline",
                                                        "local")
          for flag in ("--dry-run", "--no-start"))])
    _vfx(case, command[0], words, *command[1:])


def _write(case: Case, words: dict[str, str], reference: Reference) -> None:
    """Use a command that writes where it is told to."""
    target = case.root / "shot" / _name(case)
    way = case.random.randrange(4)
    if way == 0:
        case.take(case.start("new", "--", os.path.relpath(target, case.root / "shot"),
                             **_open(case)))
    elif way == 1:
        case.take(case.start("asset", "vase", "--", f"{target}.obj", **_open(case)))
    elif way == 2:
        _vfx(case, "export", words, "--to", "obj", "--output", str(target))
    else:
        _vfx(case, "preview", words, "--width", "16", "--samples", "1", *QUICK, "--output",
             f"{target}.png")


def _vfx(case: Case, command: str, words: dict[str, str], *options: str) -> int:
    outcome = case.take(case.start(command, *options, "--work", words["work"], "--",
                                   words["shot"], **_open(case)))
    case.tally["accepted" if outcome.code == 0 else "refused"] += 1
    return outcome.code


def _open(case: Case) -> dict[str, Any]:
    """Return what may be written: the names are the point here, wherever they lie."""
    return {"writable": [case.root]}


def _name(case: Case) -> str:
    name = case.random.choice(_NAMES)
    return name if case.random.random() < 0.7 else f"{case.random.choice(_NAMES)}{name}"[:250]
