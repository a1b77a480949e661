"""What a shot says about the things that break: their shape, place and material."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vfx.geometry.schema import REQUIRED, setting

Vector = tuple[float, float, float]

#: Ranges of lengths, places, speeds and turns: physical, and wide of where numbers overflow.
SIZE: dict[str, Any] = {"unit": "m", "at_least": 1e-9, "at_most": 1e5}
PLACE: dict[str, Any] = {"unit": "m", "at_least": -1e7, "at_most": 1e7}
SPEED: dict[str, Any] = {"unit": "m/s", "at_least": -1e6, "at_most": 1e6}
TURN: dict[str, Any] = {"unit": "degrees", "at_least": -1e6, "at_most": 1e6}


@dataclass(frozen=True)
class Body:
    """One breakable object. World axes: y is up; lengths in metres."""

    name: str = setting("body", "Name of the body; pieces are called <name>_<id>.")
    material: str = setting(
        REQUIRED, "The material it is made of: a [materials.<name>] of this file.")
    shape: str = setting("grid", "How it is divided into elements.", choices=("grid",))
    cells: tuple[int, int, int] = setting(
        REQUIRED, "Number of cubes along x, y and z.", at_least=1, at_most=100_000)
    spacing: float = setting(1e-3, "Edge of a cube; the length scale lambda.", **SIZE)
    center: Vector = setting((0.0, 0.0, 0.0), "Centre of the body in the world.", **PLACE)
    rotation: Vector = setting((0.0, 0.0, 0.0), "Rotation about x, then y, then z.", **TURN)
    velocity: Vector = setting((0.0, 0.0, 0.0), "Initial velocity.", **SPEED)
    angular_velocity: Vector = setting(
        (0.0, 0.0, 0.0), "Initial angular velocity about the centre.", unit="rad/s",
        at_least=-1e9, at_most=1e9)
