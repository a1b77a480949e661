"""(c) Kalthoff & Winkler's test: a plate with two notches, struck on the edge between them.

The shear that the impact sends past a notch's tip opens a crack at about 68 degrees to the notch
(Kalthoff 2000; Silling 2003 with bond-based peridynamics). Maraging steel 18Ni1900: E 190 GPa,
density 8000, G 22.2 kJ/m^2; the plate is 200 x 100 mm with notches of 50 mm, 50 mm apart. A bond-
based body has a Poisson ratio of 1/4, so K = 2 E / 3. The striker is as long as the notches are
apart; of equal impedance at 32 m/s, it drives the edge at 16 m/s.
"""

from __future__ import annotations

import numpy as np

from vfx.bench.validation import plates
from vfx.bench.validation.findings import Report
from vfx.geometry.handoff.types import Array
from vfx.sim.settings import Material, Region

STEEL = Material(density=8000.0, bulk_modulus=190e9 * 2 / 3, fracture_energy=22.17e3,
                 strain_scatter=0.0, compression_strengthening=0.25)
SPACING, CELLS, HORIZON, TIMESTEP = 1e-3, (100, 200, 4), 3.0, 2.0**-24
SPEED, DURATION = 16.0, 95e-6


def strike() -> tuple[Array, Array]:
    """Return the damage map (cells x, cells y) at the end, and the cell centres along x [m]."""
    left = -0.5 * CELLS[0] * SPACING
    struck = Region(center=(left + 1.5 * SPACING, 0.0, 0.0), velocity=(SPEED, 0.0, 0.0),
                    size=(3.0 * SPACING, 50e-3, 2.0 * CELLS[2] * SPACING))
    sim = plates.make_plate(
        CELLS, SPACING, STEEL, regions=[struck], horizon=HORIZON, timestep=TIMESTEP,
        notches=[(left - SPACING, left + 50e-3, side * 25e-3 + 1e-9) for side in (-1.0, 1.0)])
    sim.advance(round(DURATION / TIMESTEP))
    return plates.damage_map(sim), np.unique(sim.solid.position[:, 0])


def crack_angle(lost: Array, upper: bool) -> tuple[float, int]:
    """Return the angle [degrees] to its notch at which a crack left its tip, and its cells.

    A straight line from the tip through the cells of the crack, as far as 30 mm.
    """
    tip_x, tip_y = 50, (125 if upper else 75)
    cell = np.argwhere(lost > plates.CRACKED).astype(float)
    outward = (cell[:, 1] + 0.5 - tip_y) * (1.0 if upper else -1.0)
    along = cell[:, 0] + 0.5 - tip_x
    far = np.hypot(along, outward)
    crack = (far > 4.0) & (far < 30.0) & (outward > 0.0)
    if crack.sum() < 8:
        return 0.0, int(crack.sum())
    direction = np.linalg.svd(np.stack([along[crack], outward[crack]], 1))[2][0]
    return float(np.degrees(np.arctan2(abs(direction[1]), direction[0] * np.sign(direction[1])))), \
        int(crack.sum())


def validate(report: Report) -> None:
    """Strike the plate and measure both cracks."""
    lost, _ = strike()
    for name, upper in (("upper", True), ("lower", False)):
        angle, cells = crack_angle(lost, upper)
        report.add(f"angle of the {name} crack", f"{angle:.1f} degrees over {cells} cells",
                   "68 +- 8 degrees (Kalthoff)", abs(angle - 68.0) <= 8.0,
                   value=angle, unit="degrees", anchor_value=68.0)
    report.data = {"map": lost}
