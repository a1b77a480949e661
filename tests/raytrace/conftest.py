"""Scenes for the renderer's tests: boxes of cubes, whole, holed or in pieces."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from vfx.geometry.bodies import Body
from vfx.geometry.grid import build_solid
from vfx.geometry.handoff import Array, FragmentsFrame, Solid


@dataclass(frozen=True)
class Plane:
    """A floor as the sim's settings describe it."""

    enabled: bool = True
    height: float = 0.0


def box_solid(cells: tuple[int, int, int], spacing: float = 1.0,
              center: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Solid:
    return build_solid([Body(material="stone", cells=cells, spacing=spacing, center=center)])


def kept(solid: Solid, keep: Array) -> Solid:
    """Return the solid of the elements where ``keep`` (n,) is true."""
    number = np.cumsum(keep) - 1
    edge = solid.edge[keep[solid.edge].all(axis=1)]
    return dataclasses.replace(
        solid, position=solid.position[keep], volume=solid.volume[keep], size=solid.size[keep],
        body=solid.body[keep], cell=solid.cell[keep], edge=number[edge].astype(np.int32))


def in_pieces(solid: Solid, pieces: int, seed: int, spread: float, turn: float) -> FragmentsFrame:
    """Cut a solid into Voronoi pieces, each moved and turned at random."""
    random = np.random.default_rng(seed)
    site = random.choice(solid.position, pieces, replace=False)
    _, label = cKDTree(site).query(solid.position)
    rotation = Rotation.from_rotvec(turn * random.normal(size=(pieces, 3))).as_matrix()
    move = spread * random.normal(size=(pieces, 3))
    translation = site + move - np.einsum("kij,kj->ki", rotation, site)
    count = np.bincount(label, minlength=pieces)
    still = np.zeros((pieces, 3))
    return FragmentsFrame(
        frame=1001, time=0.0, fragment=label.astype(np.int32),
        id=np.arange(pieces, dtype=np.int32), rotation=rotation, translation=translation,
        center=site + move, velocity=still, angular_velocity=still, mass=count.astype(float),
        count=count.astype(np.int32), damage=np.zeros(solid.n_particles, np.float32),
        projectile_position=np.zeros((0, 3)), projectile_radius=np.zeros(0))


@pytest.fixture
def floor_plane() -> type[Plane]:
    return Plane


@pytest.fixture
def make_solid() -> Callable[..., Solid]:
    return box_solid


@pytest.fixture
def keep_elements() -> Callable[[Solid, Array], Solid]:
    return kept


@pytest.fixture
def make_pieces() -> Callable[..., FragmentsFrame]:
    """One whole piece at rest, unless asked for more."""

    def make(solid: Solid, pieces: int = 1, seed: int = 1, spread: float = 0.0,
             turn: float = 0.0) -> FragmentsFrame:
        return in_pieces(solid, pieces, seed, spread, turn)

    return make
