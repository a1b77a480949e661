"""The simulation: peridynamic springs, contact, bodies; advanced step by step.

Bond-based peridynamics as in levine-2014 (eqs. 2-7) with the constants of Silling & Askari
(2005). Symbols: c bond stiffness, V volume, tau strain limit, alpha strengthening, lambda
length scale, delta horizon. Time is integrated by velocity Verlet in double precision; the
bond loops work in float32 on displacements in fixed point, int32 modulo 2^32 in a unit of a few
1e-9 bond lengths: differences of near particles are exact anywhere in the world.

A step is a fixed sequence of kernels that runs without Python in between::

    balls, props and colliders move -> drift -> collide, meet props, calm, hold
          -> contact_reset, _insert, _collect, _bonds (only when needed)
          -> bond forces -> contact_forces -> kick -> hold, push balls -> end_step

The state is the same, bit for bit, for any number of threads and after a resume.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vfx.device import Device, Launch
from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array, Motion
from vfx.sim.bonds.clock import LARGEST_STEP, exact_step
from vfx.sim.bonds.cluster_bonds import Bonds, ClusterBonds
from vfx.sim.bonds.flight import take_off
from vfx.sim.bonds.lattice import LatticeBonds, is_lattice
from vfx.sim.bonds.prestress import Residual, come_to_rest, pane_residual
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.specimen import Network, Specimen, whole_specimen
from vfx.sim.bonds.surface import surface_factors
from vfx.sim.control.collider import Colliders, half_edges
from vfx.sim.control.crack import rectangles
from vfx.sim.control.initial import initial_velocity
from vfx.sim.control.projectile import Projectiles, ball_props
from vfx.sim.control.prop import FILE as PROP
from vfx.sim.control.prop import Props
from vfx.sim.control.region import HeldParticles
from vfx.sim.control.surfaces import coefficients
from vfx.sim.matter.contact import ContactSearch
from vfx.sim.matter.cracks import Cracks, gapes, lost_ways
from vfx.sim.matter.damping import PairDamping, neighbors
from vfx.sim.matter.held import joined
from vfx.sim.matter.laws import bond_laws, steepest_slope
from vfx.sim.matter.material import SAFETY, bond_stiffness, stable_step
from vfx.sim.matter.ordering import LANES
from vfx.sim.matter.particles import (
    FLAG_FAULT,
    FLAG_HALT,
    FLAG_REBUILD,
    HALT_CAPACITY,
    REBUILD_ALL,
    make_particles,
)
from vfx.sim.solver import Poses, Prop, Unstable, World

STEP, SHARED = "sim/matter/step.cu", "sim/matter/particles.cuh"


class Simulation:
    """All bodies of a shot in motion. Positions and results are in the solid's order."""

    def __init__(
        self, device: Device, world: World[BondSettings],
        layout: type[ClusterBonds] | type[LatticeBonds] | None = None,
        specimen: Specimen | None = None, props: tuple[Sequence[Prop], Poses] | None = None,
    ) -> None:
        """``specimen`` are the elements, ``props`` what they run into; if None, the world's."""
        self.device = device
        self.world = world
        self.specimen = specimen = specimen or whole_specimen(world)
        self.solid = solid = specimen.solid
        self.settings = settings = world.settings
        self.timestep = exact_step(settings.timestep)
        self.gravity = world.shared.gravity
        self._material = [world.materials[str(name)] for name in solid.material_name]
        self._initial_velocity = initial_velocity(solid, world.bodies)
        #: Whether bonds across cracks are weaker than others.
        self.has_cracks = any(material.strength > 0.0 for material in self._material)
        is_stressed = any(material.prestress > 0.0 for material in self._material)

        # Choose the layout of the bonds, then bring everything into its order.
        make_bonds = ClusterBonds if is_stressed else layout or (
            LatticeBonds if is_lattice(solid) else ClusterBonds)
        self.bonds: Bonds = make_bonds(
            device, solid, settings.horizon, settings.edge_volume, specimen.part)
        self.layout = self.bonds.layout
        density = np.array([m.density for m in self._material])[solid.body]
        self._mass = density * solid.volume
        self.particles = make_particles(
            device, self.layout, position=solid.position, volume=solid.volume, density=density,
            threshold=specimen.limit, support=specimen.support, body=solid.body,
            law=bond_laws(device, self._material, (settings.horizon * solid.length_scale).tolist(),
                          world.shared, settings),
            n_edges=len(solid.edge), has_cracks=self.has_cracks)
        self.balls = Projectiles(
            device, [ball for ball in world.projectiles if not ball.touches],
            float(solid.volume.max(initial=0.0)))
        half_edge = device.from_host(half_edges(specimen.edge_length, solid.orientation))
        self._colliders = Colliders(device, world.colliders, half_edge, self.layout)
        self.held = HeldParticles(device, specimen.controls, solid, self.layout)
        self.props = self._make_props(*(
            ball_props(world.projectiles, world.materials) if props is None else props))
        self._half_edge = half_edge
        self._damping = self._find_damping() if settings.internal_damping > 0.0 else None
        self._total = device.xp.zeros((self.layout.n_clusters, 4, LANES), np.float32)
        self._source_start = device.from_host(self.layout.source_start)
        self._source = device.from_host(self.layout.source)
        self._contact = ContactSearch(
            device, solid, self.layout, settings.contact_stiffness, specimen.mean_volume,
            settings.contact_friction, settings.contact_distance)
        #: Stiffness of each particle's bonds beside that of its body; None where they are alike.
        self._factor = specimen.network.factor if specimen.network else (
            surface_factors(solid, self.bonds, self.device.to_host(self.bonds.live), settings)
            if settings.surface_correction else None)
        if self._factor is not None:
            self.bonds.set_factors(self._factor)
        crossed = self._weaken()
        #: Which of the weakenings meet no bond and no element, counted from 1.
        self.idle_weakening = [
            number for number in world.controls.unmet if number not in crossed]
        self._open: tuple[int, Array] | None = None     # the step of open_edges, and what it said
        #: Live bits before any bond was cut: what is not among them any more is lost.
        self._born = device.to_host(self.bonds.live).copy()
        if len(world.controls.cuts):
            self.bonds.cut(self.particles, rectangles(device, world.controls.cuts),
                           len(world.controls.cuts))
        #: Edges that were cut from the start: such a crack gapes, however short it is.
        self._cut = self.broken_edges(-1)[0]
        network = specimen.network or self._find_network()
        self.bonds.set_stiffness(self.particles, network.stiffness)
        if is_stressed and specimen.network is None:
            network = dataclasses.replace(network, residual=self._find_residual(network))
        self.network = network
        if network.residual is not None:
            self._strain(network.residual)
        self._cracks = Cracks(device, self.layout, self.particles,
                              self.network.n_bonds) if self.has_cracks else None
        self.open_cracks()
        self._launches = self._prepare()
        self._start()
        self.flight = take_off(
            solid, self.timestep, self.gravity, world.floor, world.projectiles,
            specimen.support, self.position, self.velocity,
            self.acceleration) if self._may_fly() else None

    # ------------------------------------------------------------------ set-up

    def _weaken(self) -> set[int]:
        """Weaken the bonds that cross walls; return which of the weakenings have such a wall."""
        crossed = set()
        for wall in self.world.controls.walls:
            before = self.bonds.count_weak()
            self.bonds.weaken(wall.place(self.solid.position), wall.segment)
            if self.bonds.count_weak() != before:
                crossed.add(wall.number)
        return crossed

    def _find_network(self) -> Network:
        """Return c of each body, calibrated or not, and the stable step of the bonds there are."""
        solid = self.solid
        sums = self.bond_sums()
        stiffness = np.empty(len(self._material))
        # Factors make good for what a particle has not, in the interior as well.
        calibrates = self.settings.calibrate and self._factor is None
        longest = np.full(len(self._material), np.inf)
        for body, material in enumerate(self._material):
            inside = solid.body == body
            stiffness[body] = bond_stiffness(
                material, self.settings.horizon * float(solid.length_scale[body]))
            if calibrates and (reach := float(sums["length"][inside].max())) > 0.0:
                # Dilation of an interior particle: K = c sum_j |xi| V_j / 18.
                stiffness[body] = 18.0 * material.bulk_modulus / reach
            stiffest = steepest_slope(material) * stiffness[body] * float(
                sums["inverse"][inside].max())
            longest[body] = stable_step(material.density, stiffest)
        return Network(
            stiffness, np.rint(sums["count"]).astype(np.int32), self._factor, longest, None)

    def _find_residual(self, network: Network) -> Residual:
        """Return the residual stress of whole bodies, in equilibrium; see prestress.py."""
        solid, settings = self.solid, self.settings
        free, rise = np.zeros(solid.n_elements), np.zeros((solid.n_elements, 3))
        for body, material in enumerate(self._material):
            if material.prestress > 0.0:
                unit = float(network.stiffness[body] * solid.length_scale[body]**4)
                inside = solid.body == body
                free[inside], rise[inside] = pane_residual(
                    solid, body, np.ones(solid.n_elements) if self._factor is None
                    else self._factor, settings.horizon, settings.edge_volume, material.prestress,
                    unit)
        self._strain(Residual(free, np.zeros_like(rise)))
        # Nothing breaks before all is in place.
        limit = self.device.to_host(self.particles.threshold)
        self._overwrite(self.particles.threshold, np.full_like(limit, np.inf))
        launches = [*self.bonds.forces(self.particles), self._gather_slots()]

        def forces(moved: Array) -> Array:
            self._overwrite(self.particles.position, self.layout.scatter(solid.position + moved))
            self._measure()
            self.device.run(launches)
            total = self.device.to_host(self._total)[:, :3]
            return self.layout.gather(np.ascontiguousarray(total)).astype(np.float64)

        shift = come_to_rest(
            forces, rise, float(np.abs(free).max() * solid.length_scale.max()))
        self._overwrite(self.particles.threshold, limit)
        self._overwrite(self.particles.position, self.layout.scatter(solid.position))
        return Residual(free, shift)

    def _strain(self, residual: Residual) -> None:
        """Put the bonds under residual stress: elements rest where they were built."""
        assert isinstance(self.bonds, ClusterBonds), "other layouts know no free strain"
        rest = self.solid.position - residual.shift
        self._overwrite(self.particles.rest_position, self.layout.scatter(rest))
        self.bonds.strain(rest, residual.free)

    def open_cracks(self) -> None:
        """Let all bonds that are gone by now count as lost to cracks."""
        if self._cracks is not None:
            self._cracks.begin(self.solid.position, self._lost_pairs())

    def _lost_pairs(self) -> Array:
        """Return the elements (k, 2) of all bonds that are gone."""
        return self.bonds.pairs(self._born & ~self.device.to_host(self.bonds.live))

    @property
    def initial_bonds(self) -> Array:
        """(n,) int32: bonds of each particle in the whole world while none is broken."""
        return self.network.n_bonds

    @property
    def stable_step(self) -> float:
        """The largest stable step [s] of the bonds.

        It is that of all bodies, whoever is stepped; those that never break count where they are.
        """
        counts = np.array([not body.whole for body in self.world.bodies] or [True] * len(
            self._material))
        counts[np.unique(self.solid.body)] = True
        return float(self.network.stable_step[counts].min())

    def refuse_step(self) -> None:
        """Raise ValueError with a sentence if the time step is too long for the network.

        The plan keeps a margin to its estimate; what it let pass is refused only where bonds may
        really swing up.
        """
        timestep, limit = self.timestep, self.stable_step
        if timestep > limit:
            safe = 2.0 ** math.floor(math.log2(SAFETY * limit))
            raise ValueError(
                f"sim.bonds.timestep is {timestep:.4g} s, but the bonds of the elements that were "
                f"built swing up from {limit:.4g} s on: some stand closer than was estimated "
                f"before; use timestep = {safe!r}, or a larger spacing")

    def _prepare(self) -> dict[str, list[Launch]]:
        """Bind the kernels of a step; ``settle`` is the part after the drift."""
        particles, floor, contact = self.particles, self.world.floor, self._contact
        n_clusters = self.layout.n_clusters
        touching = self.settings.contact_stiffness > 0.0
        step = self.device.module(STEP)
        decay = math.exp(-0.5 * self.settings.damping * self.timestep)
        struct, half = self.device.struct, 0.5 * self.timestep
        ground = struct(
            SHARED, "Floor", height=floor.height if floor.enabled else -1e300,
            **dict(zip(("restitution", "friction"), coefficients(floor), strict=True)))
        skin = struct(
            SHARED, "Skin", half_skin=0.5 * contact.skin if touching else 1e150,
            noted=contact.noted, travel=particles.travel)
        flight = struct(
            STEP, "Flight", largest_step=LARGEST_STEP * float(self.solid.size.min()),
            floor=ground, support=particles.support, largest_support=particles.largest_support,
            skin=skin, displacement=particles.moved)
        drift = step.drift.prepare(
            n_clusters, self.timestep, decay, flight, particles.acceleration, particles.flag,
            particles.velocity, particles.position)
        forces = self.bonds.forces(particles)
        if touching:
            forces += contact.forces(particles, self.bonds.live, self.timestep)
        balls, held = self.balls, self.held
        acting = struct(
            STEP, "Acting", gravity=self.gravity, quantum=contact.quantum,
            slots=struct(
                STEP, "Slots", source_start=self._source_start, source=self._source,
                slot=particles.slot, slot_unit=particles.slot_unit),
            balls=balls.acting, inverse_mass=particles.inverse_mass,
            inverse_density=particles.inverse_density, law=particles.law, body=particles.body,
            base_threshold=particles.base_threshold, touched=contact.touched,
            contact=contact.force, threshold=particles.threshold)
        kick, first_kick = ([step.kick.prepare(
            n_clusters, during, kept, acting, particles.flag, particles.position,
            particles.velocity, particles.acceleration),
            *held.hold_velocities(particles, self.timestep, ahead),
            *balls.push(particles, self.gravity, during)]
            for during, kept, ahead in ((half, decay, 1), (0.0, 1.0, 0)))
        collect, first_collect = (
            [*contact.collect(particles, ahead),
             *self.bonds.contact_bonds(particles, contact, ahead)] if touching else []
            for ahead in (1, 0))
        gaps = self._cracks.open() if self._cracks else []
        calm = self._damping.calm(particles, self._damping_share()) if self._damping else []
        move = [*self._colliders.move(particles, self.timestep),
                *balls.move(particles, self.timestep, ground, self._colliders.now),
                *self.props.move(
                    particles, self.timestep, self.gravity, ground, self._colliders.now),
                drift, *self._colliders.collide(particles, self.timestep, skin),
                *self._meet_props(), *calm, *held.hold_positions(particles, self.timestep)]
        end = step.end_step.prepare(1, particles.flag, particles.step)
        evaluate, close = [*collect, *forces], [*gaps, *kick, end]
        sequences = {
            "step": [*move, *evaluate, *close], "settle": [*evaluate, *close],
            "open": [*move, *evaluate], "evaluate": evaluate, "close": close,
            "collect": first_collect, "start": [*first_collect, *forces, *first_kick]}
        if self._is_simple():
            sequences["on"] = [end, step.kick_and_drift.prepare(
                n_clusters, self.timestep, decay, acting, flight, particles.flag,
                particles.velocity, particles.position, particles.acceleration),
                *balls.move(particles, self.timestep, ground, self._colliders.now), *evaluate]
        return sequences

    def _meet_props(self) -> list[Launch]:
        """Return the launches that let elements run into props."""
        if not self.props.count:
            return []
        put, specimen = self.device.from_host, self.specimen
        held = specimen.controls.held
        until = np.full(len(held), -np.inf)
        until[held >= 0] = specimen.controls.drive[held[held >= 0], 3]
        elements = self.device.struct(
            PROP, "Elements", body=self.particles.body, half_edge=self._half_edge,
            inverse_mass=put(self.layout.scatter(1.0 / self._mass)),
            held_until=put(self.layout.scatter(until, fill=-np.inf)))
        return self.props.meet(self.particles, self.timestep, self.gravity, elements,
                               self.layout.n_clusters)

    def _make_props(self, props: Sequence[Prop], poses: Poses) -> Props:
        """Return rigid things on the device."""
        return Props(
            self.device, props, poses,
            heaviest=math.inf if self.held.count else float(self._mass.max()),
            fastest=LARGEST_STEP * float(self.solid.size.max()) / self.timestep,
            reach=math.sqrt(3.0) * float(self.specimen.edge_length.max()))

    def set_props(self, props: Sequence[Prop], poses: Poses) -> None:
        """Let elements run into other rigid things from now on."""
        self.props = self._make_props(props, poses)
        self._launches = self._prepare()

    def _find_damping(self) -> PairDamping:
        """Return what damps the motion of neighbours toward each other."""
        pairs = neighbors(self.solid)
        return PairDamping(
            self.device, pairs, self.bonds.places(pairs), self.bonds.live, self.layout,
            self._mass, LARGEST_STEP * float(self.solid.size.max()) / self.timestep)

    def _damping_share(self) -> float:
        """Return the share of its strongest that internal damping has at this time step."""
        return self.settings.internal_damping * min(1.0, self.timestep / self.stable_step)

    def _start(self) -> None:
        """Set the velocities and evaluate the forces of step 0."""
        self._overwrite(self.particles.velocity, self.layout.scatter(self._initial_velocity))
        self._measure()
        self._raise_flag(FLAG_REBUILD, REBUILD_ALL)
        self._run("start", 1)
        self._raise_flag(FLAG_REBUILD, 0)

    def place(
        self, position: Array, velocity: Array | None = None, step: int | None = None
    ) -> None:
        """Put the particles at (n, 3) positions, with velocities, and evaluate the forces.

        Those of fixed and driven regions are held from there on; ``step`` sets the clock.
        """
        if step is not None:
            self._overwrite(self.particles.step, np.array([step]))
        self._open = None
        self.held.start_from(position, self.time)
        self._overwrite(self.particles.position, self.layout.scatter(position))
        if velocity is not None:
            self._initial_velocity = velocity
        self.flight = None
        self._start()

    def part_from(self, position: Array) -> None:
        """Let particles that touch at (n, 3) positions push each other only if they close in."""
        self._overwrite(self._contact.apart, self.layout.scatter(position))

    def _measure(self) -> None:
        self.device.module(STEP).measure_displacement(
            self.layout.n_clusters, self.particles.moved, self.particles.position)

    def _overwrite(self, array: Any, value: Array) -> None:
        """Fill a device array in place, so that prepared launches see it."""
        array[...] = self.device.from_host(value.astype(array.dtype, copy=False))

    def _raise_flag(self, flag: int, value: int) -> None:
        self.particles.flag[flag] = value

    # ------------------------------------------------------------------ time

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self.particles.step[0])

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.step * self.timestep

    @property
    def step_launches(self) -> list[Launch]:
        """The kernels of a step among many, in order."""
        return self._launches["on" if self._is_simple() else "step"]

    def advance(self, n_steps: int) -> None:
        """Do ``n_steps`` steps; raises :class:`Unstable` where a particle runs away."""
        goal = self.step + n_steps
        if self.flight is not None:
            self._fly(self.flight.free_until(goal))
        if self._is_simple() and self.step < goal:
            # The end of a step and the beginning of the next are one pass over the particles.
            self._run("open", 1)
            while self.step < goal - 1:
                self._run("on", goal - 1 - self.step)
            self._run("close", 1)
        while self.step < goal:
            self._run("step", goal - self.step)

    def _is_simple(self) -> bool:
        """Whether nothing acts on velocities but forces and the floor."""
        return not (self._colliders.count or self.held.count or self.balls.mass.any()
                    or self.props.count or self._damping or self._cracks)

    def _may_fly(self) -> bool:
        """Whether nothing acts on a free body but gravity, and balls fly straight."""
        return self._is_simple() and not self.settings.damping > 0.0

    def _fly(self, step: int) -> None:
        """Jump to a step of the free flight, unless it is past."""
        if self.flight is None or step <= self.step:
            return
        position, velocity = self.flight.state_at(step)
        self._overwrite(self.particles.position, self.layout.scatter(position))
        self._overwrite(self.particles.velocity, self.layout.scatter(velocity))
        self._overwrite(self.particles.step, np.array([step]))
        self._overwrite(self.balls.position, self.balls.straight_place(self.time))
        self._measure()

    def _run(self, name: str, repeat: int) -> None:
        """Run a sequence; where a contact list was too short, lengthen it and end the step."""
        self.device.run(self._launches[name], repeat, halt=self.particles.flag)
        while int(self.particles.flag[FLAG_HALT]):
            self._resolve_halt()
            self._launches = self._prepare()
            rest = {"step": "settle", "open": "evaluate", "on": "evaluate"}.get(name, name)
            self.device.run(self._launches[rest], 1, halt=self.particles.flag)

    def _resolve_halt(self) -> None:
        if int(self.particles.flag[FLAG_HALT]) == HALT_CAPACITY:
            self._contact.set_capacity(2 * self._contact.capacity)
            self._raise_flag(FLAG_REBUILD, REBUILD_ALL)
            self._raise_flag(FLAG_HALT, 0)
            return
        lane = int(self.particles.flag[FLAG_FAULT]) - 1
        particle = int(self.layout.particle.reshape(-1)[lane])
        body = str(self.solid.body_name[self.solid.body[particle]])
        place = ", ".join(f"{x:.4g}" for x in self.solid.position[particle])
        raise Unstable(
            f"step {self.step + 1} (t = {self.time:.4g} s): particle "
            f"{self.specimen.element[particle]} of body "
            f"'{body}' (at rest at [{place}] m) reached "
            f"{np.linalg.norm(self.velocity[particle]):.3g} m/s, more than {LARGEST_STEP:g} lambda "
            f"a step; use a smaller sim.bonds.timestep (now {self.timestep:.3g} s), or less "
            "sim.bonds.contact_stiffness or projectile stiffness or speed")

    # ------------------------------------------------------------------ results

    def bond_sums(self) -> dict[str, Array]:
        """Return sums over the live bonds of each particle.

        ``length`` sum V_j |xi| [m^4], ``inverse`` sum V_j / |xi| [m^2], ``count``, and
        ``energy`` [J] (half of each bond's), each (n,) float64. In a graded body, and where
        particles have factors, the first two weigh each bond by its stiffness relative to the
        body's.
        """
        total = self._lane_sums().astype(np.float64)
        names = ("length", "inverse", "count", "energy")
        sums = {name: self.layout.gather(np.ascontiguousarray(total[:, k]))
                for k, name in enumerate(names)}
        grade = self.solid.grade * (1.0 if self._factor is None else self._factor)
        return {**sums, "length": grade * sums["length"], "inverse": grade * sums["inverse"]}

    def _lane_sums(self) -> Array:
        """Return the four sums of :meth:`bond_sums` in lanes, (C, 4, 8) float32."""
        self.device.run([*self.bonds.sums(self.particles), self._gather_slots()])
        return self.device.to_host(self._total)

    def _gather_slots(self) -> Launch:
        """Return the launch that adds up the slots of each cluster."""
        return self.device.module(STEP).gather_slots.prepare(
            self.layout.n_clusters, self._source_start, self._source, self.particles.slot,
            self._total)

    def _on_host(self, array: Any) -> Array:
        return self.layout.gather(self.device.to_host(array))

    @property
    def position(self) -> Array:
        """(n, 3) float64 [m], on the host."""
        return self._on_host(self.particles.position)

    @property
    def velocity(self) -> Array:
        """(n, 3) float64 [m/s], on the host."""
        return self._on_host(self.particles.velocity)

    @property
    def acceleration(self) -> Array:
        """(n, 3) float32 [m/s^2], on the host."""
        return self._on_host(self.particles.acceleration)

    @property
    def threshold(self) -> Array:
        """(n,) float32: the strain limits of the next step, on the host."""
        return self._on_host(self.particles.threshold)

    @property
    def n_bonds(self) -> int:
        """Live bonds."""
        return self.bonds.count()

    def broken_edges(self, since_step: int) -> tuple[Array, Array]:
        """Return (edge, step) of the adjacency edges that broke after ``since_step``."""
        step = self.device.to_host(self.particles.edge_step)[: len(self.bonds.edge_number)]
        lately = np.flatnonzero(step > since_step)
        edge = self.bonds.edge_number[lately]
        order = np.argsort(edge)
        return edge[order].astype(np.int32), step[lately][order]

    def open_edges(self) -> Array:
        """Return the adjacency edges between pieces now, ascending int32; see held.py."""
        if self._open is None or self._open[0] != self.step:
            self._open = self.step, self._find_open()
        return self._open[1]

    def _find_open(self) -> Array:
        broken = self.broken_edges(-1)[0]
        if self.settings.pieces == "faces" or not len(broken):
            return broken
        solid, bonds = self.solid, self.bonds
        holds = np.ones(len(solid.edge), bool)
        holds[broken] = False
        count, label = components(solid.n_elements, solid.edge[holds])
        if count > 1:
            live = self.device.to_host(bonds.live)
            label = joined(label, *(bonds.pairs(bonds.across(label, bits))
                                    for bits in (live, self._born & ~live)))
        first, second = label[solid.edge[broken]].T
        return np.asarray(broken[first != second])

    def gaping_edges(self) -> Array:
        """Return the adjacency edges at which a crack gapes now, ascending int32; see cracks.py."""
        broken, rest = self.broken_edges(-1)[0], self.solid.position
        if not len(broken):
            return broken
        lost = (self._on_host(self.particles.lost) if self.has_cracks
                else lost_ways(rest, self._lost_pairs()))
        found = gapes(rest, lost, self.initial_bonds, self.solid.edge[broken])
        return np.union1d(broken[found], self._cut)

    def energies(self) -> tuple[float, float]:
        """Return the kinetic and the bond energy [J]."""
        kinetic = 0.5 * float((self._mass * (self.velocity**2).sum(1)).sum())
        return kinetic, float(self.bond_sums()["energy"].sum())

    def damage(self, count: Array) -> Array:
        """Return the broken share of each particle's bonds, (n,) float32, where (n,) are live."""
        lost = 1.0 - count / np.maximum(self.initial_bonds, 1)
        return lost.astype(np.float32)

    def frame(self, frame: int, since_step: int) -> Motion:
        """Return the state as a frame; edges that broke after ``since_step`` come with it."""
        edge, _ = self.broken_edges(since_step)
        return Motion(
            frame=frame, time=self.time, position=self.position, velocity=self.velocity,
            damage=self.damage(self.bond_sums()["count"]), broken_edge=edge,
            torn_edge=self.gaping_edges(), projectile_position=self.ball_places,
            projectile_radius=np.array([ball.radius for ball in self.world.projectiles]))

    @property
    def ball_places(self) -> Array:
        """(p, 3) float64 [m]: the centres of the projectiles, in their order."""
        touches = np.array([ball.touches for ball in self.world.projectiles], bool)
        place = np.empty((len(touches), 3))
        place[~touches] = self.balls.place
        place[touches] = self.props.poses.center
        return place

    def diagnostics(self) -> dict[str, float]:
        """Return one row of the history: time, energies [J], momentum [kg m/s], bonds.

        What balls with a mass have is told apart, but for the potential energy, which is of all.
        """
        # Sums over lanes need no sorting into the solid's order.
        mass = self.layout.scatter(self._mass)
        velocity = self.device.to_host(self.particles.velocity)
        position = self.device.to_host(self.particles.position)
        momentum = np.einsum("cl,ckl->k", mass, velocity)
        kinetic = 0.5 * float(np.einsum("cl,ckl,ckl->", mass, velocity, velocity))
        height = np.einsum("cl,ckl->k", mass, position) @ -np.asarray(self.gravity)
        count, bond = self._lane_sums()[:, 2:].sum(axis=(0, 2), dtype=np.float64)
        step = self.device.to_host(self.particles.edge_step)
        balls = {}
        if self.balls.mass.any() or self.props.mass.any():
            height += (self.balls.potential_energy(self.gravity)
                       + self.props.potential_energy(self.gravity))
            balls = {
                "ball_energy": self.balls.kinetic_energy + self.props.kinetic_energy,
                **by_axis("ball_momentum", self.balls.momentum + self.props.momentum)}
        return {
            "step": self.step, "time": self.time, "kinetic_energy": kinetic,
            "bond_energy": float(bond), "potential_energy": float(height),
            **by_axis("momentum", momentum), **balls,
            "bonds": round(count) // 2, "broken_edges": int((step > 0).sum())}

    # ------------------------------------------------------------------ resume

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        return {name: self.device.to_host(array) for name, array in self._persistent().items()}

    def _persistent(self) -> dict[str, Any]:
        """Return the device arrays that a resume needs."""
        particles = self.particles
        return {"position": particles.position, "velocity": particles.velocity,
                "acceleration": particles.acceleration, "threshold": particles.threshold,
                "live": self.bonds.live, "edge_step": particles.edge_step,
                "step": particles.step, **self.balls.persistent(), **self.props.persistent(),
                **(self._cracks.persistent() if self._cracks else {})}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`; the contact candidates are collected anew.

        Raises ValueError, having changed nothing, where it is not one of this simulation.
        """
        needed = self._persistent()
        for name, array in needed.items():
            if name not in state:
                raise ValueError(f"it has no array {name}")
            if state[name].shape != array.shape or state[name].dtype != array.dtype:
                raise ValueError(f"its array {name} has shape {state[name].shape} and type "
                                 f"{state[name].dtype}, this simulation needs {array.shape} and "
                                 f"{array.dtype}")
        for name, array in needed.items():
            self._overwrite(array, state[name])
        self._open = None
        self._measure()
        self._raise_flag(FLAG_REBUILD, REBUILD_ALL)
        self._run("collect", 1)
        self._raise_flag(FLAG_REBUILD, 0)


def by_axis(name: str, value: Array) -> dict[str, float]:
    """Return the components of a vector as ``name_x``, ``name_y`` and ``name_z``."""
    return {f"{name}_{axis}": float(number) for axis, number in zip("xyz", value, strict=True)}
