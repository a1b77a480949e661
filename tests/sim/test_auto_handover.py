"""Laws of hand-overs between bonds and the engine: what is kept, and that nothing jumps."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tests.sim.auto_worlds import (
    NO_FLOOR,
    NO_GRAVITY,
    SPACING,
    auto_solver,
    block,
    layout,
    masses,
    run,
)
from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.geometry.pieces.kabsch import UNIQUE, fit_rigid
from vfx.sim.auto.pieces import fit_poses, parts
from vfx.sim.auto.solver import AutoSolver
from vfx.sim.auto.window import Matter, matter_of
from vfx.sim.rigid.mass import inertia_of
from vfx.sim.rigid.poses import groups
from vfx.sim.solver import Poses

__all__ = ["layout"]


def broken_block(device: Device) -> AutoSolver:
    """A spinning block in the midst of its impact."""
    solver = auto_solver(device, [block((6, 4, 3), center=(0.0, 0.08, 0.0), rotation=(
        20.0, 30.0, 10.0), velocity=(0.5, -3.0, 0.2), angular_velocity=(5.0, 9.0, 2.0))],
        bonds={"pieces": "faces"})
    while solver._window is None or solver._window.n_bonds > 0.8 * solver._window.first_bonds:
        run(solver, solver.time + 2e-4)
    return solver


def momenta(position: Array, velocity: Array, mass: Array) -> tuple[Array, Array, float, float]:
    """Momentum and angular momentum of particles, and the sums m|v| and m|r||v|."""
    speed, arm = np.linalg.norm(velocity, axis=1), np.linalg.norm(position, axis=1)
    return (mass @ velocity, mass @ np.cross(position, velocity), float(mass @ speed),
            float(mass @ (arm * speed)))


def own_turning(matter: Matter, mass: Array) -> Array:
    """The angular momentum of cubes about their own centres."""
    return mass @ matter.spin * SPACING**2 / 6.0


def rigid_momenta(poses: Poses, mass: Array, inertia: Array) -> tuple[Array, Array]:
    """The same of rigid pieces."""
    turned = poses.rotation @ inertia @ np.swapaxes(poses.rotation, 1, 2)
    spin = np.einsum("kij,kj->ki", turned, poses.angular_velocity)
    return (mass @ poses.velocity,
            mass @ np.cross(poses.center, poses.velocity) + spin.sum(axis=0))


def test_the_fit_keeps_momentum_and_the_engine_stores_it(device: Device) -> None:
    solver = broken_block(device)
    window, solid = solver._window, solver._world.solid
    assert window is not None
    members, poses = window.pieces(solver.broken())
    assert 3 < len(members) < 60
    own = masses(solver._world)[window.matter.element]
    straight, turning, most, most_turning = momenta(
        window.bonds.position, window.bonds.velocity, own)
    turning = turning + own_turning(window.matter, own)
    inertia = inertia_of(members, solid.position, solid.volume, masses(solver._world))
    fit = rigid_momenta(poses, inertia.mass, inertia.tensor)
    assert np.abs(fit[0] - straight).max() < 1e-9 * most
    assert np.abs(fit[1] - turning).max() < 1e-9 * most_turning

    # What the engine has of it.
    solver._window = None
    fleet = solver._fleet
    fleet.join(members, poses)
    frame = fleet.rigid._engine.read(fleet.id.tolist())
    stored = rigid_momenta(
        Poses(frame.center, fleet.rigid.poses(fleet.id).rotation, frame.velocity, frame.spin),
        inertia.mass, inertia.tensor)
    assert np.abs(stored[0] - straight).max() < 1e-6 * most
    assert np.abs(stored[1] - turning).max() < 1e-6 * most_turning


def test_no_pose_jumps_when_pieces_become_rigid(device: Device) -> None:
    # What a picture shows of a piece is the fit to its elements, in bonds as after them.
    solver, news = broken_block(device), []
    solid, mass = solver._world.solid, masses(solver._world)
    before = after = solver.matter()
    while solver._window is not None:
        before = after
        news += run(solver, solver.time + solver._ticks.timestep)
        after = solver.matter()
    assert any("rigid again" in each for each in news)
    count, label = parts(solid, solver.broken(), np.arange(solid.n_elements))
    first, second = (fit_rigid(solid.position, each.position, each.velocity, mass, label, count)
                     for each in (before, after))
    duration = after.time - before.time
    assert duration < 1e-4 and count > 3
    way = second.center - first.center - duration * second.velocity
    assert np.linalg.norm(way, axis=1).max() < 1e-3 * SPACING
    unique = (first.free == UNIQUE) & (second.free == UNIQUE)
    turn = Rotation.from_matrix(
        second.rotation[unique] @ np.swapaxes(first.rotation[unique], 1, 2)).magnitude()
    spin = np.linalg.norm(solver._fleet.after.angular_velocity, axis=1).max()
    assert unique.any() and turn.max() < 1e-3 + duration * spin


def test_pieces_go_into_bonds_with_their_momentum(device: Device) -> None:
    bodies = [block((6, 4, 3), name="one", center=(0.0, 1.0, 0.0), velocity=(1.0, 2.0, 3.0),
                    angular_velocity=(30.0, -20.0, 10.0)),
              block((2, 2, 2), name="two", center=(0.3, 1.0, 0.0),
                    angular_velocity=(0.0, 50.0, 0.0)),
              block((3, 1, 1), name="row", center=(0.6, 1.0, 0.0), velocity=(-1.0, 0.0, 0.0),
                    angular_velocity=(0.0, 20.0, 5.0))]
    solver = auto_solver(device, bodies, floor=NO_FLOOR, gravity=NO_GRAVITY)
    run(solver, 0.1)
    fleet, mass = solver._fleet, masses(solver._world)
    for duration in (0.0, 1e-3):
        poses = fleet.flown(fleet.id, duration)
        matter = matter_of(fleet, solver._world.solid.position, fleet.id, poses)
        straight, turning, most, most_turning = momenta(
            matter.position, matter.velocity, mass[matter.element])
        turning = turning + own_turning(matter, mass)
        before = rigid_momenta(fleet.before, fleet.rigid.mass(fleet.id),
                               fleet.rigid.inertia(fleet.id))
        assert np.abs(straight - before[0]).max() < 1e-9 * most
        assert np.abs(turning - before[1]).max() < 1e-9 * most_turning


def test_there_and_back_is_the_same_motion(device: Device) -> None:
    solver = auto_solver(device, [block((5, 4, 3), center=(0.0, 1.0, 0.0), rotation=(
        10.0, 20.0, 30.0), velocity=(1.0, 2.0, 3.0), angular_velocity=(8.0, -5.0, 3.0))])
    run(solver, 0.05)
    fleet, solid, mass = solver._fleet, solver._world.solid, masses(solver._world)
    poses = fleet.after
    matter = matter_of(fleet, solid.position, fleet.id, poses)
    back = fit_poses(solid.position, matter.position, matter.velocity, mass,
                     np.zeros(len(mass), np.int64), fleet.rigid.inertia(fleet.id), matter.held,
                     mass[:, None] * matter.spin * SPACING**2 / 6.0)
    for name in ("center", "rotation", "velocity", "angular_velocity"):
        np.testing.assert_allclose(getattr(back, name), getattr(poses, name), atol=1e-11)


def test_a_row_keeps_its_turn_about_itself_and_a_grain_its_spin(device: Device) -> None:
    # Positions of a row or a single element do not tell how it is turned.
    solver = auto_solver(device, [
        block((4, 1, 1), name="row", center=(0.0, 1.0, 0.0), rotation=(40.0, 0.0, 0.0),
              angular_velocity=(2.0, 0.0, 0.0)),
        block((1, 1, 1), name="grain", center=(0.2, 1.0, 0.0), angular_velocity=(0.0, 9.0, 0.0))])
    run(solver, 0.05)
    fleet, solid, mass = solver._fleet, solver._world.solid, masses(solver._world)
    matter = matter_of(fleet, solid.position, fleet.id, fleet.after)
    members = groups(matter.element, matter.holder, 2)
    inertia = inertia_of(members, solid.position, solid.volume, mass)
    back = fit_poses(solid.position, matter.position, matter.velocity, mass, matter.holder,
                     inertia.tensor, matter.held, mass[:, None] * matter.spin * SPACING**2 / 6.0)
    np.testing.assert_allclose(back.rotation, fleet.after.rotation, atol=1e-9)
    np.testing.assert_allclose(back.angular_velocity, [[2.0, 0.0, 0.0], [0.0, 9.0, 0.0]],
                               atol=1e-9)


def test_no_hand_over_gains_energy(device: Device) -> None:
    rng = np.random.default_rng(3)
    solver = auto_solver(device, [block((4, 3, 2))], floor=NO_FLOOR)
    solid, mass = solver._world.solid, masses(solver._world)
    moment = mass * SPACING**2 / 6.0
    for _ in range(20):
        velocity, spin = rng.normal(size=(2, len(mass), 3))
        inertia = inertia_of([np.arange(len(mass))], solid.position, solid.volume, mass)
        poses = fit_poses(solid.position, solid.position, velocity, mass,
                          np.zeros(len(mass), np.int64), inertia.tensor, np.eye(3)[None],
                          moment[:, None] * spin)
        before = 0.5 * mass @ (velocity**2).sum(1) + 0.5 * moment @ (spin**2).sum(1)
        omega = poses.angular_velocity[0]
        after = 0.5 * mass.sum() * (poses.velocity**2).sum() + 0.5 * omega @ inertia.tensor[
            0] @ omega
        assert after < before
