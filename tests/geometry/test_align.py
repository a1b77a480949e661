"""Laws of alignment: rigid pieces are found, lines and points carry their rotation on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Lineage, Motion, Pieces, Solid
from vfx.geometry.pieces.align import Aligner, align_frame
from vfx.geometry.pieces.lineage import build_lineage, labels_at

FIRST = 1001
STEP = 0.01     # [s] between frames
DENSITY = np.array([2200.0, 1000.0])
Place = Callable[[float], tuple[np.ndarray, np.ndarray]]


def make_solid(*shapes: tuple[int, int, int]) -> Solid:
    return build_solid([
        Body(name=f"part{i}", material="glass", cells=shape, spacing=0.1,
             center=(10.0 * i, 0, 0), rotation=(10.0, 20.0 * i, 30.0))
        for i, shape in enumerate(shapes)])


def between(solid: Solid, part: list[int]) -> np.ndarray:
    """Return the edges between elements whose entries in ``part`` (n,) differ."""
    label = np.array(part)
    return np.flatnonzero(label[solid.edge[:, 0]] != label[solid.edge[:, 1]])


def motion_at(frame: int, position: np.ndarray, velocity: np.ndarray) -> Motion:
    n = len(position)
    return Motion(
        frame=frame, time=(frame - FIRST) * STEP, position=position, velocity=velocity,
        damage=np.linspace(0, 1, n, dtype=np.float32), broken_edge=np.zeros(0, np.int32),
        projectile_position=np.full((1, 3), frame / 1000), projectile_radius=np.ones(1))


def spinning(solid: Solid, lineage: Lineage, omega: np.ndarray) -> Callable[[int], Motion]:
    """Return a motion in which each particle set that breaks off flies on by itself, spinning
    with ``omega`` about its own centre since the first frame."""
    drift = np.random.default_rng(1).normal(size=(len(lineage.parent), 3))

    def read(frame: int) -> Motion:
        time = (frame - FIRST) * STEP
        label = labels_at(lineage, solid, frame)
        turn = Rotation.from_rotvec(omega * time)
        position, velocity = np.empty((2, solid.n_elements, 3))
        for piece in np.unique(label):
            own = label == piece
            center = solid.position[own].mean(axis=0)
            arm = turn.apply(solid.position[own] - center)
            position[own] = center + time * drift[piece] + arm
            velocity[own] = drift[piece] + np.cross(omega, arm)
        return motion_at(frame, position, velocity)

    return read


def quiet(n_frames: int, **broken: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return the broken edges of each frame: ``f3=edges`` breaks those in the fourth frame."""
    nothing = np.zeros(0, dtype=np.int32)
    return [(FIRST + f, broken.get(f"f{f}", nothing)) for f in range(n_frames)]


def assert_all_turned(pieces: Pieces, omega: np.ndarray) -> None:
    expected = Rotation.from_rotvec(omega * pieces.time).as_matrix()
    np.testing.assert_allclose(
        pieces.rotation, np.broadcast_to(expected, pieces.rotation.shape), atol=1e-9)
    np.testing.assert_allclose(
        pieces.angular_velocity, np.broadcast_to(omega, (len(pieces.id), 3)), atol=1e-7)


def test_pieces_of_every_size_keep_turning_as_the_body_did():
    solid = make_solid((3, 3, 2))
    # A corner cube flies off in frame 2, two more in frame 4, the rest stays solid.
    part2, part4 = [0] * 18, [0] * 18
    part2[0] = 1
    part4[17], part4[5] = 1, 2
    lineage = build_lineage(
        solid, quiet(9, f2=between(solid, part2), f4=between(solid, part4)), FIRST)
    omega = np.array([20.0, -35.0, 50.0])
    aligner = Aligner(solid, DENSITY, lineage, spinning(solid, lineage, omega))
    for frame in range(FIRST, FIRST + 9):
        pieces = aligner.align(frame)
        assert len(pieces.id) == (1 if frame < FIRST + 2 else 2 if frame < FIRST + 4 else 4)
        assert_all_turned(pieces, omega)


