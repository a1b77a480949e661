"""The glass shot at a later step, kept in the cache so that it is simulated only once."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from vfx.pipeline.errors import DamagedFile, MissingInput
from vfx.pipeline.progress import Progress
from vfx.pipeline.shot.shot_file import Shot
from vfx.pipeline.work.cache import read_npz, write_npz
from vfx.sim.bonds.simulate import Simulation

_CHUNK_STEPS = 50
_SAVE_SECONDS = 30.0


def bring_to(simulation: Simulation, shot: Shot, step: int, cache: Path,
             progress: Progress) -> None:
    """Bring the shot to ``step``, from the latest state in the cache; stop it at any moment."""
    stamp = hashlib.sha256(repr((shot.setup,)).encode()).hexdigest()[:8]
    passing = _restore(simulation, cache, f"glass-{stamp}", step)
    begun, saved = simulation.step, time.monotonic()
    with progress.stage("bench glass, to step"):
        while simulation.step < step:
            simulation.advance(min(_CHUNK_STEPS, step - simulation.step))
            progress.update(simulation.step, (simulation.step - begun) / (step - begun))
            if simulation.step == step or time.monotonic() - saved > _SAVE_SECONDS:
                path = cache / f"glass-{stamp}-{simulation.step}.npz"
                write_npz(path, simulation.state())
                saved = time.monotonic()
                if passing is not None:
                    passing.unlink(missing_ok=True)
                passing = path if simulation.step < step else None


def _restore(simulation: Simulation, cache: Path, stem: str, step: int) -> Path | None:
    """Restore the latest state not beyond ``step``; return its file if it is of no use later.

    States of whole thousands are kept, those saved on the way are not.
    """
    found = {int(path.stem.rsplit("-", 1)[1]): path for path in cache.glob(f"{stem}-*.npz")}
    for at in sorted((at for at in found if at <= step), reverse=True):
        try:
            simulation.restore(read_npz(found[at]))
        except (MissingInput, DamagedFile, KeyError, ValueError):
            continue                # cut off, or of another layout of the bonds
        return found[at] if at % 1000 and at < step else None
    return None
