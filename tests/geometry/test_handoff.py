"""What stages hand over: files of a version before are read, and rigid pieces store no more."""

from __future__ import annotations

import numpy as np
import pytest

from vfx.geometry.handoff.types import Motion, Pieces

OLD_MOTION = {
    "frame": np.array(1001), "step": np.array(7), "time": np.array(0.5),
    "position": np.ones((2, 3)), "velocity": np.zeros((2, 3)),
    "damage": np.zeros(2, np.float32), "broken_edge": np.zeros(0, np.int32),
    "broken_step": np.zeros(0, np.int64), "projectile_position": np.zeros((0, 3)),
    "projectile_radius": np.zeros(0), "kinetic_energy": np.array(1.0),
    "bond_energy": np.array(2.0), "momentum": np.zeros(3), "n_bonds": np.array(1)}
OLD_PIECES = {
    "frame": np.array(1001), "time": np.array(0.5), "fragment": np.zeros(2, np.int32),
    "id": np.zeros(1, np.int32), "rotation": np.eye(3)[None], "translation": np.zeros((1, 3)),
    "center": np.zeros((1, 3)), "velocity": np.zeros((1, 3)),
    "angular_velocity": np.zeros((1, 3)), "mass": np.ones(1), "count": np.array([2], np.int32),
    "damage": np.zeros(2, np.float32), "projectile_position": np.zeros((0, 3)),
    "projectile_radius": np.zeros(0)}


@pytest.mark.parametrize(("record", "old"), [(Motion, OLD_MOTION), (Pieces, OLD_PIECES)])
def test_frames_of_a_version_before_are_read_and_say_nothing_of_deformation(record, old):
    made = record.from_arrays(old)
    again = made.to_arrays()
    for name in old.keys() & again.keys():
        assert again[name].dtype == old[name].dtype and np.array_equal(again[name], old[name])
    assert {name for name in again if name not in old} == {
        name for name, array in again.items() if array.size == 0 and name not in old}
    assert record is Motion or made.is_rigid


@pytest.mark.parametrize(("record", "old"), [(Motion, OLD_MOTION), (Pieces, OLD_PIECES)])
def test_a_frame_without_what_every_one_has_is_refused(record, old):
    for name in ("frame", "velocity", "damage", "projectile_radius"):
        with pytest.raises(KeyError, match=name):
            record.from_arrays({key: value for key, value in old.items() if key != name})