@pytest.mark.parametrize("direction", ["along", "across"])
def test_a_row_that_breaks_up_further_keeps_its_spin_and_tumble(direction):
    solid = make_solid((2, 2, 5))
    axis = solid.orientation[0] @ ([0.0, 0.0, 1.0] if direction == "along" else [0.6, 0.8, 0.0])
    omega = 130.0 * axis
    row = [0] * 5 + [1] * 15
    # The row of five loses its end cube, then falls into a pair and two lone cubes.
    shorter = [0, 0, 0, 0, 1] + [2] * 15
    pair = [0, 0, 1, 2, 3] + [4] * 15
    lineage = build_lineage(solid, quiet(
        20, f3=between(solid, row), f6=between(solid, shorter), f9=between(solid, pair)), FIRST)
    read = spinning(solid, lineage, omega)
    for frame in range(FIRST, FIRST + 20):
        assert_all_turned(align_frame(solid, DENSITY, lineage, frame, read), omega)
    last = align_frame(solid, DENSITY, lineage, FIRST + 19, read)
    assert sorted(np.unique(last.fragment, return_counts=True)[1]) == [1, 1, 1, 2, 15]


def test_a_row_that_is_flung_round_keeps_the_right_direction():
    solid = make_solid((2, 2, 2))
    row = [0, 0, 1, 1, 1, 1, 1, 1]
    lineage = build_lineage(solid, quiet(12, f1=between(solid, row)), FIRST)
    rng = np.random.default_rng(3)

    def read(frame: int) -> Motion:
        # After the break every frame has its own random positions.
        noise = np.random.default_rng(frame).normal(size=(8, 3)) if frame > FIRST else 0.0
        return motion_at(frame, solid.position + noise, rng.normal(size=(8, 3)))

    for frame in range(FIRST + 1, FIRST + 12):
        pieces = align_frame(solid, DENSITY, lineage, frame, read)
        rest = solid.position[1] - solid.position[0]
        world = read(frame).position[1] - read(frame).position[0]
        mine = pieces.rotation[1] @ rest / np.linalg.norm(rest)
        np.testing.assert_allclose(mine, world / np.linalg.norm(world), atol=1e-12)


def test_a_row_turned_end_over_end_has_a_proper_rotation():
    solid = make_solid((1, 1, 2))
    lineage = build_lineage(solid, quiet(2), FIRST)

    def read(frame: int) -> Motion:
        order = [0, 1] if frame == FIRST else [1, 0]
        return motion_at(frame, solid.position[order], np.zeros((2, 3)))

    rotation = align_frame(solid, DENSITY, lineage, FIRST + 1, read).rotation[0]
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    rest = solid.position[1] - solid.position[0]
    np.testing.assert_allclose(rotation @ rest, -rest, atol=1e-12)


def test_at_the_first_frame_lone_cubes_lie_as_at_rest():
    solid = make_solid((1, 1, 1), (1, 1, 2))
    lineage = build_lineage(solid, quiet(3, f0=np.array([0])), FIRST)

    def read(frame: int) -> Motion:
        return motion_at(frame, solid.position, np.ones((3, 3)))

    pieces = align_frame(solid, DENSITY, lineage, FIRST, read)
    np.testing.assert_array_equal(pieces.rotation, np.tile(np.eye(3), (3, 1, 1)))
    np.testing.assert_array_equal(pieces.angular_velocity, 0.0)


