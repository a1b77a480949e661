"""Some elements of a world with bonds for a while: an impact in the midst of rigid motion.

A window begins at a moment of its own, with the elements of some pieces where they are and as
fast as they are; what broke before stays broken. Strain limits, stiffness and controls are those
of the whole world (:mod:`vfx.sim.bonds.specimen`): what breaks does not depend on which others are
in the window. Its clock is that of the whole shot, so keyed colliders and driven regions go on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.bonds.specimen import whole_of
from vfx.sim.control.prop import nowhere
from vfx.sim.solver import Poses, Prop, World

#: Where the elements of fixed and driven regions were at time 0, in a state.
HELD = "held_start"
#: Share of its body from which on a piece has kept its residual stress while it was rigid.
LARGE = 0.5


class BondWindow:
    """Some elements of a world with bonds, from a moment on: an impact.

    ``element`` (k,) are ascending numbers of elements. Bonds between those of different ``label``
    (k,) do not hold, nor do those of the pairs ``dead`` (d, 2) of elements, the lower first.
    Residual stress is that of the whole world, too, but pieces with less than half of their body
    have given up their strain, and this with it.
    ``position`` and ``velocity`` (k, 3) are those at the step number ``step`` of the whole shot.
    ``props`` are rigid things that elements run into, at ``poses``. Raises ValueError where the
    bonds of the whole world would swing up at its time step.

    Projectiles that push by contact are props for whoever opens the window; those of levine-2014
    act by themselves, unless they have a mass: where those are depends on what was before.
    """

    def __init__(
        self, device: Device, world: World[BondSettings], element: Array, label: Array,
        dead: Array, position: Array, velocity: Array, step: int, props: Sequence[Prop] = (),
        poses: Poses | None = None,
    ) -> None:
        self._device = device
        self._element = element = np.asarray(element, np.int64)
        if not len(element) or (np.diff(element) <= 0).any():
            raise ValueError("a window needs at least one element, and their numbers must rise")
        dead = np.asarray(dead, np.int32).reshape(-1, 2)
        whole = whole_of(world)
        pushing = tuple(ball for ball in world.projectiles if not ball.touches)
        if any(ball.has_mass for ball in pushing):
            raise ValueError("a projectile with a mass that pushes as levine-2014 has it cannot "
                             "enter an impact in mid-shot; let it push by contact")
        is_whole = len(element) == world.solid.n_elements
        relieved = relieved_elements(world, element, np.asarray(label))
        if whole.network is None and (relieved.any() or not is_whole):
            whole.network = Simulation(device, world).network
        specimen = dataclasses.replace(
            whole.specimen, network=whole.network) if is_whole else whole.some(element)
        self._simulation = simulation = Simulation(
            device, dataclasses.replace(world, projectiles=pushing),
            specimen=specimen.without_stress(relieved) if relieved.any() else specimen,
            props=(props, nowhere() if poses is None else poses))
        whole.network = whole.network or simulation.network
        simulation.refuse_step()

        place = np.full(world.solid.n_elements, -1, np.int64)
        place[element] = np.arange(len(element))
        inside = place[dead]
        simulation.bonds.clear(
            simulation.particles, np.asarray(label), inside[(inside >= 0).all(axis=1)])
        simulation.open_cracks()
        self._dead, self._start = dead, step
        #: Live bits at the start: what breaks here is known by the difference.
        self._held = device.to_host(simulation.bonds.live).copy()
        simulation.balls.position[...] = device.from_host(
            simulation.balls.straight_place(step * simulation.timestep))
        # Cells of two bodies that lie on each other may be nearer than a size apart; at rest they
        # were elsewhere, and their touch would be an energy that nobody gave them.
        simulation.part_from(np.asarray(position, np.float64))
        simulation.place(np.asarray(position, np.float64), np.asarray(velocity, np.float64), step)

    # ------------------------------------------------------------------ time

    @property
    def timestep(self) -> float:
        """Time [s] of a step."""
        return self._simulation.timestep

    @property
    def step(self) -> int:
        """Number of the step since the first frame."""
        return self._simulation.step

    @property
    def time(self) -> float:
        """Time [s] since the first frame."""
        return self._simulation.time

    def advance(self, n_steps: int) -> None:
        """Do ``n_steps`` steps; raises :class:`vfx.sim.solver.Unstable`."""
        self._simulation.advance(n_steps)

    def set_props(self, props: Sequence[Prop], poses: Poses) -> None:
        """Let elements run into other rigid things from now on."""
        self._simulation.set_props(props, poses)

    # ------------------------------------------------------------------ results

    @property
    def position(self) -> Array:
        """(k, 3) float64 [m], on the host."""
        return self._simulation.position

    @property
    def velocity(self) -> Array:
        """(k, 3) float64 [m/s], on the host."""
        return self._simulation.velocity

    @property
    def n_bonds(self) -> int:
        """Live bonds now."""
        return self._simulation.n_bonds

    def broken(self) -> Array:
        """Return the edges of the solid between these elements that do not hold, ascending int32.

        Be it that their ends have different labels, that they are cut or dead, or broke here.
        """
        return self._simulation.specimen.edge[self._simulation.open_edges()].astype(np.int32)

    def broke(self) -> tuple[Array, Array]:
        """Return the edges that broke here, ascending int32, and the step each broke in.

        Where pieces are what bonds hold, these are all that are between pieces now, also those
        whose own bonds broke in windows of before, and it is the present step.
        """
        edge, step = self._simulation.broken_edges(self._start)
        if self._simulation.settings.pieces == "held":
            edge = self._simulation.open_edges()
            step = np.full(len(edge), self.step)
        return self._simulation.specimen.edge[edge].astype(np.int32), step

    def gaping(self) -> Array:
        """Return the edges of the solid at which a crack gapes here, ascending int32."""
        return self._simulation.specimen.edge[self._simulation.gaping_edges()].astype(np.int32)

    def dead(self) -> Array:
        """Return the pairs (d, 2) int32 of bonds that do not hold any more, sorted.

        They are those given and those broken here, not those across labels.
        """
        lost = self._held & ~self._device.to_host(self._simulation.bonds.live)
        pairs = np.sort(self._element[self._simulation.bonds.pairs(lost)], axis=1)
        every = np.concatenate([self._dead, pairs.astype(np.int32)])
        return np.unique(every, axis=0)

    def damage(self) -> Array:
        """Return the share (k,) float32 of the bonds each has in the whole, unbroken world."""
        return self._simulation.damage(self._simulation.bond_sums()["count"])

    def energies(self) -> tuple[float, float]:
        """Return the kinetic and the bond energy [J]."""
        return self._simulation.energies()

    def prop_poses(self) -> Poses:
        """Return where the props are now and how they move."""
        return self._simulation.props.poses

    # ------------------------------------------------------------------ resume

    def state(self) -> dict[str, Array]:
        """Return everything that a window opened with the same elements needs to go on."""
        return {**self._simulation.state(), HELD: self._simulation.held.start}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`, bit for bit; raises ValueError where it is none."""
        held = self._simulation.held
        if HELD not in state or state[HELD].shape != held.start.shape:
            raise ValueError(f"it has no array {HELD} of shape {held.start.shape}")
        self._simulation.restore(state)
        held.start = state[HELD]


def relieved_elements(world: World[BondSettings], element: Array, label: Array) -> Array:
    """Return which of some elements (k,), of pieces ``label`` (k,), have lost residual stress."""
    solid = world.solid
    stressed = np.array([world.materials[str(name)].prestress > 0.0
                         for name in solid.material_name])[solid.body]
    if not stressed[element].any():
        return np.zeros(len(element), bool)
    _, piece, size = np.unique(np.column_stack([solid.body[element], label]), axis=0,
                               return_inverse=True, return_counts=True)
    total = np.bincount(solid.body)[solid.body[element]]
    return np.asarray(stressed[element] & (size[piece.ravel()] < LARGE * total))
