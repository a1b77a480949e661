"""``vfx export``: pieces and dust of a shot for other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vfx.pipeline.errors import ShotError
from vfx.pipeline.export.alembic import require_alembic, write_abc
from vfx.pipeline.export.obj import write_materials, write_obj
from vfx.pipeline.export.pieces import PieceReader
from vfx.pipeline.export.usd import INSTANCER_ABOVE, UsdOptions, require_usd, write_usd
from vfx.pipeline.export.vdb import require_openvdb, write_dust
from vfx.pipeline.shot.needs import check_folder
from vfx.pipeline.stages.run import Request, frames_to_take, open_work
from vfx.pipeline.work.cache import remove_leftovers

FOLDER = "export"
FORMATS = ("usd", "abc", "obj", "vdb")
#: How the files of formats that are one file may end.
_SUFFIXES = {"usd": (".usd", ".usda", ".usdc"), "abc": (".abc",)}


@dataclass(frozen=True)
class ExportRequest:
    """What the user asked for beside the shot; ``output`` is a file, or a folder of several."""

    to: str
    output: Path | None = None
    debris: float | None = None
    instancer_above: int = INSTANCER_ABOVE
    voxel: float | None = None


def export(request: Request, wanted: ExportRequest, report: Callable[[float], None]) -> list[str]:
    """Export a shot; return lines that say what was written."""
    work = open_work(request)
    frames = frames_to_take(request, work.shot)
    folder = work.folder / FOLDER
    if wanted.output is None:
        check_folder(folder, 0)
    elif wanted.to in _SUFFIXES:
        _check_file(wanted.output, _SUFFIXES[wanted.to])
        check_folder(wanted.output.parent, 0, "--output")
    else:
        check_folder(wanted.output, 0, "--output")
    {"usd": require_usd, "abc": require_alembic, "vdb": require_openvdb}.get(
        wanted.to, lambda: None)()
    reader = PieceReader(work, frames, request.arguments())
    if wanted.output is None:
        remove_leftovers(folder)
    if wanted.to in ("usd", "abc"):
        path = wanted.output or folder / f"{work.shot.name}.{wanted.to}"
        if wanted.to == "usd":
            options = UsdOptions(wanted.debris, wanted.instancer_above)
            return [f"wrote {path}", *write_usd(path, reader, options, report)]
        return [f"wrote {path}", *write_abc(path, reader, report)]
    target = wanted.output or folder
    if wanted.to == "vdb":
        return write_dust(target, reader, wanted.voxel, report)
    written = []
    for number, frame in enumerate(frames):
        report(number / len(frames))
        written.append(write_obj(target, reader, frame))
    written.append(write_materials(target, work.shot))
    report(1.0)
    return [f"wrote {path}" for path in written]


def _check_file(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse what cannot be the name of a file of one kind."""
    if path.is_dir():
        raise ShotError(f"--output {path}: is a folder; name the file, one that ends in "
                        f"{suffixes[0]}")
    if path.suffix.lower() not in suffixes:
        raise ShotError(f"--output {path}: such a file ends in {' or '.join(suffixes)}; give it "
                        f"that name, or choose another format with --to")
