"""What a shot will cost and whether its step is stable, known before anything is built.

For boxes of cubes the sums over a particle's bonds are those of the cubic lattice. Of elements
of other shapes the bonds are estimated from their number and how the body fills the horizon
around places in it; their steps have a margin for those that stand closer than most, and the
simulation checks again with the network that it built.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vfx.geometry.divide.blue_noise import SITES_A_CUBE
from vfx.geometry.divide.sources import BodySize, body_size, surface_of, unplaced
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.clock import LARGEST_STEP, frame_time, nearest_step
from vfx.sim.bonds.counts import (
    around_middle,
    ball_volume,
    bonded_neighbors,
    count_bonds,
    count_lanes,
)
from vfx.sim.bonds.prestress import prestress_complaint, stored_energy
from vfx.sim.bonds.rounding import rounding_complaint
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.walls import Cost, Wall, find_wall, wall_lines, wall_warnings
from vfx.sim.matter.laws import steepest_slope
from vfx.sim.matter.material import (
    SAFETY,
    bond_stiffness,
    contact_step,
    critical_stretch,
    growth_share,
    lattice_offsets,
    projectile_step,
    pushed_apart,
    stable_step,
    volume_share,
)
from vfx.sim.matter.ordering import LANES
from vfx.sim.settings import Complaint, Region
from vfx.sim.solver import Setup

# Measured as the largest resident memory of ``vfx stage sim`` on plates of 16, 131 and 524
# thousand particles through an impact: 137, 175 and 426 MB, of which 1.09 to 1.26 times is said.
#: Bytes of a process before it simulates anything: interpreter, libraries, kernels.
BYTES_A_PROCESS = 105_000_000
#: Bytes of the plot at the end, drawn when the simulation has given its memory back.
BYTES_A_PLOT = 45_000_000
#: Bytes a lane at the peak: state, contact lists, tables, copies for frames and checkpoints.
BYTES_A_LANE = 790
#: Bytes a lane for each neighbour within the horizon: live and weak bits, and a copy of them.
BYTES_A_NEIGHBOR = 0.25


#: Share of a lattice's stable step that irregular elements get, some of which stand close.
IRREGULAR_STEP = 0.7
#: And those that may be calibrated by a wall thinner than the horizon.
THIN_STEP = 0.7
#: And those of bodies whose surfaces are corrected: along their edges bonds are stiffest.
SURFACE_STEP = 0.84
#: Steps of a frame.
MOST_STEPS = 1e9


@dataclass(frozen=True)
class BodyPlan:
    """What one body comes to; lengths in metres."""

    name: str
    n_particles: int
    n_lanes: int             # particles with the padding of their rows
    n_neighbors: int         # of a particle in the interior
    length_scale: float
    horizon: float
    strain_limit: float
    body: Body
    offsets: tuple[tuple[int, int, int], ...]    # neighbours on a cubic lattice [lambda]

    @functools.cached_property
    def n_bonds(self) -> int:
        """Bonds of the whole body: exact for a box of cubes, else about."""
        if self.body.is_block:
            return count_bonds(self.body.cells, self.offsets)
        mean = bonded_neighbors(unplaced(self.body), self.offsets, self.horizon / self.length_scale)
        return min(max(0, round(0.5 * self.n_particles * mean)),
                   self.n_particles * (self.n_particles - 1) // 2)


@dataclass(frozen=True)
class Plan:
    """The whole shot; ``step_limits`` names the largest stable step [s] of each cause."""

    setup: Setup[BondSettings]
    bodies: tuple[BodyPlan, ...]
    step_limits: Mapping[str, float]

    @property
    def n_particles(self) -> int:
        """Particles of all bodies."""
        return sum(body.n_particles for body in self.bodies)

    @property
    def n_bonds(self) -> int:
        """Bonds of all bodies."""
        return sum(body.n_bonds for body in self.bodies)

    @property
    def memory(self) -> int:
        """Bytes of memory of the whole process at the peak, an estimate from above."""
        bodies = sum(body.n_lanes * (BYTES_A_LANE + BYTES_A_NEIGHBOR * body.n_neighbors)
                     for body in self.bodies)
        return BYTES_A_PROCESS + max(BYTES_A_PLOT, math.ceil(bodies))

    @property
    def n_neighbors(self) -> int:
        """Neighbours of a particle in the interior, of the body that has most."""
        return max(body.n_neighbors for body in self.bodies)

    @property
    def stable_step(self) -> float:
        """The largest step [s] that a shot may use, safety included."""
        return SAFETY * min(self.step_limits.values())

    @property
    def stable_text(self) -> str:
        """The stable step in words: "about" where it is that of elements not built yet."""
        about = "" if all(plan.body.shape == "grid" for plan in self.bodies) else "about "
        return f"{about}{self.stable_step:.4g} s"

    @property
    def auto_step(self) -> float:
        """The largest power of two that is a stable step [s]."""
        return float(2.0 ** math.floor(math.log2(self.stable_step)))

    @property
    def timestep(self) -> float:
        """The time step [s]: the shot's, or the best."""
        given = self.setup.settings.timestep
        return self.best_step if isinstance(given, str) else given

    @property
    def settings(self) -> BondSettings:
        """The shot's settings, with the time step as a number."""
        return replace(self.setup.settings, timestep=self.timestep)

    @property
    def frame_time(self) -> float:
        """Simulated time [s] from frame to frame."""
        return frame_time(self.setup.clock, self.timestep)

    def n_steps(self, time: float) -> int:
        """Return how many steps there are to a time [s]."""
        return nearest_step(time, self.timestep)

    def complaint(self) -> Complaint | None:
        """Return why the time step is refused and what to do, or None."""
        timestep, clock = self.timestep, self.setup.clock
        for body in self.bodies:
            material = self.setup.materials[body.body.material]
            if (complaint := rounding_complaint(
                    body.body, material, body.horizon, self.setup.settings.horizon)) is not None:
                return complaint
        if timestep > self.stable_step:
            cause = min(self.step_limits, key=lambda name: self.step_limits[name])
            return "sim.bonds.timestep", (
                f"{timestep:.4g} s is above the stable step, {self.stable_text}, set by "
                f"{cause}; use timestep = {self.best_step!r} or timestep = "
                "\"auto\", or soften or slow what sets it")
        n_steps = self.frame_time / timestep
        if not 1.0 <= n_steps <= MOST_STEPS:
            key, found = ("time.time_keys", self.frame_time * clock.fps) if clock.time_keys else (
                "time.time_scale", clock.time_scale)
            return key, (
                f"found {found:g}, which makes {n_steps:.3g} steps a frame at "
                f"{clock.fps:g} fps and a time step of {timestep:g} s; it must be between 1 and "
                "10^9")
        if clock.time_keys and self._most_steps > MOST_STEPS:
            return "time.time_keys", (
                f"found speeds {self.frame_time * clock.fps:g} to "
                f"{self._most_steps * timestep * clock.fps:g}, the fastest of which makes "
                f"{self._most_steps:.3g} steps a frame; it must be at most 10^9")
        settings = self.setup.settings
        return prestress_complaint(
            [plan.body for plan in self.bodies], self.setup.materials, settings.horizon,
            settings.edge_volume, corrected=settings.surface_correction)

    @property
    def _most_steps(self) -> float:
        """Steps of the longest frame, not rounded."""
        return (self.setup.clock.longest_frame or self.frame_time) / self.timestep

    @property
    def best_step(self) -> float:
        """The step [s] of ``timestep = "auto"``.

        Where the shot gives the time of a frame, it is the largest stable one that divides it.
        Where it gives the number of steps, a longer one saves none: the largest stable power of
        two.
        """
        frame_time = self.setup.clock.frame_time
        if frame_time is None:
            return self.auto_step
        n_steps = max(1, math.ceil(frame_time / self.stable_step))
        # The division may round to the far side of the limit.
        return frame_time / (n_steps + (frame_time / n_steps > self.stable_step))

    def effort(self, time: float, step: float) -> list[tuple[str, float]]:
        """Return how many steps there are, and how long they take while the bodies are whole."""
        n_steps = self.n_steps(time)
        return [(f"the {n_steps} steps of sim while the bodies are whole, up to about twice that "
                 "in pieces", n_steps * step)]

    def time_text(self) -> str:
        """Return what a frame is made of; "about" where that is no whole number of steps."""
        exact = self.frame_time / self.timestep
        whole = round(exact)
        about = "" if abs(exact - whole) < 1e-6 * exact else "about "
        if (most := round(self._most_steps)) > whole:
            return f"{whole} to {most} steps of {self.timestep:.6g} s"
        return f"{about}{whole} steps of {self.timestep:.6g} s"

    def body_text(self, number: int) -> str:
        """Return what a body comes to, counted from 0."""
        body = self.bodies[number]
        about = "" if body.body.is_block else "about "
        return (f"lambda {body.length_scale:.4g} m, delta {body.horizon:.4g} m, "
                f"{about}{body.n_bonds:,} bonds that break at a stretch of "
                f"{body.strain_limit:.3g}{self._growth_text(body)}{self._stress_text(body)}")

    def _stress_text(self, body: BodyPlan) -> str:
        """Return how much energy residual stress has in store for cracks."""
        material = self.setup.materials[body.body.material]
        if material.prestress == 0.0 or not body.body.is_block:
            return ""
        thickness = min(body.body.cells) * body.length_scale
        return (f"; residual stress stores {stored_energy(material, thickness):.3g} J/m^2 of the "
                f"pane, and a crack takes {material.fracture_energy * thickness:.3g} J/m of its "
                "length")

    def _growth_text(self, body: BodyPlan) -> str:
        """Return at which stretch cracks go on, where that differs from where they begin."""
        material = self.setup.materials[body.body.material]
        if material.strength == 0.0:
            return ""
        share = growth_share(material, body.horizon)
        if share == 1.0:
            return (" by fracture_energy: for cells of this size that is more than what strength "
                    "comes to, which does not count")
        return f", and where a crack is at {share * body.strain_limit:.3g}"

    def body_lines(self, number: int) -> list[str]:
        """Return what else is to be known of a body: how few elements its walls have."""
        return [line for wall, cost in self._walls(number)
                for line in wall_lines(wall, self.setup.settings, cost)]

    def warnings(self) -> list[str]:
        """Return what will not come out as a person expects: walls as thin as an element."""
        return [line for number in range(len(self.bodies)) for wall, cost in self._walls(number)
                for line in wall_warnings(wall, cost)]

    def _walls(self, number: int) -> Iterator[tuple[Wall, Callable[[Body], Cost]]]:
        """Yield the walls of a body, and what finer ones would cost."""
        if (wall := find_wall(self.bodies[number].body)) is not None:
            yield wall, functools.partial(self._cost, number)

    def _cost(self, number: int, finer: Body) -> Cost:
        """Return what the shot would come to with a body divided more finely."""
        bodies = list(self.setup.bodies)
        bodies[number] = finer
        plan = make_plan(replace(self.setup, bodies=tuple(bodies)))
        return Cost(plan.bodies[number].n_particles, plan.memory,
                    plan.n_bonds / max(1, self.n_bonds) * self.best_step / plan.best_step)

    def lines(self) -> list[str]:
        """Return how many bonds there are and how long a step is."""
        about = "" if all(plan.body.is_block for plan in self.bodies) else "about "
        fewer = self.best_step / self.timestep
        return [
            f"{about}{self.n_bonds} bonds; steps are stable up to {self.stable_text}, used are "
            f"{self.timestep:.4g} s",
            *([f"(timestep = \"auto\" in [sim.bonds] would use {self.best_step:.4g} s: "
               f"{fewer:.3g} times fewer steps for the same time)"] if fewer >= 1.5 else []),
            *([f"damping {self.setup.settings.damping:g} 1/s"]
              if self.setup.settings.damping > 0.0 else [])]


