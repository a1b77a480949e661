"""Damage: every file that a finished run leaves is spoilt in every way.

The status must not call done what is not, no command may stumble over it, and the next run
must put all right: the same bits as in an undisturbed run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from .case import QUICK, Case
from .mutate import SPOILERS, change_json, change_npz
from .plate import LAST, SHOT, Reference, make_reference, write_shot
from .verdict import files_below

Damage = Callable[[Random, Path, list[Path]], str]


def prepare(ground: Path) -> tuple[Reference, Path]:
    """Make the run that all are compared with, and one of another shot of the same name."""
    reference = make_reference(ground)
    other = Case("reference", 0, 2, ground / "other")
    write_shot(other.shot.parent)
    other.shot.write_text(SHOT.replace("60.0", "61.0"))
    other.vfx("run", other.shot.name, "--work", other.work, *QUICK, allowed={0})
    return reference, other.work


def play(case: Case, given: tuple[Reference, Path]) -> None:
    """Damage a finished run; ask, use and repair it."""
    reference, other = given
    write_shot(case.shot.parent)
    shutil.copytree(reference.work, case.work)
    paths = files_below(case.work)
    for _ in range(case.random.choice([1, 1, 1, 2, 4])):
        path = paths[case.number % len(paths)] if case.tally["damages"] == 0 \
            else case.random.choice(paths)
        case.tally["damages"] += 1
        if not path.is_file():
            continue
        name = path.relative_to(case.work)
        case.tell(f"{name}: {_damage(case.random, path, paths, other / name)}")
        if path.parent.name in ("sim", "align") and case.random.random() < 0.5:
            # So that the next run has to use checkpoints and lineage.
            frame = path.parent / f"frame.{LAST}.npz"
            if frame.is_file():
                frame.unlink()
    case.status(reference.sums)
    if case.random.random() < 0.5:
        case.vfx(*_use(case))
    foreign = [path for path in paths if os.path.lexists(path)
               and (path.is_symlink() or not path.is_file())]
    outcome = case.finish(reference.sums, allowed={0, 3} if foreign else {0})
    if outcome.code == 3 and foreign:
        # A link, or no file at all, is somebody's own: it may be refused, by name, and then goes.
        case.tally["refused"] += 1
        if not any(path.name in outcome.output for path in foreign):
            case.blame("unreadable", f"the refusal names none of {', '.join(map(str, foreign))}")
        for path in foreign:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(
                missing_ok=True)
        case.finish(reference.sums)


def _use(case: Case) -> list[object]:
    """Return a command that takes the results, whatever state they are in."""
    words = case.random.choice([
        ["review"], ["export", "--to", "obj"], ["export", "--to", "usd"], ["stage", "comp"],
        ["stage", "render", *QUICK], ["stage", "align", *QUICK], ["stage", "sim", *QUICK],
        ["preview", "--frame", str(LAST), "--width", "16", "--samples", "1", *QUICK], ["check"],
        ["run", "--dry-run"], ["submit", "--farm", "openjd", "--dry-run"],
        ["clean", "--stage", case.random.choice(["geometry", "sim", "render", "comp"])],
        ["clean", "--stage", "align", "--dry-run"]])
    return [*words, case.shot.name, "--work", case.work]


def _damage(random: Random, path: Path, paths: list[Path], other: Path) -> str:
    """Damage one file and say how."""
    way = random.randrange(24)
    if way < 13:
        spoiler = random.choice(SPOILERS)
        if path.suffix in _SURGERY and random.random() < 0.3:
            spoiler = _SURGERY[path.suffix]
        data = path.read_bytes()
        status = path.stat()
        path.write_bytes(spoiler(random, data) if data else random.randbytes(20))
        keeps_time = random.random() < 0.5
        if keeps_time:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        return f"{spoiler.__name__}{', its time as it was' if keeps_time else ''}"
    return _WAYS[way - 13](random, path, [*paths, other])


def _neighbour(random: Random, path: Path, paths: list[Path]) -> str:
    """Put another file of the folder, or any other, in its place."""
    near = [each for each in paths if each.parent == path.parent and each != path]
    source = random.choice(near if near and random.random() < 0.8 else paths)
    if source.is_file() and not source.samefile(path):
        shutil.copy2(source, path)
    return f"replaced by {source.name}"


def _swap(random: Random, path: Path, paths: list[Path]) -> str:
    """Let two files change places."""
    source = random.choice([each for each in paths if each.suffix == path.suffix] or paths)
    if source.is_file() and source != path:
        kept = path.with_name("kept")
        os.replace(path, kept)
        os.replace(source, path)
        os.replace(kept, source)
    return f"changed places with {source.name}"


def _other_shot(random: Random, path: Path, paths: list[Path]) -> str:
    """Put the file of another shot in its place."""
    if paths[-1].is_file():
        shutil.copy2(paths[-1], path)
    return "replaced by that of another shot"


def _remove(random: Random, path: Path, paths: list[Path]) -> str:
    path.unlink()
    return "removed"


def _remove_folder(random: Random, path: Path, paths: list[Path]) -> str:
    shutil.rmtree(path.parent)
    return "removed with its folder"


def _folder(random: Random, path: Path, paths: list[Path]) -> str:
    path.unlink()
    path.mkdir()
    if random.random() < 0.5:
        (path / "file").write_text("of somebody")
    return "replaced by a folder"


def _dead_link(random: Random, path: Path, paths: list[Path]) -> str:
    path.unlink()
    path.symlink_to(random.choice(["nowhere", path.name, "/dev/null", "."]))
    return f"replaced by a link to {os.readlink(path)}"


def _link(random: Random, path: Path, paths: list[Path]) -> str:
    """Put a link to the same bytes in its place: nothing is wrong with that."""
    moved = path.with_name(f"moved-{path.name}")
    os.replace(path, moved)
    path.symlink_to(moved.name)
    return "replaced by a link to itself elsewhere"


def _pipe(random: Random, path: Path, paths: list[Path]) -> str:
    path.unlink()
    os.mkfifo(path)
    return "replaced by a pipe"


def _time(random: Random, path: Path, paths: list[Path]) -> str:
    """Change its time alone."""
    stamp = random.choice([0, 1, 2**31, 4 * 10**9])
    os.utime(path, (stamp, stamp))
    return f"its time set to {stamp}"


def _mode(random: Random, path: Path, paths: list[Path]) -> str:
    path.chmod(0)
    return "its rights taken"


#: Damage that leaves a file of its kind, with other things in it.
_SURGERY = {".json": change_json, ".npz": change_npz}
_WAYS: tuple[Damage, ...] = (_neighbour, _swap, _other_shot, _remove, _remove_folder, _folder,
                             _dead_link, _link, _pipe, _time, _mode)
