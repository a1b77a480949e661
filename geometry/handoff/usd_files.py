"""Opens USD files that stand by themselves (usd-core is an optional package).

A file that composes others (sublayers, references, payloads, value clips) is refused: what a shot
is made from is the file it names, whose hash tells when it changed, and no stranger's file chooses
what else is read. The layers inside of a .usdz are part of that one file.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vfx.device.memory import USD_ADDRESSES, require_addresses
from vfx.geometry.handoff.mesh_error import unreadable


def open_usd(path: Path) -> Any:
    """Return the stage of a USD file.

    Raises ModuleNotFoundError without usd-core; ValueError, without the file's name, where it
    cannot be read or needs other files.
    """
    try:
        from pxr import Sdf, Usd
    except ImportError:
        raise ModuleNotFoundError("needs the package usd-core to be read, which is not installed: "
                                  "pip install 'vfx-fracture[usd]'") from None
    require_addresses(USD_ADDRESSES, "USD")
    whole = str(path.resolve())
    status = os.stat(whole)
    if not _can_be_read(whole, (status.st_ino, status.st_size, status.st_mtime_ns)):
        raise ValueError(unreadable("USD"))
    layer = _open_layer(whole)
    waiting, known = [layer], {layer.identifier}
    while waiting:
        part = waiting.pop()
        if _has_clips(part):
            raise ValueError(_composed(""))
        # A reference to another place in the same file has no name.
        for name in sorted(filter(None, part.GetCompositionAssetDependencies())):
            other = str(Sdf.ComputeAssetPathRelativeToLayer(part, name))
            if not other.startswith(f"{whole}["):
                raise ValueError(_composed(f" (such as {name})"))
            inner = _open_layer(other)
            if inner.identifier not in known:
                known.add(inner.identifier)
                waiting.append(inner)
    return Usd.Stage.Open(layer)


@contextlib.contextmanager
def damage_is_refused(file: Path | None = None) -> Iterator[None]:
    """Raise ValueError, with the name of a ``file`` if given, where a stage shows to be damaged."""
    from pxr import Tf

    try:
        yield
    except Tf.ErrorException:
        where = "" if file is None else f"{file}: "
        raise ValueError(where + unreadable("USD")) from None


#: Reads all that one layer holds, and follows nothing.
_READ_ALL = """
import sys
from pxr import Sdf
layer = Sdf.Layer.FindOrOpen(sys.argv[1])
def look(at):
    spec = layer.GetAttributeAtPath(at) if at.IsPropertyPath() else None
    if spec:
        spec.default
        for time in layer.ListTimeSamplesForPath(at):
            layer.QueryTimeSample(at, time)
layer.GetCompositionAssetDependencies()
layer.Traverse(layer.pseudoRoot.path, look)
"""


@functools.cache
def _can_be_read(whole: str, stamp: tuple[int, ...]) -> bool:
    """Whether another process lives through reading a file: of some damage the library dies.

    Its report of that goes into a folder that is removed.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", _READ_ALL, whole], capture_output=True,
                              env={**os.environ, "TMPDIR": folder}, check=False)
    return done.returncode == 0


def _open_layer(name: str) -> Any:
    from pxr import Sdf, Tf

    try:
        layer = Sdf.Layer.FindOrOpen(name)
    except Tf.ErrorException:
        layer = None
    if not layer:
        raise ValueError(unreadable("USD"))
    return layer


def _composed(which: str) -> str:
    return (f"is put together from other files{which}, which are not followed; save it as one: "
            "usdcat --flatten -o flat.usdc")


def _has_clips(layer: Any) -> bool:
    """Whether a prim takes its values from clips, which are other files."""
    found = []

    def look(at: Any) -> None:
        is_prim = at.IsPrimPath() or at.IsPrimVariantSelectionPath()
        spec = layer.GetPrimAtPath(at) if is_prim else None
        if spec and spec.HasInfo("clips"):
            found.append(at)

    layer.Traverse(layer.pseudoRoot.path, look)
    return bool(found)
