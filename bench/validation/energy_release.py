"""(d) Fracture energy: what two halves cost when they are pulled apart.

Without scatter and strengthening every bond across the plane breaks at the stretch s0 with an
energy of c s0^2 |xi| V^2 / 2. A lattice has xi_z / lambda bonds of each upward offset xi a cell
of the plane, so

    G_lattice = sum over xi_z > 0 of (xi_z / lambda) c s0^2 |xi| V^2 / (2 lambda^2)

which converges to G as delta / lambda grows (c and s0: :mod:`vfx.sim.matter.material`).
"""

from __future__ import annotations

import math

import numpy as np

from vfx.bench.setups import bond_simulation
from vfx.bench.validation.findings import Report
from vfx.device import Device, open_device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.sim.matter.material import bond_stiffness, critical_stretch, lattice_offsets
from vfx.sim.settings import Floor, Material

SPACING = 1e-3
#: A tough material: its limit of some 1e-2 stands far above the rounding of displacements.
TOUGH = Material(bulk_modulus=32.81e9, fracture_energy=2e4, strain_scatter=0.0,
                 compression_strengthening=0.0)


def lattice_energy(horizon: float, material: Material = TOUGH) -> float:
    """Return the closed-form G [J/m^2] of a crack across an axis of the lattice."""
    delta = horizon * SPACING
    energy = 0.5 * bond_stiffness(material, delta) * critical_stretch(material, delta) ** 2 \
        * SPACING**5
    return energy * sum(z * math.sqrt(x * x + y * y + z * z)
                        for x, y, z in lattice_offsets(horizon) if z > 0)


def measured_energy(device: Device, horizon: float) -> float:
    """Return the energy [J/m^2] that bonds held when they broke, on a column in the interior.

    The upper half is moved up rigidly, to just before and just after each class of bonds
    reaches its limit; what is lost in between had broken.
    """
    reach = int(horizon)
    cells = (2 * reach + 1, 2 * reach + 1, 2 * reach)
    bodies = [Body(name="block", material="tough", cells=cells, spacing=SPACING)]
    sim = bond_simulation(
        device, build_solid(device, bodies).solid, bodies=bodies,
        materials={"tough": TOUGH}, horizon=horizon, gravity=(0.0, 0.0, 0.0),
        contact_stiffness=0.0, floor=Floor(enabled=False))
    x = sim.solid.position
    column = np.hypot(x[:, 0], x[:, 1]) < 0.5 * SPACING
    limit = 1.0 + critical_stretch(TOUGH, horizon * SPACING)

    def held(opening: float) -> float:
        """Return the bond energy [J] of the column with the halves ``opening`` [m] apart."""
        sim.place(x + np.where(x[:, 2:] > 0.0, opening, 0.0) * np.array([0.0, 0.0, 1.0]))
        return float(sim.bond_sums()["energy"][column].sum())

    # A bond (r, z) breaks at the opening u where r^2 + (z + u)^2 = limit^2 (r^2 + z^2).
    openings = sorted({
        round(SPACING * (math.sqrt(limit**2 * (x * x + y * y + z * z) - x * x - y * y) - z), 12)
        for x, y, z in lattice_offsets(horizon) if z > 0})
    released = 0.0
    for opening in openings:
        released += held(opening * (1 - 1e-5)) - held(opening * (1 + 1e-5))
    return released / SPACING**2


def validate(report: Report) -> None:
    """Measure G at several horizons and show its convergence."""
    device = open_device("cpu")
    rows = []
    for horizon in (2.0, 3.0, 4.0, 6.0):
        found, expected = measured_energy(device, horizon), lattice_energy(horizon)
        rows.append((horizon, found / TOUGH.fracture_energy, expected / TOUGH.fracture_energy))
        report.add(f"G at {horizon:g} lambda", f"{found / expected:.6f} of the lattice's",
                   "1 within 1e-3", abs(found / expected - 1.0) < 1e-3,
                   value=found, unit="J/m^2", anchor_value=expected)
    ratio = {n: lattice_energy(float(n)) / TOUGH.fracture_energy for n in (3, 6, 12, 24)}
    error = [abs(value - 1.0) for value in ratio.values()]
    report.add("lattice's G over the continuum's at 3, 6, 12, 24 lambda",
               ", ".join(f"{value:.4f}" for value in ratio.values()),
               "to 1, closer each time, within 1 % at 24",
               error == sorted(error, reverse=True) and error[-1] < 0.01)
    report.data = {"rows": rows, "ratio": ratio}