@st.composite
def wild_motions(draw):
    """Draw bodies that break at random, with particles that move at random."""
    shapes = draw(st.lists(st.tuples(*[st.integers(1, 3)] * 3), min_size=2, max_size=2))
    solid = make_solid(*shapes)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n_frames = draw(st.integers(1, 6))
    lineage = build_lineage(solid, [
        (FIRST + f, np.flatnonzero(rng.random(len(solid.edge)) < 0.4 * rng.random()))
        for f in range(n_frames)], FIRST)
    shake = draw(st.sampled_from([1e-3, 0.1, 3.0]))

    def read(frame: int) -> Motion:
        own = np.random.default_rng([seed, frame])
        position = solid.position + own.normal(0, shake, solid.position.shape)
        return motion_at(frame, position, own.normal(size=position.shape))

    return solid, lineage, read


def assert_same(a: Pieces, b: Pieces) -> None:
    for field in dataclasses.fields(Pieces):
        np.testing.assert_array_equal(
            getattr(a, field.name), getattr(b, field.name), err_msg=field.name)


@settings(max_examples=60, deadline=None)
@given(wild_motions(), st.randoms())
def test_a_frame_is_the_same_bit_for_bit_however_the_frames_are_chunked(case, random):
    solid, lineage, read = case
    frames = list(range(lineage.first_frame, lineage.last_frame + 1))
    alone = {f: align_frame(solid, DENSITY, lineage, f, read) for f in frames}
    in_order = Aligner(solid, DENSITY, lineage, read)
    for frame in frames:
        assert_same(in_order.align(frame), alone[frame])
    random.shuffle(frames)
    shuffled = Aligner(solid, DENSITY, lineage, read)
    for frame in frames:
        assert_same(shuffled.align(frame), alone[frame])


@settings(max_examples=60, deadline=None)
@given(wild_motions())
def test_mass_momentum_and_centre_are_those_of_the_particles(case):
    solid, lineage, read = case
    for frame in range(lineage.first_frame, lineage.last_frame + 1):
        pieces, motion = align_frame(solid, DENSITY, lineage, frame, read), read(frame)
        mass = DENSITY[solid.body] * solid.volume
        assert pieces.mass.sum() == pytest.approx(mass.sum())
        np.testing.assert_allclose(pieces.mass @ pieces.velocity, mass @ motion.velocity,
                                   atol=1e-12 * mass.sum())
        np.testing.assert_allclose(pieces.mass @ pieces.center, mass @ motion.position,
                                   atol=1e-11 * mass.sum())
        np.testing.assert_array_equal(pieces.fragment, labels_at(lineage, solid, frame))
        np.testing.assert_array_equal(pieces.id, np.unique(pieces.fragment))
        np.testing.assert_array_equal(pieces.damage, motion.damage)
        np.testing.assert_array_equal(pieces.projectile_position, motion.projectile_position)


@settings(max_examples=60, deadline=None)
@given(wild_motions())
def test_transforms_are_rigid_and_take_centre_to_centre(case):
    solid, lineage, read = case
    for frame in range(lineage.first_frame, lineage.last_frame + 1):
        pieces, motion = align_frame(solid, DENSITY, lineage, frame, read), read(frame)
        identity = np.broadcast_to(np.eye(3), pieces.rotation.shape)
        np.testing.assert_allclose(
            pieces.rotation @ np.swapaxes(pieces.rotation, 1, 2), identity, atol=1e-12)
        assert (np.linalg.det(pieces.rotation) > 0).all()
        for i, piece in enumerate(pieces.id):
            own = pieces.fragment == piece
            moved = pieces.rotation[i] @ solid.position[own].mean(axis=0)
            np.testing.assert_allclose(
                moved + pieces.translation[i], motion.position[own].mean(axis=0), atol=1e-11)


