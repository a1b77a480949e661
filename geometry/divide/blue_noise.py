"""Blue-noise points in the volume of a closed surface: maximal Poisson-disk sampling.

No two points are nearer than the length scale, and no place inside is farther than that from
all points (up to 2^-DEEPEST of it): nothing can be added. Cells of a lattice that may still
take a point throw one dart each; darts that are too near to a point are lost, and of darts too
near to each other the first in a random order stays, as if they had been thrown one by one.
Cells that one point covers whole are closed; the others are cut into eight (Ebeida, Mitchell,
Patney, Davidson, Owens 2012, "A Simple Algorithm for Maximal Poisson-Disk Sampling in High
Dimensions"). Darts and order are hashes of cell and seed: threads change nothing.

With a count instead of a distance, the distance is searched that gives slightly more points,
and the few that are too many are taken from the closest pairs.

Graded, two points are no nearer than the smaller of their two sizes, and every place has a
point within its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.grading import Grading, SizeField, sizes_of
from vfx.geometry.divide.point_grid import PointGrid, grid_points
from vfx.geometry.divide.thickness import refuse_film
from vfx.geometry.handoff.elements import Progress, Surface
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.points import WindingNumbers
from vfx.geometry.mesh.inspect import counted

#: How often cells throw a dart before they are cut, level by level.
TURNS = (3, 2, 1)
#: Times a cell is cut into eight before what is still open is left.
DEEPEST = 10
#: From this level on, cells that the surface passes must have a corner inside to be kept: where
#: sheets lie upon each other, nothing is inside, however small the cells.
PROVEN = 5
#: Cells of the first lattice.
MOST_CELLS = 60_000_000
#: Number of points times distance cubed, a volume; and more of them a surface, times distance
#: squared (measured on cubes).
SITES_A_CUBE, SITES_A_SQUARE = 0.733, 0.232
#: Samplings that the search for a count may take.
MOST_TRIES = 12


@dataclass(frozen=True)
class Samples:
    """Points inside a surface."""

    point: Array          # (n, 3) float64 [m]
    size: Array           # (n,) float64 [m]: length scale at each point
    distance: float       # [m]: no two points are nearer than this
    cover: float          # every place inside has a point within this times its size


def blue_noise(
    device: Device, surface: Surface, *, spacing: float | None, count: int | None,
    grading: Grading | None, seed: int, progress: Progress,
) -> Samples:
    """Return points inside the surface: ``spacing`` [m] apart at least, or ``count`` of them."""
    if (spacing is None) == (count is None):
        raise ValueError("blue noise takes either the distance or the number of its points")
    sampler = Sampler(device, surface, grading, seed)
    if spacing is not None:
        progress("blue noise", 0.0)
        samples = sampler.sample(spacing)
        if len(samples.point) == 0:
            raise ValueError(f"has no room for a site at a spacing of {spacing:g} m; lower the "
                             "spacing")
        return samples
    assert count is not None
    return sampler.sample_count(count, progress)


class Sampler:
    """Samples one surface at any distance."""

    def __init__(
        self, device: Device, surface: Surface, grading: Grading | None, seed: int
    ) -> None:
        self.device = device
        self.seed = seed & 0xffffffff
        self.windings = WindingNumbers(
            device, device.from_host(np.asarray(surface.vertex, np.float64)),
            device.from_host(np.asarray(surface.triangle, np.int32)))
        used = surface.vertex[np.unique(surface.triangle)]
        self.lower, self.upper = used.min(axis=0), used.max(axis=0)
        a, b, c = (surface.vertex[surface.triangle[:, k]] for k in range(3))
        self.volume = float(np.einsum("ij,ij->", a - a[0], np.cross(b - a[0], c - a[0])) / 6.0)
        if not self.volume > 0.0:
            raise ValueError(f"the surface encloses a volume of {self.volume:g} m^3; it must be "
                             "closed, with its triangles anticlockwise seen from outside")
        self.area = float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2.0)
        self.relative = SizeField.of(grading, self.lower, self.upper)
        refuse_film(self.volume, self.area)

    def sample_count(self, count: int, progress: Progress) -> Samples:
        """Return exactly ``count`` points, as far apart as the search finds."""
        # Too many by this share: more than the scatter of a sampling, so that few tries are lost.
        margin = 0.4 / np.sqrt(count) + 0.0004
        spacing = self._expected_spacing(count * (1.0 + margin))
        best: Samples | None = None
        low, high = 0.0, np.inf            # distances that gave enough, and too few
        for attempt in range(MOST_TRIES):
            progress("blue noise", attempt / (attempt + 2.0))
            samples = self.sample(spacing)
            found = len(samples.point)
            if found >= count and (best is None or found < len(best.point)):
                best = samples
            if count <= found <= count * (1.0 + 3.0 * margin) + 2:
                break
            low, high = (max(low, spacing), high) if found >= count else (low, min(high, spacing))
            spacing *= (max(found, 0.5) / (count * (1.0 + margin))) ** (1.0 / 3.0)
            if not low < spacing < high:
                spacing = 0.5 * (low + high) if np.isfinite(high) and low > 0 else spacing * 0.9
        if best is None:
            raise ValueError(f"has no room for {counted(count, 'site')}; ask for fewer elements")
        return self._thin_out(best, count)

    def _expected_spacing(self, count: float) -> float:
        """Return the distance [m] at which a sampling probably has so many points."""
        inner = SITES_A_CUBE * self.volume * self.relative.mean_crowding
        spacing = (inner / count) ** (1.0 / 3.0)
        for _ in range(20):
            rim = SITES_A_SQUARE * self.area * self.relative.mean_crowding ** (2.0 / 3.0)
            spacing = ((inner + rim * spacing) / count) ** (1.0 / 3.0)
        return float(spacing)

    def _thin_out(self, samples: Samples, count: int) -> Samples:
        """Take the points that are too many from the closest pairs."""
        surplus = len(samples.point) - count
        if surplus == 0:
            return samples
        from scipy.spatial import cKDTree
        near, partner = cKDTree(samples.point).query(samples.point, k=2)
        closeness = near[:, 1] / samples.size
        keep = np.ones(len(samples.point), np.bool_)
        for index in np.argsort(closeness, kind="stable"):
            if surplus and keep[partner[index, 1]]:
                keep[index] = False
                surplus -= 1
        # Where points are few, those left are no pairs any more.
        keep[np.flatnonzero(keep)[:surplus]] = False
        point, size = samples.point[keep], samples.size[keep]
        # What a lost point covered is now as far from the nearest that stays.
        away, nearest = cKDTree(point).query(samples.point[~keep])
        cover = ((samples.cover * samples.size[~keep] + away) / size[nearest]).max()
        return Samples(point, size, samples.distance, max(samples.cover, float(cover)))

    def sample(self, spacing: float) -> Samples:
        """Return a maximal sampling: points at least ``spacing`` apart."""
        xp = self.device.xp
        kernels = self.device.module("geometry/divide/blue_noise.cu")
        field = self.relative.struct(self.device, spacing)
        steepest = spacing * self.relative.steepest
        cells = _Cells(self, spacing * self.relative.typical / np.sqrt(3.0))
        point = xp.empty((0, 3), xp.float64)
        cell, surface = cells.first()
        level = 0
        while len(cell) > 0 and level <= DEEPEST:
            step = cells.step / 2**level
            for turn in range(TURNS[min(level, len(TURNS) - 1)]):
                dart = xp.empty((len(cell), 3), xp.float64)
                kernels.throw_darts(len(cell), self.seed, 16 * level + turn, step, self.lower,
                                    cell, dart)
                # Cells that the surface passes are partly outside.
                doubtful = xp.flatnonzero(surface)
                if len(doubtful) > 0:
                    kept = xp.ones(len(dart), xp.bool_)
                    kept[doubtful] = self.windings.of(dart[doubtful]) > 0
                    dart = dart[kept]
                point = self._add(field, point, dart, spacing)
                near = (steepest, self.lower, field, self._grid(point, spacing).struct)
                flag = xp.empty(len(cell), xp.uint8)
                kernels.cells_open(len(cell), 0, step, *near, cell, flag)
                cell, surface = _take(cell, surface, xp.flatnonzero(flag))
            if level < DEEPEST:
                flag = xp.empty(8 * len(cell), xp.uint8)
                kernels.cells_open(len(cell), 1, step, *near, cell, flag)
                which = xp.flatnonzero(flag)
                child = xp.empty((len(which), 3), xp.int32)
                child_surface = xp.empty(len(which), xp.uint8)
                kernels.make_children(len(which), which, cell, surface, child, child_surface)
                cell, surface = cells.drop_outside(child, child_surface, level + 1)
            level += 1
        host = self.device.to_host(point)
        cover = 1.0 + 2.0**-DEEPEST * float(cells.step * np.sqrt(3.0) / spacing)
        return Samples(host, sizes_of(self.relative, spacing, host), spacing, cover)

    def _grid(self, point: Any, spacing: float) -> PointGrid:
        return grid_points(self.device, point, self.lower, self.upper,
                           spacing * self.relative.typical)

    def _add(self, field: Any, point: Any, dart: Any, spacing: float) -> Any:
        """Return the points and the darts that find room, in a random order, one by one."""
        xp = self.device.xp
        kernels = self.device.module("geometry/divide/blue_noise.cu")

        def apart(grid: PointGrid, dart: Any) -> Any:
            flag = xp.empty(len(dart), xp.int32)
            kernels.darts_apart(len(dart), field, grid.struct, dart, flag)
            return dart[flag > 0]

        if len(point) > 0:
            dart = apart(self._grid(point, spacing), dart)
        added = [point]
        while len(dart) > 0:
            grid = self._grid(dart, spacing)
            first = xp.empty(len(dart), xp.int32)
            kernels.first_darts(len(dart), self.seed, field, grid.struct, first)
            winner = grid.point[first > 0]
            added.append(winner)
            dart = apart(self._grid(winner, spacing), grid.point[first == 0])
        return xp.concatenate(added)


class _Cells:
    """The lattice whose cells throw darts, and which triangles pass through them."""

    def __init__(self, sampler: Sampler, step: float) -> None:
        self.sampler = sampler
        device, xp = sampler.device, sampler.device.xp
        kernels = device.module("geometry/divide/blue_noise.cu")
        extent = np.maximum(sampler.upper - sampler.lower, 1e-300)
        # Cells far larger than the surface would be cut to no purpose before one meets it.
        step = min(step, float(extent.max()))
        while np.prod(np.floor(extent / step) + 1.0) > MOST_CELLS:
            step *= 1.1
        self.step = step
        self.shape = tuple(int(c) for c in np.floor(extent / step) + 1.0)
        nx, ny, nz = self.shape
        self.lattice = device.struct(
            "geometry/divide/blue_noise.cu", "Lattice", nx=nx, ny=ny, nz=nz,
            lower=sampler.lower, scale=1.0 / step)
        corner = sampler.windings.corner
        n = len(corner)
        count = xp.empty(n, xp.int64)
        kernels.count_triangle_cells(n, self.lattice, corner, count)
        end = xp.cumsum(count)
        key = xp.empty(int(end[-1]), xp.int64)
        kernels.list_triangle_cells(n, self.lattice, corner, end - count, key)
        key.sort()
        self.cell_triangle = (key % n).astype(xp.int32)
        crossed = key // n
        # Places of the crossed cells; the others have no triangles.
        first = xp.ones(len(crossed), xp.bool_)
        first[1:] = crossed[1:] != crossed[:-1]
        self.crossed = crossed[first]
        n_cells = self.shape[0] * self.shape[1] * self.shape[2]
        length = xp.zeros(n_cells + 1, xp.int64)
        place = xp.concatenate([xp.flatnonzero(first), xp.full(1, len(key), xp.int64)])
        length[self.crossed + 1] = place[1:] - place[:-1]
        self.start = xp.cumsum(length)

    def first(self) -> tuple[Any, Any]:
        """Return the cells (n, 3) that hold something of the inside; (n,) where the surface is."""
        device, xp = self.sampler.device, self.sampler.device.xp
        nx, ny, nz = self.shape
        columns = self.sampler.windings.columns(2)
        winding = xp.empty((nx * ny, nz), xp.uint8)
        device.module("geometry/divide/blue_noise.cu").lattice_winding(
            nx * ny, self.lattice, columns.grid, columns.corner, columns.start,
            columns.column_triangle, winding)
        winding = winding.ravel()
        inside = (winding > 0) & (winding < 128)
        inside[self.crossed] = True
        place = xp.flatnonzero(inside)
        surface = xp.zeros(len(winding), xp.uint8)
        surface[self.crossed] = 1
        column = place // nz
        cell = xp.stack([column % nx, column // nx, place % nz], axis=1).astype(xp.int32)
        return xp.ascontiguousarray(cell), surface[place]

    def _corners(self) -> Any:
        return self.sampler.device.from_host(
            np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.int32))

    def drop_outside(self, cell: Any, surface: Any, level: int) -> tuple[Any, Any]:
        """Drop cells that the surface does not pass and that are outside."""
        sampler = self.sampler
        device, xp = sampler.device, sampler.device.xp
        doubtful = xp.flatnonzero(surface)
        if len(doubtful) == 0:
            return cell, surface
        step = self.step / 2**level
        tried = xp.ascontiguousarray(cell[doubtful])
        crossed = xp.empty(len(tried), xp.int32)
        device.module("geometry/divide/blue_noise.cu").cells_crossed(
            len(tried), level, step, self.lattice, sampler.windings.corner, self.start,
            self.cell_triangle, tried, crossed)
        surface = surface.copy()
        surface[doubtful] = (crossed > 0).astype(xp.uint8)
        alone = doubtful[crossed == 0]
        kept = xp.ones(len(cell), xp.bool_)
        if len(alone) > 0:
            lower = device.from_host(sampler.lower)
            center = lower + step * (cell[alone] + 0.5)
            kept[alone] = sampler.windings.of(xp.ascontiguousarray(center)) > 0
        if level >= PROVEN:
            meets = doubtful[crossed > 0]
            corner = (cell[meets][:, None, :] + self._corners()[None, :, :]).reshape(-1, 3)
            place = device.from_host(sampler.lower) + step * corner
            inside = sampler.windings.of(xp.ascontiguousarray(place)) > 0
            kept[meets] = inside.reshape(-1, 8).any(axis=1)
        return _take(cell, surface, xp.flatnonzero(kept))


def _take(cell: Any, surface: Any, kept: Any) -> tuple[Any, Any]:
    return cell[kept], surface[kept]
