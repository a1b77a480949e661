"""Rigid things that elements run into, on the device: where they are, and what pushes back.

A prop is a ball or a union of convex hulls. An element touches it when its centre is nearer to
the surface than it reaches along the normal, as with colliders; what approaches is reflected, with
Coulomb friction, and the prop takes the opposite impulse and its moment in the same step, added
up as 64-bit integers. Where n elements touch at once each is met by an n-th of the prop's mass
(mass splitting, Tonge et al. 2012): momentum and angular momentum are kept to rounding, and energy
never grows, however light the prop is.

A hull is the planes of its faces, and more through its edges and corners: an element reaches
around those as far as it does from a face, not as far as the faces extended would meet.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from vfx.device import Device, Launch, Record
from vfx.geometry.handoff.bodies import Vector
from vfx.geometry.handoff.types import Array
from vfx.sim.matter.particles import Particles
from vfx.sim.solver import Poses, Prop

FILE, HEADER = "sim/control/prop.cu", "sim/control/prop.cuh"
#: The largest impulse on an element, in quanta; 2^19 elements may push so at once.
LARGEST_IMPULSE = 2.0**44
#: Words of a cluster's list of hulls, as prop.cuh has it.
NEAR_WORDS, NEVER_LOOKED = 24, -2
#: Hulls whose planes are remembered: things beside an impact are told anew at every tick of it.
KNOWN_HULLS = 8192
#: Planes of a hull count as one where their normals differ by less.
SAME_PLANE = 1e-9


def nowhere() -> Poses:
    """Return the poses of no props."""
    return Poses(np.zeros((0, 3)), np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros((0, 3)))


class Props:
    """All props: constants, state, and the launches that move them.

    ``heaviest`` [kg] is the heaviest element, infinite where one is held, ``fastest`` [m/s] as fast
    as one may be, and ``reach`` [m] how far the largest reaches.
    """

    def __init__(
        self, device: Device, props: Sequence[Prop], poses: Poses, heaviest: float,
        fastest: float, reach: float,
    ) -> None:
        self._device = device
        self.count = len(props)
        if len(poses) != self.count:
            raise ValueError(f"{self.count} props, but poses of {len(poses)}")
        self.mass = np.array([p.mass if math.isfinite(p.mass) else 0.0 for p in props])
        self._inertia = np.array([
            p.inertia if math.isfinite(p.mass) else np.zeros((3, 3)) for p in props],
            np.float64).reshape(-1, 3, 3)
        self._falls = np.array([p.falls for p in props], np.float64)
        hulls = [hull_planes(corner) for prop in props for corner in prop.hulls]
        first = np.cumsum([0, *(len(prop.hulls) for prop in props)])
        self._prop = device.rows(HEADER, "Prop", [
            prop_constants(prop, inertia, (int(first[k]), int(first[k + 1])),
                           largest_impulse(prop.mass, heaviest, fastest), reach)
            for k, (prop, inertia) in enumerate(zip(props, self._inertia, strict=True))])
        self._motion: Any = device.from_host(self._start(poses))
        #: What elements meet: struct Props of prop.cuh.
        self.now = device.struct(
            HEADER, "Props", count=self.count, prop=self._prop,
            plane_start=device.from_host(np.cumsum([0, *map(len, hulls)], dtype=np.int32)),
            plane=device.from_host(np.concatenate([np.zeros((0, 4)), *hulls])),
            hull_ball=device.from_host(np.array([
                hull_ball(corner) for prop in props for corner in prop.hulls]).reshape(-1, 4)),
            motion=self._motion, sum=device.xp.zeros((self.count, 7), np.int64))
        self._near: Any = None              # (n_clusters, NEAR_WORDS): of the cluster's hulls
        self._module = device.module(FILE)

    def _start(self, poses: Poses) -> Array:
        """Return the rows (k, 21) of ``struct PropMotion``."""
        turned = np.einsum("kij,kjl,kml,km->ki", poses.rotation, self._inertia, poses.rotation,
                           poses.angular_velocity)
        axes = np.swapaxes(poses.rotation, 1, 2).reshape(-1, 9)
        return np.column_stack([poses.center, poses.velocity, poses.angular_velocity, turned,
                                axes]).astype(np.float64)

    def persistent(self) -> dict[str, Any]:
        """Return the device arrays that a resume needs."""
        return {"prop_motion": self._motion, "near_hulls": self._near} if self.count else {}

    def move(
        self, particles: Particles, timestep: float, gravity: Vector, floor: Record,
        colliders: Record,
    ) -> list[Launch]:
        """Return the launch that moves the props by a step, balls off floor and colliders."""
        if not self.count:
            return []
        return [self._module.move_props.prepare(
            self.count, timestep, gravity, floor, colliders, self.now, particles.flag)]

    def meet(
        self, particles: Particles, timestep: float, gravity: Vector, elements: Record,
        n_clusters: int,
    ) -> list[Launch]:
        """Return the launches that let elements run into the props and push them back."""
        if not self.count:
            return []
        xp = self._device.xp
        touching = xp.zeros(n_clusters, np.int32)
        near = self._near = xp.full((n_clusters, NEAR_WORDS), NEVER_LOOKED, np.int32)
        return [
            self._module.list_hulls.prepare(
                n_clusters, timestep, self.now, elements, particles.flag, particles.step,
                particles.position, particles.velocity, near),
            self._module.count_touches.prepare(
                n_clusters, self.now, elements, particles.flag, particles.position,
                particles.velocity, near, touching),
            self._module.meet_props.prepare(
                n_clusters, timestep, self.now, elements, particles.flag, particles.step,
                near, touching, particles.position, particles.acceleration, particles.velocity),
            self._module.push_props.prepare(
                self.count, 0.5 * timestep, gravity, self.now, particles.flag)]

    @property
    def poses(self) -> Poses:
        """Where the props are now, on the host."""
        motion = self._device.to_host(self._motion)
        axes = motion[:, 12:].reshape(-1, 3, 3)
        return Poses(motion[:, :3].copy(), np.swapaxes(axes, 1, 2).copy(), motion[:, 3:6].copy(),
                     motion[:, 6:9].copy())

    @property
    def momentum(self) -> Array:
        """(3,) float64 [kg m/s] of the props with a mass."""
        total: Array = self.mass @ self.poses.velocity
        return total

    @property
    def kinetic_energy(self) -> float:
        """Energy [J] of the props with a mass, that of their spin included."""
        motion = self._device.to_host(self._motion)
        spin = self.mass > 0.0
        return 0.5 * float(self.mass @ (motion[:, 3:6] ** 2).sum(1)
                           + (motion[spin, 6:9] * motion[spin, 9:12]).sum())

    def potential_energy(self, gravity: Sequence[float]) -> float:
        """Energy [J] of the props with a mass that fall, in ``gravity`` [m/s^2]."""
        return -float(((self._falls * self.mass) @ self.poses.center) @ np.asarray(gravity))


def prop_constants(
    prop: Prop, inertia: Array, hulls: tuple[int, int], largest: float, reach: float
) -> dict[str, Any]:
    """Return the constants of a prop, by the names of ``struct Prop``."""
    is_free = math.isfinite(prop.mass)
    inverse = np.linalg.inv(inertia) if is_free else np.zeros((3, 3))
    bound = prop.radius if prop.radius > 0.0 else max(
        float(np.linalg.norm(corner, axis=1).max()) for corner in prop.hulls)
    quantum = 2.0 ** math.ceil(math.log2(max(largest, 1e-250))) / LARGEST_IMPULSE
    return {
        "inverse_mass": 1.0 / prop.mass if is_free else 0.0,
        **dict(zip(("inverse_x", "inverse_y", "inverse_z"), inverse, strict=True)),
        "falls": float(prop.falls and is_free), "restitution": prop.restitution,
        "friction": prop.friction, "radius": prop.radius, "bound": bound,
        "first_hull": float(hulls[0]), "end_hull": float(hulls[1]), "quantum": quantum,
        "moment_quantum": quantum * 2.0 ** math.ceil(math.log2(bound + reach))}


def largest_impulse(mass: float, heaviest: float, fastest: float) -> float:
    """Return the largest impulse [N s] on an element: twice the blow of the lighter of the two."""
    lighter = min(heaviest, mass)
    return 8.0 * fastest * (lighter if math.isfinite(lighter) else 1.0)


def hull_planes(corner: Array) -> Array:
    """Return the planes (p, 4) around the hull of (v, 3) corners: unit normal, and distance [m].

    They are those of its faces, and one through each edge and each corner, halfway between the
    faces that meet there. Those of a hull that was asked for before are known already.
    """
    given = np.ascontiguousarray(corner, np.float64)
    return _planes_of(given.tobytes(), len(given))


@functools.lru_cache(maxsize=KNOWN_HULLS)
def _planes_of(data: bytes, count: int) -> Array:
    """Return the planes of a hull whose corners are given as bytes."""
    corner = np.frombuffer(data).reshape(count, 3)
    middle = corner.mean(axis=0)
    scale = float(np.abs(corner - middle).max())
    hull = ConvexHull((corner - middle) / scale)
    face = hull.equations[:, :3]
    normals = [face, *edge_normals(face, hull.neighbors)]
    at_corner = np.zeros_like(corner)
    # Each face counts once at a corner, in however many triangles it is cut.
    for vertex, plane in sorted({
            (int(vertex), tuple(np.round(face[k], 6).tolist()))
            for k, simplex in enumerate(hull.simplices) for vertex in simplex}):
        at_corner[vertex] += plane
    normals.append(at_corner[hull.vertices])
    normal = np.concatenate(normals)
    normal = normal / np.linalg.norm(normal, axis=1)[:, None]
    _, first = np.unique(np.round(normal / SAME_PLANE / 10.0), axis=0, return_index=True)
    normal = normal[np.sort(first)]
    planes = np.column_stack([normal, (corner @ normal.T).max(axis=0)])
    planes.flags.writeable = False
    return planes


def hull_ball(corner: Array) -> Array:
    """Return the centre and the radius [m] of a ball around (v, 3) corners, (4,)."""
    middle = 0.5 * (corner.min(axis=0) + corner.max(axis=0))
    return np.append(middle, np.linalg.norm(corner - middle, axis=1).max())


def edge_normals(face: Array, neighbors: Array) -> Iterator[Array]:
    """Yield the sums of the normals on both sides of each edge."""
    for k, others in enumerate(neighbors):
        yield face[k] + face[others[others > k]]
