"""(b) A glass plate with a notch, in tension: crack speed and branching.

Held: a strip is stretched across the notch by a strain e, its upper and lower rows are held
there, and the crack is let go. It draws an energy of e^2 E' H / 2 a unit of area from the height
H, and cannot outrun Rayleigh waves however much that is.

Sudden: the long edges of a plate at rest start to move apart. Slowly pulled, one crack runs
straight; pulled faster it branches, as in glass (Silling & Askari 2005; Ha & Bobaru 2010, at 1500
to 1800 m/s, under a sudden traction).
"""

from __future__ import annotations

import math

import numpy as np

from vfx.bench.validation import plates
from vfx.bench.validation.findings import Report
from vfx.geometry.handoff.types import Array
from vfx.sim.settings import Material, Region

GLASS = Material(density=2440.0, bulk_modulus=48e9, fracture_energy=135.0,
                 strain_scatter=0.0, compression_strengthening=0.25)
CELLS, SPACING, HORIZON = (160, 80, 4), 0.5e-3, 3.0
#: Loads: energy that the strip offers, over the energy of the crack.
LOADS = (2.0, 2.4, 3.6, 5.0, 7.0)
TIMESTEP = 2.0**-25
#: Sudden pull: a higher plate, its notch to the middle; speeds of either edge [m/s].
SUDDEN_CELLS, SUDDEN_TIMESTEP = (200, 120, 3), 2.0**-24
SUDDEN_SPEEDS = (0.3, 1.2)


