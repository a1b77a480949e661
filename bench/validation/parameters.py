"""(e) The parameter studies of levine-2014 section 6, as small shots.

A tile of 24 x 24 x 8 mm falls on its edge at 8 m/s, of the paper's earthenware (K 2.94e9 Pa, 2200
kg/m^3); a ball flies into a glass plate of 40 x 40 x 4 mm. What is asserted are the orderings that
the paper shows in its figures 5 to 8. The paper does not say the size of its objects nor their
speed, so no figure of it can be met exactly.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from vfx.bench.setups import bond_setup, bond_simulation
from vfx.bench.validation.findings import Report
from vfx.device import open_device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.plan import make_plan
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.controls import make_world
from vfx.sim.settings import Floor, Material, Projectile

#: A piece of fewer elements is dust: less than a cube of two elements' edge.
DUST = 8
EARTHENWARE = Material(density=2200.0, bulk_modulus=2.94e9, strain_limit=1e-3)
FRAGILE = replace(EARTHENWARE, strain_limit=5e-4)
GLASS = Material(density=2200.0, bulk_modulus=32.81e9, strain_limit=2e-3)


@dataclass(frozen=True)
class Outcome:
    """What is left of an object."""

    n_pieces: int
    largest: float          # share of the mass in the largest piece
    dust: float             # share of the mass in dust
    speed: float            # [m/s] that the fastest hundredth of the mass exceeds
    sizes: Array            # (pieces,) elements each, descending


def examine(sim: Simulation) -> Outcome:
    """Count the pieces: connected components over unbroken adjacency edges."""
    edge = np.delete(sim.solid.edge, sim.broken_edges(0)[0], axis=0)
    n = sim.solid.n_elements
    size = np.bincount(components(n, edge)[1])
    speed = np.linalg.norm(sim.velocity, axis=1)
    return Outcome(
        n_pieces=len(size), largest=float(size.max() / n),
        dust=float(size[size < DUST].sum() / n),
        speed=float(np.percentile(speed, 99)), sizes=np.sort(size)[::-1])


def drop(material: Material, horizon: float = 3.0) -> Outcome:
    """Let the tile fall on the floor; examine it 0.3 ms later."""
    bodies = [Body(name="tile", material="clay", cells=(24, 24, 8), spacing=1e-3,
                   rotation=(0.0, 0.0, 20.0), velocity=(0.0, -8.0, 0.0))]
    setup = bond_setup(bodies=bodies, materials={"clay": material}, horizon=horizon)
    timestep = min(make_plan(setup).auto_step, 2.0**-22)
    solid = build_solid(open_device("cpu"), bodies).solid
    floor = Floor(height=float(solid.position[:, 1].min()) - 0.8e-3)
    sim = bond_simulation(open_device("cpu"), solid, bodies=bodies, materials={"clay": material},
                          horizon=horizon, timestep=timestep, floor=floor)
    sim.advance(round(3e-4 / timestep))
    return examine(sim)


def shoot(stiffness: float, timestep: float) -> tuple[Outcome, bool]:
    """Let a ball of 6 mm at 100 m/s come near the plate; examine it 60 us after first touch.

    Also returns whether the check of the stable step would refuse 2^-23 s.
    """
    bodies = [Body(name="plate", material="glass", cells=(40, 40, 4), spacing=1e-3)]
    ball = Projectile(radius=6e-3, position=(0.0, 0.0, -11e-3), velocity=(0.0, 0.0, 100.0),
                      stiffness=stiffness)
    setup = bond_setup(
        timestep=2.0**-23, gravity=(0.0, 0.0, 0.0), bodies=bodies, materials={"glass": GLASS},
        projectiles=[ball], floor=Floor(enabled=False))
    device = open_device("cpu")
    sim = Simulation(device, make_world(build_solid(device, bodies).solid, replace(
        setup, settings=replace(setup.settings, timestep=timestep))))
    sim.advance(round(6e-5 / timestep))
    return examine(sim), make_plan(setup).complaint() is not None


def tell(report: Report, what: str, outcomes: dict[float, Outcome]) -> None:
    """Print the outcomes of one study."""
    for value, outcome in outcomes.items():
        report.note(
            f"{what} {value:g}: {outcome.n_pieces} pieces, largest "
            f"{100 * outcome.largest:.1f} %, dust {100 * outcome.dust:.1f} % of the mass, "
            f"the fastest hundredth above {outcome.speed:.3g} m/s")


def falls(values: list[float]) -> bool:
    """Whether values fall from each to the next, and do fall."""
    return all(a >= b for a, b in itertools.pairwise(values)) and values[0] > values[-1]


def validate(report: Report) -> None:
    """Run the four studies and assert their orderings."""
    limits = {limit: drop(replace(EARTHENWARE, strain_limit=limit))
              for limit in (0.01, 0.005, 0.001, 0.0005, 0.0002)}
    tell(report, "strain limit", limits)
    largest = [outcome.largest for outcome in limits.values()]
    report.add("mass of the largest piece as the strain limit falls",
               ", ".join(f"{value:.3f}" for value in largest),
               "falls, from whole at 0.01", falls(largest) and largest[0] == 1.0)

    horizons = {horizon: drop(FRAGILE, horizon) for horizon in (2.0, 3.0, 6.0)}
    tell(report, "horizon", horizons)
    dust = [outcome.dust for outcome in horizons.values()]
    report.add("dust as the horizon grows from 2 to 3 to 6 lambda",
               ", ".join(f"{value:.3f}" for value in dust), "falls", falls(dust))

    moduli = {modulus: drop(replace(FRAGILE, bulk_modulus=modulus))
              for modulus in (2.94e8, 2.94e9, 8.82e9)}
    tell(report, "bulk modulus", moduli)
    largest = [outcome.largest for outcome in moduli.values()]
    report.add("mass of the largest piece as the bulk modulus grows",
               ", ".join(f"{value:.3f}" for value in largest), "rises: soft clay crumbles",
               falls(largest[::-1]))

    shots, refused = {}, []
    for stiffness, timestep in ((1e10, 2.0**-23), (1e15, 2.0**-23), (1e20, 2.0**-27)):
        shots[stiffness], no = shoot(stiffness, timestep)
        refused += [stiffness] if no else []
    report.note(f"a step of 2^-23 s is refused for K_S {refused}; 1e20 is run at 2^-27 s")
    tell(report, "K_S", shots)
    count = [outcome.n_pieces for outcome in shots.values()]
    speed = [outcome.speed for outcome in shots.values()]
    report.add("pieces as K_S grows", ", ".join(map(str, count)), "rises",
               count[0] < count[1] < count[2])
    report.add("ejection speed (fastest hundredth of the mass) as K_S grows",
               ", ".join(f"{value:.3g}" for value in speed) + " m/s", "rises",
               speed[0] < speed[1] < speed[2])
    report.data = {"strain limit": limits, "horizon [lambda]": horizons,
                   "bulk modulus [Pa]": moduli, "K_S [N/m^5]": shots}