def test_frames_in_order_are_read_little_more_than_once():
    solid = make_solid((3, 3, 3))
    broken = np.array_split(np.random.default_rng(0).permutation(len(solid.edge)), 19)
    lineage = build_lineage(
        solid, [(FIRST, np.zeros(0, np.int32)),
                *((FIRST + 1 + f, edges) for f, edges in enumerate(broken))], FIRST)
    inner, reads = spinning(solid, lineage, np.ones(3)), []

    def read(frame: int) -> Motion:
        reads.append(frame)
        return inner(frame)

    aligner = Aligner(solid, DENSITY, lineage, read)
    for frame in range(FIRST, FIRST + 20):
        aligner.align(frame)
    assert max(reads.count(frame) for frame in reads) <= 2
    reads.clear()
    align_frame(solid, DENSITY, lineage, FIRST + 19, read)
    assert max(reads.count(frame) for frame in reads) <= 2
    # A body that has not broken needs no other frame.
    reads.clear()
    align_frame(solid, DENSITY, lineage, FIRST, read)
    assert reads == [FIRST]


def test_motion_that_cannot_be_right_is_refused_with_a_sentence():
    solid = make_solid((2, 2, 2))
    lineage = build_lineage(solid, quiet(2), FIRST)
    still = np.zeros((8, 3))
    lost = solid.position.copy()
    lost[5, 1] = np.nan
    for bad, says in (
        (motion_at(FIRST, lost, still), "position of particle 5 is not finite"),
        (motion_at(FIRST, solid.position, lost), "velocity of particle 5 is not finite"),
        (motion_at(FIRST, still[:4], still[:4]), "8 particles"),
        (motion_at(FIRST + 1, solid.position, still), "is that of frame 1002"),
    ):
        with pytest.raises(ValueError, match=says):
            align_frame(solid, DENSITY, lineage, FIRST, lambda _, bad=bad: bad)
    with pytest.raises(ValueError, match="1001-1002"):
        align_frame(solid, DENSITY, lineage, FIRST + 2, lambda _: bad)
    with pytest.raises(ValueError, match="density"):
        align_frame(solid, np.array([0.0]), lineage, FIRST, lambda _: bad)


def with_turned(motion: Motion, element: list[int], rotation: Rotation,
                velocity: np.ndarray) -> Motion:
    return dataclasses.replace(
        motion, turned_element=np.array(element, np.int32),
        turned_rotation=np.tile(rotation.as_matrix(), (len(element), 1, 1)),
        turned_velocity=np.tile(velocity, (len(element), 1)))


def told(frame: int) -> tuple[Rotation, np.ndarray]:
    """Return how a thing is turned that tumbles for five frames and then lies still."""
    omega = np.array([40.0, -15.0, 25.0])
    elapsed = STEP * min(frame - FIRST, 5)
    return Rotation.from_rotvec(omega * elapsed), omega if frame < FIRST + 5 else np.zeros(3)


@pytest.mark.parametrize("transition_frames", [0, 3])
def test_a_lone_element_whose_turn_is_told_shows_exactly_that(transition_frames):
    solid = make_solid((1, 1, 1), (2, 2, 2))
    lineage = build_lineage(solid, quiet(10), FIRST)
    still = np.zeros((9, 3))

    def read(frame: int) -> Motion:
        return with_turned(motion_at(frame, solid.position, still), [0, 4], *told(frame))

    for frame in range(FIRST, FIRST + 10):
        pieces = align_frame(solid, DENSITY, lineage, frame, read,
                             transition_frames=transition_frames)
        rotation, omega = told(frame)
        np.testing.assert_array_equal(pieces.rotation[0], rotation.as_matrix())
        np.testing.assert_array_equal(pieces.angular_velocity[0], omega)
        # What its particles tell needs no row.
        np.testing.assert_allclose(pieces.rotation[1], np.eye(3), atol=1e-12)
        np.testing.assert_array_equal(pieces.angular_velocity[1], 0.0)