def make_plan(setup: Setup[BondSettings], left_out: Collection[str] = ()) -> Plan:
    """Work out sizes, strain limits and stable steps from the settings alone.

    Bodies whose names are ``left_out`` are never stepped with bonds, and limit no step. Raises
    ValueError or ArithmeticError where they are beyond any that a step comes out for.
    """
    bodies, materials, solver = setup.bodies, setup.materials, setup.settings
    offsets = tuple(lattice_offsets(solver.horizon))
    length = np.linalg.norm(np.array(offsets, dtype=np.float64), axis=1)
    share = np.array([volume_share(x, solver.horizon, solver.edge_volume)
                      for x in length.tolist()])
    reach, nearness = float((share * length).sum()), float((share / length).sum())
    plans, limits = [], {}
    sizes = [body_size(body) for body in bodies]
    for body, size in zip(bodies, sizes, strict=True):
        material = materials[body.material]
        spacing = size.spacing
        delta = solver.horizon * spacing
        stiffness = bond_stiffness(material, delta)
        crowd = nearness
        if solver.surface_correction:
            stiffness = 18.0 * material.bulk_modulus / (reach * spacing**4)
        elif solver.calibrate:
            # A body that is smaller than its horizon is calibrated by the bonds it has.
            there = around_middle(body.cells, offsets) if body.is_block else np.ones(len(length))
            own = float((there * share * length).sum())
            crowd = float((there * share / length).sum()) or nearness
            stiffness = 18.0 * material.bulk_modulus / ((own or reach) * spacing**4)
        n_lanes = count_lanes(body.cells) if body.is_block else (
            -(-size.elements // LANES) * LANES)
        crowding = SITES_A_CUBE if body.grading_deviation else (
            size.elements * spacing**3 / size.volume)
        n_neighbors = len(offsets) if body.shape == "grid" else max(
            1, round(crowding * ball_volume(solver.horizon)))
        plans.append(BodyPlan(
            body.name, size.elements, n_lanes, n_neighbors, spacing, delta,
            critical_stretch(material, delta), body, offsets))
        if body.name in left_out:
            continue
        margin = 1.0 if body.shape == "grid" else IRREGULAR_STEP
        if solver.surface_correction:
            margin *= SURFACE_STEP
        elif solver.calibrate and not body.is_block:
            margin *= THIN_STEP
        limits[f"the bonds of body '{body.name}' (bulk_modulus, density, spacing)"] = \
            margin * stable_step(
                material.density, steepest_slope(material) * stiffness * spacing**2 * crowd)
        # The mean element counts: contact pushes lighter ones less (contact.py).
        filled = size.volume / (size.elements * spacing**3)
        limits[f"contact of body '{body.name}' (contact_stiffness)"] = math.sqrt(
            1.0 if body.shape == "grid" else filled) * contact_step(
                material.density, spacing, solver.contact_stiffness, solver.contact_distance)
        limits[f"the speed of body '{body.name}' (velocity, angular_velocity)"] = _step_over(
            LARGEST_STEP * spacing, _largest_speed(body))
    limits.update(_region_limits(bodies, sizes, setup.regions))
    density = np.array([materials[body.material].density for body in bodies])
    volume = np.array([size.volume for size in sizes])
    finest = min(size.spacing for size in sizes)
    for number, projectile in enumerate(setup.projectiles, 1):
        if projectile.touches:
            # Its surface must not pass an element between two steps.
            limits[f"the flight of projectiles[{number}] (velocity)"] = _step_over(
                LARGEST_STEP * finest, math.hypot(*projectile.velocity))
            continue
        keys = "stiffness, radius, mass" if projectile.mass > 0.0 else "stiffness, radius"
        worst = int(np.argmax(pushed_apart(density, projectile, volume)))
        limits[f"projectiles[{number}] on body '{bodies[worst].name}' ({keys})"] = projectile_step(
            float(density[worst]), projectile, float(volume[worst]))
        # In the shell that pushes, from 3r/4 to 3r/2, for three steps at least.
        limits[f"the flight of projectiles[{number}] (velocity, radius)"] = _step_over(
            0.25 * projectile.radius, math.hypot(*projectile.velocity))
    plan = Plan(setup, tuple(plans), limits)
    if not 0.0 < plan.auto_step < math.inf:
        raise ValueError(f"the stable step comes out as {plan.stable_step} s")
    return plan


def _largest_speed(body: Body) -> float:
    """Return the speed [m/s] of a body's fastest particle at the start."""
    if not any(body.velocity) and not any(body.angular_velocity):
        return 0.0
    farthest = float(np.linalg.norm(surface_of(body)[0].vertex, axis=1).max())
    return math.hypot(*body.velocity) + math.hypot(*body.angular_velocity) * farthest


def _region_limits(
    bodies: Sequence[Body], sizes: Sequence[BodySize], regions: Sequence[Region]
) -> Iterator[tuple[str, float]]:
    """Yield the steps [s] in which what a region drives is no runaway: of the finest body."""
    named = {body.name: size.spacing for body, size in zip(bodies, sizes, strict=True)}
    finest = min(named, key=lambda name: named[name])
    for number, region in enumerate(regions, 1):
        name = region.body or finest
        if any(region.velocity) and name in named:
            yield (f"regions[{number}] on body '{name}' (velocity)",
                   _step_over(LARGEST_STEP * named[name], math.hypot(*region.velocity)))


def _step_over(length: float, speed: float) -> float:
    """Return the time [s] that a length takes at a speed."""
    return length / speed if speed > 0.0 else math.inf
