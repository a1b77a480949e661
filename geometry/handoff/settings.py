"""What a shot says about the pieces."""

from __future__ import annotations

from dataclasses import dataclass

from vfx.geometry.handoff.schema import setting


@dataclass(frozen=True)
class Align:
    """How pieces follow their particles."""

    transition_frames: int = setting(
        4, "Frames in which a piece passes from the motion of what it broke off to its own; 0 for "
        "at once, with the jerk of pieces that hung by a thin bridge.",
        at_least=0, at_most=48)
