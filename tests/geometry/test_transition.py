"""Pieces pass to their own motion without a jump, and no other motion is changed."""

import numpy as np
from scipy.spatial.transform import Rotation

from tests.geometry.test_align import (
    DENSITY,
    FIRST,
    between,
    make_solid,
    motion_at,
    quiet,
    spinning,
)
from vfx.geometry.pieces.align import Aligner, align_frame
from vfx.geometry.pieces.lineage import build_lineage
from vfx.geometry.pieces.transition import share_left

N_FRAMES = 16
BREAKS, BREAKS_AGAIN, TRANSITION = 3, 6, 8


def bent_bar():
    """Return a bar of 12 cubes that is bent in the middle, breaks there, and then once more."""
    solid = make_solid((12, 2, 2))
    along = (solid.position - solid.position.mean(0)) @ solid.orientation[0][:, 0]
    halves = (along > 0.0).astype(int)
    thirds = halves + (along > 0.35).astype(int)
    lineage = build_lineage(solid, quiet(N_FRAMES, **{
        f"f{BREAKS}": between(solid, halves), f"f{BREAKS_AGAIN}": between(solid, thirds)}), FIRST)
    middle = solid.position.mean(0)
    bent = solid.position.copy()
    for side, angle in ((0, 0.05), (1, -0.05)):
        turn = Rotation.from_rotvec(angle * solid.orientation[0][:, 2])
        bent[halves == side] = middle + turn.apply(solid.position[halves == side] - middle)
    # The last third is bent by itself, too.
    turn = Rotation.from_rotvec(0.04 * solid.orientation[0][:, 1])
    last = thirds == 2
    bent[last] = bent[last].mean(0) + turn.apply(bent[last] - bent[last].mean(0))
    return solid, lineage, lambda frame: motion_at(frame, bent, np.zeros_like(bent))


def shown(pieces, solid):
    """Return where the particles (n, 3) are shown."""
    piece = np.searchsorted(pieces.id, pieces.fragment)
    return (np.einsum("nij,nj->ni", pieces.rotation[piece], solid.position)
            + pieces.translation[piece])


def places(transition):
    solid, lineage, read = bent_bar()
    aligner = Aligner(solid, DENSITY, lineage, read, transition_frames=transition)
    return np.array([shown(aligner.align(FIRST + f), solid) for f in range(N_FRAMES)])


def test_a_break_does_not_throw_its_pieces():
    jump, eased = (np.linalg.norm(np.diff(places(n), axis=0), axis=2).max(axis=1)
                   for n in (0, TRANSITION))
    assert jump[BREAKS - 1] > 0.01 and jump[BREAKS_AGAIN - 1] > 0.004     # [m], in one frame
    assert eased.max() < 0.4 * jump.max()
    assert eased[:BREAKS - 1].max() < 1e-12


def test_pieces_end_where_their_particles_are():
    sudden, eased = places(0), places(TRANSITION)
    last = BREAKS_AGAIN + TRANSITION - 1
    np.testing.assert_allclose(eased[last:], sudden[last:], atol=1e-12)
    assert np.abs(eased[last - 2] - sudden[last - 2]).max() > 1e-6


def test_the_weight_falls_from_one_to_nothing_and_starts_at_rest():
    weight = [share_left(f, 10) for f in range(12)]
    assert weight[0] == 1.0 and weight[10] == weight[11] == 0.0
    assert (np.diff(weight[:11]) < 0.0).all()
    assert 1.0 - share_left(1, 1000) < 1e-4


def test_rigid_motion_is_left_as_it_is():
    solid = make_solid((3, 3, 2))
    part = [0] * 18
    part[0] = 1
    lineage = build_lineage(solid, quiet(9, f2=between(solid, part)), FIRST)
    read = spinning(solid, lineage, np.array([20.0, -35.0, 50.0]))

    for frame in range(FIRST, FIRST + 9):
        plain = align_frame(solid, DENSITY, lineage, frame, read)
        eased = align_frame(solid, DENSITY, lineage, frame, read, transition_frames=5)
        np.testing.assert_allclose(eased.rotation, plain.rotation, atol=1e-9)
        np.testing.assert_allclose(eased.translation, plain.translation, atol=1e-9)
        np.testing.assert_allclose(eased.center, plain.center, atol=1e-9)


def test_a_frame_alone_is_the_same_as_among_others():
    solid, lineage, read = bent_bar()
    aligner = Aligner(solid, DENSITY, lineage, read, transition_frames=TRANSITION)
    for f in (9, 2, 4, 15, 7):
        among = aligner.align(FIRST + f)
        alone = align_frame(solid, DENSITY, lineage, FIRST + f, read,
                            transition_frames=TRANSITION)
        assert np.array_equal(among.rotation, alone.rotation)
        assert np.array_equal(among.translation, alone.translation)
