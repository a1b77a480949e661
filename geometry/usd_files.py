"""Opens USD files that stand by themselves (usd-core is an optional package).

A file that composes others (sublayers, references, payloads, value clips) is refused: what a shot
is made from is the file it names, whose hash tells when it changed, and no stranger's file chooses
what else is read. The layers inside of a .usdz are part of that one file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vfx.device.memory import USD_ADDRESSES, require_addresses
from vfx.geometry.mesh_files import unreadable


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
