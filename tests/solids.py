"""Solids for tests that have no device of their own."""

from __future__ import annotations

from collections.abc import Sequence

from vfx.device import open_device
from vfx.geometry.divide import build
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Solid


def build_solid(bodies: Sequence[Body]) -> Solid:
    """Return the solid of bodies, built on the CPU."""
    return build.build_solid(open_device("cpu"), bodies).solid
