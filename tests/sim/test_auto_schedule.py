"""Laws of the schedule: who moves what when, and that nobody can tell from the motion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.auto_worlds import (
    CHALK,
    NO_FLOOR,
    NO_GRAVITY,
    SPACING,
    TOUGH,
    auto_setup,
    auto_solver,
    auto_world,
    block,
    layout,
    masses,
    rigid_world,
    run,
)
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.auto.plan import make_plan
from vfx.sim.auto.solver import AutoSolver
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.controls import make_world
from vfx.sim.rigid.solver import RigidSolver
from vfx.sim.settings import Collider, Crack, Floor, Projectile, Region
from vfx.sim.solver import Setup

__all__ = ["layout"]

TICK = 1.0 / 480.0
#: A fall that ends with a blow, tilted and spinning.
FALL = {"center": (0.0, 0.1, 0.0), "velocity": (0.3, -2.0, 0.1),
        "angular_velocity": (3.0, 1.0, 2.0)}


def says(news: list[str], what: str) -> int:
    """How many of the news say something."""
    return sum(what in each for each in news)


def test_what_is_too_strong_to_break_moves_as_with_the_engine_alone(device: Device) -> None:
    world = auto_world([block(**FALL)], material=TOUGH, impact_speed=0.1)
    auto, rigid = AutoSolver(device, world), RigidSolver(device, rigid_world(world))
    news = []
    for number in range(1, 101):
        news += run(auto, number * 2 * TICK)
        run(rigid, number * 2 * TICK)
        ours, theirs = auto.frame(0, 0.0), rigid.frame(0, 0.0)
        assert np.array_equal(ours.position, theirs.position)
        assert np.array_equal(ours.velocity, theirs.velocity)
    assert says(news, "nothing breaks") >= 1 and not says(news, "in bonds")


def test_the_first_impact_breaks_the_same_as_with_bonds_from_just_before(device: Device) -> None:
    # No spin: where it is when the window begins is known in closed form.
    fall = block(center=(0.0, 0.1, 0.0), velocity=(0.3, -2.0, 0.1), rotation=(10.0, 20.0, 30.0))
    floor = Floor(restitution=0.3, friction=0.4)
    auto = auto_solver(device, [fall], floor=floor, quiet_time=4e-3, longest_impact=1.0,
                       bonds={"pieces": "faces"})
    time = 0.0
    while auto._window is None:
        run(auto, time := time + 1e-3)
    first = auto._window.start
    while auto._window is not None:
        run(auto, time := time + 1e-3)
    step = auto._ticks.timestep
    n_steps = round(auto._fleet.born[-1] / step) - first

    # Bonds alone, begun there.
    setup = auto_setup([fall], floor=floor, bonds={"pieces": "faces"})
    bonds = dataclasses.replace(setup.rooms["bonds"], timestep=step)
    given = {each.name: getattr(setup, each.name) for each in dataclasses.fields(setup)}
    world = make_world(auto._world.solid, Setup(**{**given, "settings": bonds}))
    sim, begin, gravity = Simulation(device, world), first * step, np.array([0.0, -9.81, 0.0])
    velocity = np.array(fall.velocity)
    sim.place(world.solid.position + begin * velocity + 0.5 * begin**2 * gravity,
              np.tile(velocity + begin * gravity, (world.solid.n_elements, 1)), first)
    sim.advance(n_steps)
    edge, at = sim.broken_edges(0)
    assert 20 < len(edge) < len(world.solid.edge)
    assert np.array_equal(auto.broken(), edge)
    np.testing.assert_allclose(auto._broke_at[edge], at * step, rtol=1e-12)


@pytest.mark.parametrize("spin", [0.0, 40.0])
def test_hand_overs_in_free_flight_leave_no_trace(device: Device, spin: float) -> None:
    # The same flight with windows at different moments, closed again before anything is hit.
    body = block((6, 3, 2), center=(0.0, 9.0, 0.0), velocity=(1.0, 2.0, 0.0),
                 angular_velocity=(spin, 0.3 * spin, 0.1 * spin))
    ends = []
    for ticks in ((), (5,), (20, 40)):
        solver = auto_solver(device, [body], quiet_time=2e-3, bonds={"internal_damping": 0.0})
        for tick in ticks:
            run(solver, tick * TICK)
            open_window(solver)
        run(solver, 60 * TICK)
        assert solver._window is None and not len(solver.broken())
        ends.append(solver.matter())
    for end in ends[1:]:
        np.testing.assert_allclose(end.position, ends[0].position, atol=0.01 * SPACING)
        np.testing.assert_allclose(end.velocity, ends[0].velocity, atol=0.01 * SPACING / TICK)


def open_window(solver: AutoSolver) -> None:
    """Give all pieces to bonds at the moment the engine is at, as if they had been hit."""
    ids = solver._fleet.id[solver._fleet.n_props:]
    solver._end_tick()
    solver._end = solver._ticks.next_tick(solver._now, fine=False)
    solver._fleet.tick(solver._ticks.tick, solver._ticks.time(solver._end))
    solver._try(ids, (np.ones(len(ids)), np.ones(len(ids))), ids[:0], -1, solver._now,
                solver._now)
    trial, solver._trial = solver._trial, None
    assert trial is not None
    solver._commit(trial)


def test_bodies_that_hit_each_other_both_break(device: Device) -> None:
    bodies = [block((6, 3, 3), name="left", center=(-0.06, 0.0, 0.0), velocity=(2.0, 0.0, 0.0)),
              block((6, 3, 3), name="right", center=(0.06, 0.003, 0.0), velocity=(-2.0, 0.0, 0.0))]
    solver = auto_solver(device, bodies, floor=NO_FLOOR, gravity=NO_GRAVITY)
    scale, news = 2.0 * masses(solver._world).sum(), []
    for number in range(1, 51):
        news += run(solver, 2e-3 * number)
        now = solver.tallies()
        # Hits in the engine keep it to about a millimetre a second.
        assert max(abs(now[f"momentum_{axis}"]) for axis in "xyz") < 1e-4 * scale
    broken = solver._world.solid.body[solver._world.solid.edge[solver.broken(), 0]]
    assert says(news, "(2 pieces, ") and set(broken) == {0, 1}


def test_a_whole_body_never_breaks_but_breaks_others(device: Device) -> None:
    bodies = [block((6, 3, 3), name="egg", center=(-0.06, 0.0, 0.0), velocity=(3.0, 0.0, 0.0)),
              block((6, 3, 3), name="stone", center=(0.06, 0.003, 0.0), whole=True)]
    solver = auto_solver(device, bodies, floor=NO_FLOOR, gravity=NO_GRAVITY)
    momentum = masses(solver._world) @ solver.matter().velocity
    run(solver, 0.1)
    broken = solver._world.solid.body[solver._world.solid.edge[solver.broken(), 0]]
    assert len(broken) and set(broken) == {0}
    after = solver.matter()
    assert after.velocity[solver._world.solid.body == 1, 0].min() > 0.1
    scale = np.abs(momentum).sum()
    assert np.abs(masses(solver._world) @ after.velocity - momentum).max() < 1e-4 * scale


def test_a_body_of_one_element_hits_as_any_other(device: Device) -> None:
    # Not so a crumb: what broke off something breaks nothing any more.
    plate = block((8, 8, 1), name="plate", center=(0.0, 0.0, 0.0))
    marble = block((1, 1, 1), name="marble", whole=True, center=(0.003, 0.001, -0.06),
                   velocity=(0.0, 0.0, 8.0))
    solver = auto_solver(device, [plate, marble], floor=NO_FLOOR, gravity=NO_GRAVITY)
    momentum = masses(solver._world) @ solver.matter().velocity
    news = run(solver, 0.05)
    assert says(news, "hit by marble") >= 1 and len(solver.broken())
    after = solver.matter().velocity
    assert after[-1, 2] < 7.0
    assert np.abs(masses(solver._world) @ after - momentum).max() < 1e-3 * momentum[2]


def test_what_never_breaks_limits_no_step_of_bonds(device: Device) -> None:
    coarse = block((6, 3, 3), name="egg", center=(-0.06, 0.0, 0.0), velocity=(3.0, 0.0, 0.0))
    fine = block((8, 8, 8), name="stone", spacing=5e-3, center=(0.0, 0.003, 0.0), whole=True)
    alone, both = (make_plan(auto_setup(bodies)).settings.bonds.timestep
                   for bodies in ([coarse], [coarse, fine]))
    breaks = make_plan(auto_setup([coarse, dataclasses.replace(fine, whole=False)]))
    assert both == alone and breaks.settings.bonds.timestep < 0.6 * alone
    # And all of it runs at that step.
    solver = auto_solver(device, [coarse, fine], floor=NO_FLOOR, gravity=NO_GRAVITY,
                         cracks=[Crack(origin=(9.0, 0.0, 0.0), u=(0.0, 1.0, 0.0),
                                       v=(0.0, 0.0, 1.0))])
    run(solver, 0.05)
    broken = solver._world.solid.body[solver._world.solid.edge[solver.broken(), 0]]
    assert len(broken) and set(broken) == {0}


def test_a_heavy_ball_breaks_a_plate_and_is_slowed_by_what_it_gives(device: Device) -> None:
    plate = block((8, 8, 1), center=(0.0, 0.0, 0.0))
    ball = Projectile(radius=0.02, position=(0.003, 0.001, -0.06), velocity=(0.0, 0.0, 8.0),
                      mass=0.05)
    solver = auto_solver(device, [plate], floor=NO_FLOOR, gravity=NO_GRAVITY, projectiles=[ball])
    before = solver.tallies()
    for number in range(1, 60):
        run(solver, number * 1e-3)
        now = solver.tallies()
        for axis in "xyz":
            assert abs(now[f"momentum_{axis}"] - before[f"momentum_{axis}"]) < 1e-4 * 0.4
        assert now["kinetic_energy"] + now["bond_energy"] < before["kinetic_energy"] * 1.001
    assert len(solver.broken()) > 20
    speed = solver._fleet.after.velocity[0, 2]
    assert 1.0 < speed < 7.9


def test_impacts_at_once_break_what_they_break_alone(device: Device) -> None:
    falls = [block(name=f"b{k}", center=(0.5 * k, 0.1 + 0.01 * k, 0.0), velocity=(0.0, -2.0, 0.0),
                   rotation=(10.0 * k, 5.0, 20.0)) for k in range(3)]
    given = {"quiet_time": 4e-3, "longest_impact": 1.0, "material": dataclasses.replace(
        CHALK, strain_scatter=0.0), "bonds": {"pieces": "faces"}}
    together = auto_solver(device, falls, **given)
    news = run(together, 0.1)
    assert says(news, "in bonds") == 3 and together._window is None
    edges = 0
    for each in falls:
        alone = auto_solver(device, [each], **given)
        run(alone, 0.1)
        assert len(alone.broken()) > 10
        edges += len(alone.broken())
    # The same blows; when a window begins differs by some steps, and so does rounding.
    assert abs(len(together.broken()) - edges) <= 0.1 * edges


@pytest.mark.parametrize("budget", [{"most_steps": 0}, {"least_mass": 1.0}, {"pause": 1e3}])
def test_what_a_budget_spares_stays_whole_and_is_counted(
    device: Device, budget: dict[str, float]
) -> None:
    # Cut in two halves from the start, so that each has half of its body's mass.
    cut = Crack(origin=(0.0, -1.0, -1.0), u=(0.0, 2.0, 0.0), v=(0.0, 0.0, 2.0))
    solver = auto_solver(device, [block(**FALL)], cracks=[cut], **budget)
    if "pause" in budget:
        solver._fleet.born[:] = 0.0
    cut_edges = len(solver.broken())
    news = run(solver, 0.2)
    assert cut_edges == 9 and len(solver.broken()) == cut_edges
    assert not says(news, "in bonds") and solver.tallies()["hits_skipped"] >= 1


def test_most_steps_end_a_window(device: Device) -> None:
    solver = auto_solver(device, [block(**FALL)], most_steps=150, longest_impact=1.0,
                         quiet_time=0.1)
    news = run(solver, 0.1)
    assert says(news, "most_steps") == 1 and solver._window is None
    assert solver._budget.steps < 150 + 2 * solver._ticks.steps_a_tick


@pytest.mark.parametrize(("speed", "tried"), [(1.0, True), (5.0, False)])
def test_impact_speed_by_hand_says_what_is_tried(
    device: Device, speed: float, tried: bool
) -> None:
    solver = auto_solver(device, [block(**FALL)], material=TOUGH, impact_speed=speed)
    assert bool(says(run(solver, 0.1), "nothing breaks")) == tried


def test_a_hit_that_was_survived_is_not_tried_again(device: Device) -> None:
    solver = auto_solver(device, [block(**FALL)], material=TOUGH, impact_speed=0.05)
    news = run(solver, 2.0)
    # Each trial is at a speed well above that of all before it.
    speeds = [float(each.split(" at ")[1].split()[0]) for each in news if "nothing breaks" in each]
    assert 1 <= len(speeds) <= 4
    assert all(b > 1.19 * max(speeds[:k + 1]) for k, b in enumerate(speeds[1:]))
    assert solver.tallies()["asleep"] == 1


def test_a_light_thing_that_was_survived_proves_little(device: Device) -> None:
    # A pebble hits the block before the floor does, at the same speed.
    pebble = block((2, 2, 2), name="pebble", spacing=0.004, center=(0.0, 0.4, 0.0),
                   velocity=(0.0, -6.0, 0.0))
    solver = auto_solver(device, [block((6, 4, 4), name="block", center=(0.0, 0.35, 0.0)), pebble],
                         material=TOUGH, impact_speed=0.5)
    run(solver, 0.06)
    fleet = solver._fleet
    number = int(fleet.piece[0])
    share = fleet.rigid.mass(fleet.piece[[-1]])[0] / fleet.rigid.mass(np.array([number]))[0]
    assert share < 0.02
    assert fleet.breaking[fleet.row(np.array([number]))][0] == pytest.approx(0.5)
    assert any("block" in each and "nothing breaks" in each for each in run(solver, 0.4))


def test_a_light_thing_is_not_tried_again_where_one_as_fast_and_heavy_was_survived(
    device: Device
) -> None:
    # Pebbles that hit a block one after the other: three as fast, one faster, one heavier.
    def pebble(k: int, speed: float, spacing: float = 0.006) -> Body:
        return block((2, 2, 2), name=f"pebble {k}", spacing=spacing, whole=True,
                     center=(0.02 * (k - 2), 0.03 + 0.02 * (k + 1) * speed, 0.0),
                     velocity=(0.0, -speed, 0.0))

    pebbles = [*(pebble(k, 3.0) for k in range(3)), pebble(3, 6.0), pebble(4, 3.0, 0.009)]
    solver = auto_solver(device, [block((10, 4, 4), name="block"), *pebbles], material=TOUGH,
                         impact_speed=0.2, floor=NO_FLOOR, gravity=NO_GRAVITY)
    news = [each for each in run(solver, 0.13) if "nothing breaks" in each]
    by = [each.split("hit by ")[1].split(" at")[0] for each in news]
    assert list(dict.fromkeys(by)) == ["pebble 0", "pebble 3", "pebble 4"]


def test_a_held_region_holds_through_impacts_and_lets_go(device: Device) -> None:
    # A shelf held at one end, hit by a ball at the other, let go later.
    shelf = block((10, 2, 3), center=(0.0, 0.2, 0.0))
    held = Region(center=(-0.045, 0.2, 0.0), size=(0.011, 0.1, 0.1), fixed=True, until=0.15)
    ball = Projectile(radius=0.015, position=(0.035, 0.26, 0.0), velocity=(0.0, -4.0, 0.0),
                      mass=0.05)
    solver = auto_solver(device, [shelf], regions=[held], projectiles=[ball])
    inside = solver._world.controls.held >= 0
    start = solver._world.solid.position[inside]
    news = run(solver, 0.14)
    assert inside.sum() == 6 and says(news, "in bonds") and len(solver.broken())
    np.testing.assert_allclose(solver.matter().position[inside], start, atol=1e-9)
    loose = ~inside & (solver.matter().velocity[:, 1] < -0.1)
    assert loose.any()
    run(solver, 0.2)
    fallen = start[:, 1] - solver.matter().position[inside, 1]
    np.testing.assert_allclose(fallen, 0.5 * 9.81 * 0.05**2, rtol=0.1)


def test_a_driven_body_hits_and_goes_on(device: Device) -> None:
    ram = block((3, 3, 3), name="ram", center=(-0.1, 0.0, 0.0), material="tough")
    egg = block((6, 3, 3), name="egg", center=(0.0, 0.004, 0.0))
    drive = Region(body="ram", center=(-0.1, 0.0, 0.0), size=(0.1, 0.1, 0.1),
                   velocity=(3.0, 0.0, 0.0))
    solver = auto_solver(device, [ram, egg], regions=[drive], floor=NO_FLOOR)
    run(solver, 0.1)
    of_ram = solver._world.solid.body == 0
    np.testing.assert_allclose(
        solver.matter().position[of_ram], solver._world.solid.position[of_ram]
        + np.array([0.3, 0.0, 0.0]), atol=1e-6)
    assert len(solver.broken()) and solver.matter().velocity[~of_ram, 0].mean() > 1.0


def test_cracks_part_a_body_from_the_start(device: Device) -> None:
    cut = Crack(origin=(0.0, -1.0, -1.0), u=(0.0, 2.0, 0.0), v=(0.0, 0.0, 2.0))
    solver = auto_solver(device, [block(center=(0.0, 0.5, 0.0))], cracks=[cut])
    left = solver._world.solid.position[:, 0] < 0.0
    edge = solver._world.solid.edge
    crossing = np.flatnonzero(left[edge[:, 0]] != left[edge[:, 1]])
    assert np.array_equal(solver.broken(), crossing)
    assert solver.tallies()["rigid_pieces"] == 2
    assert np.array_equal(solver.frame(0, -1.0).broken_edge, crossing)
    run(solver, 0.1)
    # Fallen together, not driven apart.
    fall = solver._world.solid.position - solver.matter().position
    np.testing.assert_allclose(fall, np.tile([0.0, 0.5 * 9.81 * 0.01, 0.0], (54, 1)),
                               atol=0.01 * SPACING)


def test_a_cut_that_ends_within_a_body_is_told_as_a_crack(device: Device) -> None:
    cut = Crack(origin=(0.0, 0.5, -1.0), u=(0.0, 2.0, 0.0), v=(0.0, 0.0, 2.0))
    solver = auto_solver(device, [block((6, 4, 3), center=(0.0, 0.5, 0.0))], cracks=[cut])
    place = solver._world.solid.position[solver._world.solid.edge]
    crossing = np.flatnonzero((place[:, 0, 0] * place[:, 1, 0] < 0.0)
                              & (place[:, 0, 1] > 0.5))
    assert not len(solver.broken()) and solver.tallies()["rigid_pieces"] == 1
    assert np.array_equal(solver.frame(0, -1.0).torn_edge, crossing)
    run(solver, 0.05)
    assert np.array_equal(solver.frame(1, 0.0).torn_edge, crossing)


def test_a_keyed_collider_breaks_what_it_hits(device: Device) -> None:
    wall = Collider(shape="box", size=(0.04, 0.2, 0.2), keys=(
        (0.0, -0.2, 0.0, 0.0), (0.1, 0.1, 0.0, 0.0), (0.2, 0.1, 0.0, 0.0)))
    solver = auto_solver(device, [block(center=(0.0, 0.0, 0.0))], colliders=[wall],
                         floor=NO_FLOOR, gravity=NO_GRAVITY)
    news = run(solver, 0.08)
    assert says(news, "in bonds") and len(solver.broken())
    # Nothing is left behind in it: its face is at 0.06 m at that time.
    assert solver.matter().position[:, 0].min() > 0.06 - 0.2 * SPACING
    assert solver.matter().velocity[:, 0].mean() > 2.0


def test_a_hit_between_two_frames_shows_velocities_that_were(device: Device) -> None:
    solver = auto_solver(device, [block(center=(0.0, 0.1, 0.0), velocity=(0.0, -2.0, 0.0))],
                         material=TOUGH)
    before, after = [], []
    for number in range(1, 400):
        run(solver, number * 0.25e-3)
        velocity = solver.frame(0, 0.0).velocity[:, 1].mean()
        (before if velocity < 0.0 and not after else after).append(velocity)
    assert max(before) < -1.9 and after[0] > 0.3


def test_a_ball_of_the_paper_is_refused() -> None:
    for ball in (Projectile(position=(1.0, 0.0, 0.0), velocity=(1.0, 0.0, 0.0)),
                 Projectile(position=(1.0, 0.0, 0.0), velocity=(1.0, 0.0, 0.0), mass=1.0,
                            push="levine")):
        complaint = make_plan(auto_setup([block()], projectiles=[ball])).complaint()
        assert complaint is not None and complaint[0] == "projectiles[1].push"
        assert "method = \"bonds\"" in complaint[1]
    ball = Projectile(position=(1.0, 0.0, 0.0), velocity=(1.0, 0.0, 0.0), mass=1.0)
    assert make_plan(auto_setup([block()], projectiles=[ball])).complaint() is None