def test_a_row_whose_turn_is_told_has_its_axis_where_its_particles_are():
    solid = make_solid((1, 1, 4))
    lineage = build_lineage(solid, quiet(10), FIRST)
    middle = solid.position.mean(axis=0)
    axis = solid.position[3] - solid.position[0]
    axis /= np.linalg.norm(axis)

    def read(frame: int, slip: float = 0.0) -> Motion:
        rotation, omega = told(frame)
        across = Rotation.from_rotvec(slip * np.cross(axis, [0.0, 0.0, 1.0]))
        arm = (rotation * across).apply(solid.position - middle)
        return with_turned(motion_at(frame, middle + arm, np.cross(omega, arm)), [1, 2],
                           rotation, omega)

    for frame in range(FIRST, FIRST + 10):
        rotation, omega = told(frame)
        pieces = align_frame(solid, DENSITY, lineage, frame, read)
        np.testing.assert_allclose(pieces.rotation[0], rotation.as_matrix(), atol=1e-12)
        np.testing.assert_array_equal(pieces.angular_velocity[0], omega)
        # Where the particles are a little beside it, they are right.
        slipped = align_frame(solid, DENSITY, lineage, frame, lambda f: read(f, 1e-3))
        now = read(frame, 1e-3).position
        np.testing.assert_allclose(
            slipped.rotation[0] @ axis, (now[3] - now[0]) / np.linalg.norm(now[3] - now[0]),
            atol=1e-12)
        np.testing.assert_allclose(slipped.rotation[0], rotation.as_matrix(), atol=2e-3)


def test_what_breaks_off_a_told_row_begins_with_its_turn():
    solid = make_solid((1, 1, 3))
    lineage = build_lineage(solid, quiet(8, f6=between(solid, [0, 1, 1])), FIRST)
    middle = solid.position.mean(axis=0)

    def read(frame: int) -> Motion:
        rotation, omega = told(frame)
        arm = rotation.apply(solid.position - middle)
        motion = motion_at(frame, middle + arm, np.cross(omega, arm))
        return with_turned(motion, [0, 1, 2], rotation, omega) if frame < FIRST + 6 else motion

    for frame in range(FIRST, FIRST + 8):
        pieces = align_frame(solid, DENSITY, lineage, frame, read)
        for rotation in pieces.rotation:
            np.testing.assert_allclose(rotation, told(frame)[0].as_matrix(), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(wild_motions(), st.randoms())
def test_told_turns_do_not_depend_on_how_frames_are_chunked(case, random):
    solid, lineage, read = case

    def read_told(frame: int) -> Motion:
        n_told = np.random.default_rng([7, frame]).integers(solid.n_elements + 1)
        return with_turned(read(frame), list(range(n_told)), *told(frame))

    frames = list(range(lineage.first_frame, lineage.last_frame + 1))
    alone = {f: align_frame(solid, DENSITY, lineage, f, read_told, transition_frames=2)
             for f in frames}
    random.shuffle(frames)
    shuffled = Aligner(solid, DENSITY, lineage, read_told, transition_frames=2)
    for frame in frames:
        assert_same(shuffled.align(frame), alone[frame])
        identity = np.broadcast_to(np.eye(3), alone[frame].rotation.shape)
        np.testing.assert_allclose(
            alone[frame].rotation @ np.swapaxes(alone[frame].rotation, 1, 2), identity,
            atol=1e-12)


def test_told_turns_that_cannot_be_right_are_refused_with_a_sentence():
    solid = make_solid((1, 1, 2))
    lineage = build_lineage(solid, quiet(1), FIRST)
    motion = motion_at(FIRST, solid.position, np.zeros((2, 3)))
    for element, says in (([0, 2], "ascending"), ([1, 0], "ascending"), ([-1], "ascending")):
        bad = with_turned(motion, element, *told(FIRST))
        with pytest.raises(ValueError, match=says):
            align_frame(solid, DENSITY, lineage, FIRST, lambda _, bad=bad: bad)
    bad = with_turned(motion, [0], told(FIRST)[0], np.full(3, np.nan))
    with pytest.raises(ValueError, match="finite"):
        align_frame(solid, DENSITY, lineage, FIRST, lambda _: bad)