def pull(load: float) -> tuple[Array, Array, Array]:
    """Return times [s], crack lengths [m] since the start, and the last damage map."""
    width, height = CELLS[0] * SPACING, CELLS[1] * SPACING
    # Plane stress: E = 3/2 K at a Poisson ratio of 1/4, held along x: E / (1 - 1/16).
    strain = math.sqrt(2.0 * load * GLASS.fracture_energy / (1.6 * GLASS.bulk_modulus * height))
    tip = -0.25 * width - 0.5 * SPACING
    sim = plates.make_plate(
        CELLS, SPACING, GLASS, notches=[(-0.5 * width - SPACING, tip, 1e-9)],
        regions=[region for side in (-1.0, 1.0) for region in grips(CELLS, side, fixed=True)],
        horizon=HORIZON, timestep=TIMESTEP)
    x = sim.solid.position
    # Start from the stretched strip; the flanks of the notch are relaxed beforehand by halves.
    moved = x.copy()
    moved[:, 1] *= 1.0 + strain
    moved[:, 2] *= 1.0 - strain / 3.0
    open_flank = np.clip((tip - x[:, 0]) / (0.25 * height), 0.0, 1.0)
    flat = np.sign(x[:, 1]) * strain * (0.5 * height - np.abs(x[:, 1]))
    moved[:, 1] += open_flank * flat
    sim.place(moved, np.zeros_like(x))
    times, lengths = [], []
    columns = np.unique(x[:, 0])
    for _ in range(400):
        sim.advance(20)
        # Only what lies near the notch's line is the crack: ends and grips may tear.
        middle = slice(CELLS[1] // 4, -(CELLS[1] // 4))
        torn = (plates.damage_map(sim)[:, middle] > plates.CRACKED).any(1)
        front = columns[torn].max() if torn.any() else tip
        times.append(sim.time)
        lengths.append(front - tip)
        # Stop near the end of the plate, or when the crack has stood for long.
        stands = len(lengths) > 60 and lengths[-1] == lengths[-60]
        if front > columns[-1] - 8 * SPACING or stands:
            break
    return np.array(times), np.array(lengths), plates.damage_map(sim)


def grips(cells: tuple[int, int, int], side: float, **held: object) -> list[Region]:
    """Return the held edge at one side, and the tough rows around it."""
    return [plates.grip(cells, SPACING, HORIZON * SPACING, side, **held),
            plates.grip(cells, SPACING, 4 * HORIZON * SPACING, side, strain_factor=plates.TOUGH)]


def pull_suddenly(speed: float) -> tuple[Array, Array, Array]:
    """Return times [s], crack lengths [m] and the damage map of a plate pulled from rest."""
    driven = [region for side in (-1.0, 1.0)
              for region in grips(SUDDEN_CELLS, side, velocity=(0.0, side * speed, 0.0))]
    sim = plates.make_plate(
        SUDDEN_CELLS, SPACING, GLASS, notches=[(-SUDDEN_CELLS[0] * SPACING, 0.0, 1e-9)],
        regions=driven, horizon=HORIZON, timestep=SUDDEN_TIMESTEP)
    x = sim.solid.position
    times, lengths = [], []
    columns = np.unique(x[:, 0])
    middle = slice(SUDDEN_CELLS[1] // 4, -(SUDDEN_CELLS[1] // 4))
    for _ in range(120):
        sim.advance(20)
        lost = plates.damage_map(sim)
        torn = (lost[:, middle] > plates.CRACKED).any(1)
        times.append(sim.time)
        lengths.append(columns[torn].max() if torn.any() else 0.0)
        if lengths[-1] > columns[-1] - 8 * SPACING:
            break
    return np.array(times), np.array(lengths), lost


def crack_speed(time: Array, length: Array) -> float:
    """Return the steady speed [m/s]: a straight line through the middle half of the run."""
    whole = length.max()
    if whole <= 0.0:
        return 0.0
    middle = (length > 0.25 * whole) & (length < 0.75 * whole)
    return float(np.polyfit(time[middle], length[middle], 1)[0]) if middle.sum() > 2 else 0.0


def count_branches(torn: Array) -> int:
    """Return the most cracks side by side, of a (cells x, cells y) map, over its columns.

    Cracks count as two where at least a horizon of sound cells lies between them. The far end
    of the plate is left out: it may tear by itself.
    """
    most = 0
    for column in torn[: -4 * int(HORIZON)]:
        rows = np.flatnonzero(column)
        most = max(most, 1 + int((np.diff(rows) > HORIZON + 1).sum()) if len(rows) else 0)
    return most


def validate(report: Report) -> None:
    """Pull at rising loads; compare speeds with Rayleigh's and find where cracks branch."""
    rayleigh = plates.rayleigh_speed(GLASS)
    speeds, branches, maps = [], [], []
    for load in LOADS:
        time, length, lost = pull(load)
        speeds.append(crack_speed(time, length))
        branches.append(count_branches(lost > plates.CRACKED))
        maps.append(lost)
        report.note(f"load {load:g} G: {speeds[-1]:.0f} m/s = {speeds[-1] / rayleigh:.2f} c_R, "
                    f"grew {1e3 * length.max():.1f} mm, {branches[-1]} crack(s) side by side")
    report.add("fastest crack", f"{max(speeds):.0f} m/s",
               f"below the Rayleigh speed {rayleigh:.0f} m/s", 0 < max(speeds) < rayleigh,
               value=max(speeds), unit="m/s", anchor_value=rayleigh)
    report.add("speed rises with the load", ", ".join(f"{v:.0f}" for v in speeds) + " m/s",
               "faster at the highest load than at the lowest", speeds[-1] > speeds[0])
    report.add("held, low load", f"{branches[0]} crack", "1: straight", branches[0] == 1)
    sudden = {}
    for pace, expected in zip(SUDDEN_SPEEDS, ("1: straight", "2 or more: branched"), strict=True):
        time, length, lost = pull_suddenly(pace)
        sudden[pace] = lost
        found, speed = count_branches(lost > plates.CRACKED), crack_speed(time, length)
        report.add(f"edges pulled at {pace:g} m/s", f"{found} crack(s), {speed:.0f} m/s",
                   f"{expected}, slower than Rayleigh waves",
                   (found == 1) == expected.startswith("1") and 0 < speed < rayleigh,
                   value=found, unit="cracks")
    report.data = {"loads": LOADS, "speeds": speeds, "branches": branches, "maps": maps,
                   "rayleigh": rayleigh, "sudden": sudden}
