"""The simulation: peridynamic springs, contact, bodies; advanced step by step.

Bond-based peridynamics as in levine-2014 (eqs. 2-7) with the constants of Silling & Askari
(2005). Symbols: c bond stiffness, V volume, tau strain limit, alpha strengthening, lambda
length scale, delta horizon. Time is integrated by velocity Verlet in double precision; the
bond loop works in float32 on exact fixed-point differences (:mod:`vfx.sim.network`).

A step is a fixed sequence of kernels that runs without Python in between::

    drift -> contact_reset, _insert, _collect (only when needed) -> bond_forces
          -> contact_forces -> kick -> end_step

The state is the same, bit for bit, for any number of threads and after a resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vfx.device import Device, Launch
from vfx.geometry.bodies import Body
from vfx.geometry.handoff import Array, MotionFrame, Solid
from vfx.sim import scatter
from vfx.sim.contact import REBUILD_ALL, ContactSearch
from vfx.sim.material import bond_stiffness, critical_stretch, stable_step
from vfx.sim.network import build_network, to_device
from vfx.sim.ordering import LANES
from vfx.sim.settings import Floor, Material, Projectile, Solver, Weakening
from vfx.sim.weakening import weaken

FLAG_HALT, FLAG_REBUILD, FLAG_FAULT = 0, 1, 2
HALT_FAULT, HALT_CAPACITY = 1, 2
#: A particle that moves further than this in one step [lambda] has run away.
LARGEST_STEP = 0.25


class Unstable(Exception):  # noqa: N818 (it reads as what happened)
    """The run blew up; the message says where, when and what to change."""


class Simulation:
    """All bodies of a shot in motion. Positions and results are in the solid's order."""

    def __init__(
        self,
        device: Device,
        solid: Solid,
        materials: Mapping[str, Material],
        solver: Solver,
        floor: Floor,
        projectiles: Sequence[Projectile] = (),
        weakening: Sequence[Weakening] = (),
        bodies: Sequence[Body] = (),
    ) -> None:
        self.device = device
        self.solid = solid
        self.solver = solver
        self.floor = floor
        self.projectiles = tuple(projectiles)
        self.network = build_network(device, solid, solver.horizon)
        self._material = [materials[str(name)] for name in solid.material_name]
        self._initial_velocity = initial_velocity(solid, bodies)
        self._allocate(weakening)
        self._launches = self._prepare()
        self._start()

    # ------------------------------------------------------------------ set-up

    def _allocate(self, weakening: Sequence[Weakening]) -> None:
        """Make the device arrays: constants of the particles, then the state."""
        device, solid, network = self.device, self.solid, self.network
        put, xp = device.from_host, device.xp
        delta = self.solver.horizon * solid.length_scale
        density = np.array([m.density for m in self._material])[solid.body]
        limit = np.array([critical_stretch(m, d) for m, d in
                          zip(self._material, delta, strict=True)])
        spread = np.array([m.strain_scatter for m in self._material])
        noise = scatter.normal(self.solver.seed, np.arange(solid.n_particles))
        threshold = limit[solid.body] * np.maximum(0.05, 1.0 + spread[solid.body] * noise)

        center = solid.position[np.maximum(network.particle, 0)]
        center[network.particle < 0] = np.nan
        origin = np.nanmean(center, axis=1)
        rest = network.scatter(solid.position)
        local = np.where((network.particle >= 0)[:, None, :], rest - origin[:, :, None], 0.0)
        alpha = np.array([m.compression_strengthening for m in self._material])
        mass = density * solid.volume

        self._mass = mass
        self._net = to_device(device, network)
        self._weak = xp.zeros(len(network.pair_live), np.uint64)
        for paths in weakening:
            weaken(device, solid, network, paths, self._weak)
        self._origin = put(origin)
        self._rest = put(local.astype(np.float32))
        self._rest_position = put(rest)
        self._volume = put(network.scatter(solid.volume.astype(np.float32)))
        self._inverse_mass = put(network.scatter((1.0 / mass).astype(np.float32)))
        self._inverse_density = put(network.scatter((1.0 / density).astype(np.float32)))
        self._base_threshold = put(network.scatter(threshold.astype(np.float32), fill=1.0))
        body_of_cluster = solid.body[network.particle[:, 0]]
        self._strengthening = put(alpha[body_of_cluster].astype(np.float32))
        self._support = put(network.scatter(element_support(solid).astype(np.float32)))
        ball = [[*p.position, *p.velocity, p.radius, p.stiffness] for p in self.projectiles]
        self._ball = put(np.array(ball, np.float64).reshape(-1, 8))

        vectors = (network.n_clusters, 3, LANES)
        self._position = put(rest)
        self._velocity = xp.zeros(vectors, np.float64)
        self._acceleration = xp.zeros(vectors, np.float32)
        self._displacement = xp.zeros(vectors, np.int32)
        self._threshold = put(network.scatter(threshold.astype(np.float32), fill=1.0))
        self._edge_step = xp.full(max(len(network.edge_number), 1), -1, np.int64)
        self._slot = xp.zeros((network.n_slots, 4, LANES), np.float32)
        self._total = xp.zeros((network.n_clusters, 4, LANES), np.float32)
        self._flag = xp.zeros(4, np.int32)
        self._step = xp.zeros(1, np.int64)

        self._set_stiffness()
        self._contact = ContactSearch(
            device, solid, network, self.solver.contact_stiffness)

    def _set_stiffness(self) -> None:
        """Set c (calibrated or not) as the weight V sqrt(c), and the stable step of each body."""
        solid, network, volume = self.solid, self.network, self.solid.volume
        self._weight = self.device.xp.zeros(network.particle.shape, np.float32)
        sums = self.bond_sums(self._net["pair_live"])
        self.initial_bonds = np.rint(sums["count"]).astype(np.int32)
        weight = np.empty(solid.n_particles)
        self.stable_step = np.inf
        for body, material in enumerate(self._material):
            inside = solid.body == body
            stiffness = bond_stiffness(
                material, self.solver.horizon * float(solid.length_scale[body]))
            if self.solver.calibrate:
                # Dilation of an interior particle: K = c sum_j |xi| V_j / 18.
                stiffness = 18.0 * material.bulk_modulus / float(sums["length"][inside].max())
            weight[inside] = volume[inside] * np.sqrt(stiffness)
            stiffest = stiffness * float(sums["inverse"][inside].max())
            self.stable_step = min(self.stable_step, stable_step(material.density, stiffest))
        self._weight = self.device.from_host(network.scatter(weight.astype(np.float32)))

    def _prepare(self) -> dict[str, list[Launch]]:
        """Bind the kernels of a step; ``settle`` is the part after the drift."""
        net, solver, floor, contact = self._net, self.solver, self.floor, self._contact
        n_clusters = self.network.n_clusters
        touching = solver.contact_stiffness > 0.0
        step, bonds = self.device.module("sim/step.cu"), self.device.module("sim/bonds.cu")
        state = {"flag": self._flag, "step": self._step, "inverse_mass": self._inverse_mass,
                 "position": self._position, "rest_position": self._rest_position, **net}
        drift = step.drift.prepare(
            n_clusters, solver.timestep, 1.0 / self.network.unit,
            floor.height if floor.enabled else -1e300, floor.restitution, floor.friction,
            0.5 * contact.skin if touching else 1e150,
            LARGEST_STEP * float(self.solid.length_scale.min()),
            self._acceleration, self._rest_position, self._support, contact.noted, self._flag,
            self._velocity, self._position, self._displacement)
        forces = [bonds.bond_forces.prepare(
            self.network.n_tiles, self.network.unit, solver.weak_factor, self._flag,
            self._step, net["tile_start"], net["tile_slot"], net["pair_start"],
            net["pair_second"], net["pair_slot"], self._weak, net["pair_edge"],
            net["pair_edge_start"], self._origin, self._rest, self._displacement,
            self._weight, self._threshold, net["pair_live"], self._edge_step, self._slot)]
        if touching:
            forces += contact.forces(state)
        kick, first_kick = (step.kick.prepare(
            n_clusters, len(self.projectiles), solver.timestep, half, ahead, *solver.gravity,
            contact.quantum, self._flag, self._step, net["source_start"], net["source"],
            self._slot, self._inverse_mass, self._inverse_density, self._base_threshold,
            self._strengthening, self._ball, self._position, contact.touched, contact.force,
            self._velocity, self._acceleration, self._threshold)
            for half, ahead in ((0.5 * solver.timestep, 1), (0.0, 0)))
        collect = contact.collect(state, steps_ahead=1) if touching else []
        first_collect = contact.collect(state, steps_ahead=0) if touching else []
        settle = [*collect, *forces, kick, step.end_step.prepare(1, self._flag, self._step)]
        return {"step": [drift, *settle], "settle": settle, "collect": first_collect,
                "start": [*first_collect, *forces, first_kick]}

    def _start(self) -> None:
        """Set the velocities and evaluate the forces of step 0."""
        self._overwrite(self._velocity, self.network.scatter(self._initial_velocity))
        self._measure()
        self._raise_flag(FLAG_REBUILD, REBUILD_ALL)
        self._run("start", 1)
        self._raise_flag(FLAG_REBUILD, 0)

    def place(self, position: Array, velocity: Array | None = None) -> None:
        """Put the particles at (n, 3) positions, with velocities, and evaluate the forces."""
        self._overwrite(self._position, self.network.scatter(position))
        if velocity is not None:
            self._initial_velocity = velocity
        self._start()

    def _measure(self) -> None:
        self.device.module("sim/step.cu").measure_displacement(
            self.network.n_clusters, 1.0 / self.network.unit, self._position, self._rest_position,
            self._displacement)

    def _overwrite(self, array: Any, value: Array) -> None:
        """Fill a device array in place, so that prepared launches see it."""
        array[...] = self.device.from_host(value.astype(array.dtype, copy=False))

    def _raise_flag(self, flag: int, value: int) -> None:
        self._flag[flag] = value

    # ------------------------------------------------------------------ time

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self._step[0])

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.step * self.solver.timestep

    def advance(self, n_steps: int) -> None:
        """Do ``n_steps`` steps; raises :class:`Unstable` where a particle runs away."""
        goal = self.step + n_steps
        while self.step < goal:
            self._run("step", goal - self.step)

    def _run(self, name: str, repeat: int) -> None:
        """Run a sequence; where a contact list was too short, lengthen it and end the step."""
        self.device.run(self._launches[name], repeat, halt=self._flag)
        while int(self._flag[FLAG_HALT]):
            self._resolve_halt()
            self._launches = self._prepare()
            self.device.run(
                self._launches["settle" if name == "step" else name], 1, halt=self._flag)

    def _resolve_halt(self) -> None:
        if int(self._flag[FLAG_HALT]) == HALT_CAPACITY:
            self._contact.set_capacity(2 * self._contact.capacity)
            self._raise_flag(FLAG_REBUILD, REBUILD_ALL)
            self._raise_flag(FLAG_HALT, 0)
            return
        lane = int(self._flag[FLAG_FAULT]) - 1
        particle = int(self.network.particle.reshape(-1)[lane])
        velocity = self.network.gather(self.device.to_host(self._velocity))[particle]
        body = str(self.solid.body_name[self.solid.body[particle]])
        place = ", ".join(f"{x:.4g}" for x in self.solid.position[particle])
        raise Unstable(
            f"step {self.step + 1} (t = {self.time:.4g} s): particle {particle} of body "
            f"'{body}' (at rest at [{place}] m) reached {np.linalg.norm(velocity):.3g} m/s, more "
            f"than {LARGEST_STEP:g} lambda a step; use a smaller sim.timestep "
            f"(now {self.solver.timestep:.3g} s, stable below {self.stable_step:.3g} s), or less "
            "sim.contact_stiffness or projectile stiffness or speed")

    # ------------------------------------------------------------------ results

    def bond_sums(self, live: Any) -> dict[str, Array]:
        """Return sums over the live bonds of each particle.

        ``length`` sum V_j |xi| [m^4], ``inverse`` sum V_j / |xi| [m^2], ``count``, and
        ``energy`` [J], each (n,) float64.
        """
        net, network, bonds = self._net, self.network, self.device.module("sim/bonds.cu")
        bonds.bond_sums(
            network.n_tiles, network.unit, net["tile_start"], net["tile_slot"],
            net["pair_start"], net["pair_second"], net["pair_slot"], live, self._origin,
            self._rest, self._displacement, self._weight, self._volume, self._slot)
        bonds.gather_slots(
            network.n_clusters, net["source_start"], net["source"], self._slot, self._total)
        total = self.device.to_host(self._total).astype(np.float64)
        names = ("length", "inverse", "count", "energy")
        return {name: network.gather(np.ascontiguousarray(total[:, k]))
                for k, name in enumerate(names)}

    @property
    def position(self) -> Array:
        """(n, 3) float64 [m], on the host."""
        return self.network.gather(self.device.to_host(self._position))

    @property
    def velocity(self) -> Array:
        """(n, 3) float64 [m/s], on the host."""
        return self.network.gather(self.device.to_host(self._velocity))

    @property
    def acceleration(self) -> Array:
        """(n, 3) float32 [m/s^2], on the host."""
        return self.network.gather(self.device.to_host(self._acceleration))

    @property
    def threshold(self) -> Array:
        """(n,) float32: the strain limits of the next step, on the host."""
        return self.network.gather(self.device.to_host(self._threshold))

    @property
    def n_bonds(self) -> int:
        """Live bonds."""
        live = self.device.to_host(self._net["pair_live"])
        return int(np.unpackbits(live.view(np.uint8)).sum(dtype=np.int64))

    def broken_edges(self, since_step: int) -> tuple[Array, Array]:
        """Return (edge, step) of the adjacency edges that broke after ``since_step``."""
        step = self.device.to_host(self._edge_step)[: len(self.network.edge_number)]
        lately = np.flatnonzero(step > since_step)
        edge = self.network.edge_number[lately]
        order = np.argsort(edge)
        return edge[order].astype(np.int32), step[lately][order]

    def energies(self) -> tuple[float, float]:
        """Return the kinetic and the bond energy [J]."""
        kinetic = 0.5 * float((self._mass * (self.velocity**2).sum(1)).sum())
        return kinetic, float(self.bond_sums(self._net["pair_live"])["energy"].sum())

    def frame(self, frame: int, since_step: int) -> MotionFrame:
        """Return the state as a frame; edges that broke after ``since_step`` come with it."""
        sums = self.bond_sums(self._net["pair_live"])
        edge, step = self.broken_edges(since_step)
        velocity = self.velocity
        time = self.time
        ball = np.array([np.array(p.position) + time * np.array(p.velocity)
                         for p in self.projectiles]).reshape(-1, 3)
        lost = 1.0 - sums["count"] / np.maximum(self.initial_bonds, 1)
        return MotionFrame(
            frame=frame, step=self.step, time=time, position=self.position, velocity=velocity,
            damage=lost.astype(np.float32), broken_edge=edge, broken_step=step,
            projectile_position=ball,
            projectile_radius=np.array([p.radius for p in self.projectiles]),
            kinetic_energy=0.5 * float((self._mass * (velocity**2).sum(1)).sum()),
            bond_energy=float(sums["energy"].sum()), momentum=self._mass @ velocity,
            n_bonds=self.n_bonds)

    def diagnostics(self) -> dict[str, float]:
        """Return one row of the history: time, energies [J], momentum [kg m/s], bonds."""
        kinetic, bond = self.energies()
        momentum = self._mass @ self.velocity
        step = self.device.to_host(self._edge_step)
        height = self.position @ -np.asarray(self.solver.gravity)
        return {
            "step": self.step, "time": self.time, "kinetic_energy": kinetic,
            "bond_energy": bond, "potential_energy": float(self._mass @ height),
            "momentum_x": momentum[0], "momentum_y": momentum[1], "momentum_z": momentum[2],
            "bonds": self.n_bonds, "broken_edges": int((step >= 0).sum())}

    # ------------------------------------------------------------------ resume

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        return {name: self.device.to_host(array) for name, array in self._persistent().items()}

    def _persistent(self) -> dict[str, Any]:
        """Return the device arrays that a resume needs."""
        return {"position": self._position, "velocity": self._velocity,
                "acceleration": self._acceleration, "threshold": self._threshold,
                "pair_live": self._net["pair_live"], "edge_step": self._edge_step,
                "step": self._step}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`; the contact candidates are collected anew."""
        for name, array in self._persistent().items():
            if state[name].shape != array.shape or state[name].dtype != array.dtype:
                raise ValueError(f"checkpoint array {name} has shape {state[name].shape}, "
                                 f"this simulation needs {array.shape}")
            self._overwrite(array, state[name])
        self._measure()
        self._raise_flag(FLAG_REBUILD, REBUILD_ALL)
        self._run("collect", 1)
        self._raise_flag(FLAG_REBUILD, 0)


def initial_velocity(solid: Solid, bodies: Sequence[Body]) -> Array:
    """Return (n, 3) velocities: each body's linear one and its spin about its centre."""
    velocity = np.zeros((solid.n_particles, 3))
    for number, body in enumerate(bodies):
        inside = solid.body == number
        arm = solid.position[inside] - np.array(body.center)
        velocity[inside] = np.array(body.velocity) + np.cross(np.array(body.angular_velocity), arm)
    return velocity


def element_support(solid: Solid) -> Array:
    """Return how far each element reaches below its centre at rest, (n,) float64 [m].

    A cube of edge lambda with axes R reaches lambda/2 (|R_yx| + |R_yy| + |R_yz|).
    """
    reach = 0.5 * solid.length_scale * np.abs(solid.orientation[:, 1, :]).sum(1)
    support: Array = reach[solid.body]
    return support
