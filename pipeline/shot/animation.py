"""The way of a body that follows an animation, from its file to times and places.

Frames are times: an animation goes as fast as the picture does, whatever the speed of the shot.
The body begins as the shot places it, and moves as the animated thing has moved since the first
frame. When it is let go, its velocity is that of a curve through the transforms of five frames, two
on either side where the animation goes on, else the last three.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vfx.geometry.handoff.usd_motion import read_motion
from vfx.sim.solver import Course

if TYPE_CHECKING:
    from vfx.pipeline.shot.shot_file import Shot

#: Moments a frame at which a transform is read; what is between goes straight.
MOMENTS = 8
#: Frames about the last, and the weights of a curve's slope there.
_AROUND = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_BEFORE = np.array([-2.0, -1.0, 0.0, 0.0, 0.0]), np.array([0.5, -2.0, 1.5, 0.0, 0.0])


def make_course(shot: Shot, number: int) -> Course:
    """Return the course of a body, counted from 0; raises as ``read_motion``."""
    body = shot.bodies[number]
    first, until = shot.first_frame, body.animation_until
    count = math.floor((until - first) * MOMENTS)
    frame = np.unique([*(first + np.arange(count + 1) / MOMENTS), until])
    near = until + _AROUND[0]
    motion = read_motion(shot.folder / body.animation, body.animation_prim,
                         np.concatenate([frame, near, until + _BEFORE[0]]))
    # The nearest frame beyond tells whether somebody animated what comes after.
    goes_on = motion.last >= near[-1]
    rate = (_AROUND if goes_on else _BEFORE)[1] * shot.fps / shot.speed_at(until)
    rotation = motion.rotation @ motion.rotation[0].T
    place = motion.place - rotation @ motion.place[0]
    there = slice(len(frame), len(frame) + 5) if goes_on else slice(len(frame) + 5, None)
    return Course(
        body=number, time=np.array([shot.time_of(each) for each in frame.tolist()]),
        place=place[:len(frame)], rotation=rotation[:len(frame)], near_place=place[there],
        near_rotation=rotation[there], rate=rate)
