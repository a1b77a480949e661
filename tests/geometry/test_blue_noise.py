"""Laws of blue noise: distance, cover, count, radial distribution, grading, threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from tests.geometry.shapes import box, joined, moved, sphere, surface, torus, turned_in
from vfx.device import Device, open_device
from vfx.geometry.divide.blue_noise import Samples, blue_noise
from vfx.geometry.divide.grading import Grading, toward_impact
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.inside.door import points_inside


def sample(device: Device, shape: Surface, *, spacing: float | None = None,
           count: int | None = None, grading: Grading | None = None, seed: int = 1) -> Samples:
    return blue_noise(device, shape, spacing=spacing, count=count, grading=grading, seed=seed,
                      progress=lambda what, share: None)


def nearest(point: np.ndarray) -> np.ndarray:
    return cKDTree(point).query(point, k=2)[0][:, 1]


@pytest.mark.warp
def test_distance_and_cover_are_kept_in_a_cube(device: Device) -> None:
    spacing = 0.08
    samples = sample(device, box(), spacing=spacing)
    assert nearest(samples.point).min() >= spacing == samples.distance
    assert (samples.point > 0).all() and (samples.point < 1).all()
    # Maximal: no place in the cube, its sides and edges included, is farther from all points.
    random = np.random.default_rng(2)
    place = random.random((200_000, 3))
    place[::4, 0] = 0.0
    place[::8, 1] = 1.0
    away = cKDTree(samples.point).query(place)[0]
    assert away.max() <= samples.cover * spacing
    assert samples.cover < 1.002


def test_points_are_as_dense_as_spheres_added_at_random(device: Device) -> None:
    # Random sequential addition fills 0.384 of space with spheres of this diameter; a cube
    # a diameter wider holds them, with their centres in the cube.
    spacing = 0.05
    n = len(sample(device, box(), spacing=spacing).point)
    filled = n * np.pi / 6.0 * spacing**3
    assert 0.37 < filled < 0.384 * (1.0 + spacing) ** 3


def test_the_radial_distribution_is_that_of_blue_noise(device: Device) -> None:
    spacing = 0.06
    point = sample(device, box(), spacing=spacing).point
    middle = point[(np.abs(point - 0.5) < 0.5 - 3.5 * spacing).all(axis=1)]
    edges = np.linspace(0.0, 3.0, 31)
    pairs = cKDTree(point).count_neighbors(cKDTree(middle), edges * spacing, cumulative=True)
    shell = 4.0 / 3.0 * np.pi * np.diff((edges * spacing) ** 3)
    density = len(middle) / (1.0 - 7.0 * spacing) ** 3
    radial = np.diff(pairs) / (len(middle) * shell * density)
    assert (radial[1:10] == 0).all()                   # nobody within the distance
    assert radial[10] > 1.5                            # most just beyond it
    assert np.abs(radial[-8:] - 1.0).max() < 0.1       # no order far away
    assert radial[13:20].min() < 0.97                  # a trough in between


@pytest.mark.parametrize("count", [1, 2, 7, 100, 3001])
def test_a_count_is_met_exactly(device: Device, count: int) -> None:
    samples = sample(device, torus(24), count=count)
    assert len(samples.point) == count
    assert points_inside(device, torus(24), samples.point).all()
    if count > 1:
        assert nearest(samples.point).min() >= samples.distance


@pytest.mark.parametrize("count", [1, 2, 3, 5, 30])
def test_cover_is_kept_where_points_are_taken_away(device: Device, count: int) -> None:
    shape = joined(*(moved(sphere(8, 0.1), np.array([0.3 * k, 0.0, 0.1 * k])) for k in range(5)))
    samples = sample(device, shape, count=count)
    probe = np.random.default_rng(0).uniform(shape.vertex.min(0), shape.vertex.max(0), (20000, 3))
    probe = probe[points_inside(device, shape, probe)]
    away, which = cKDTree(samples.point).query(probe)
    assert (away <= samples.cover * samples.size[which]).all()


@pytest.mark.warp
@pytest.mark.parametrize("spacing", [10.0, 1e5])
def test_a_spacing_larger_than_the_body_gives_one_point(device: Device, spacing: float) -> None:
    shape = joined(sphere(8, 0.01), moved(sphere(8, 0.01), np.array([0.3, 0.0, 0.0])))
    samples = sample(device, shape, spacing=spacing)
    assert len(samples.point) == 1 and points_inside(device, shape, samples.point).all()


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scale_changes_nothing_but_the_scale(device: Device, scale: float) -> None:
    small = sample(device, sphere(12), spacing=0.2)
    large = sample(device, moved(sphere(12), scale=scale), spacing=0.2 * scale)
    assert abs(len(large.point) - len(small.point)) <= 0.03 * len(small.point)
    assert nearest(large.point).min() >= 0.2 * scale


def test_hollow_and_thin_parts_are_sampled_to_the_last(device: Device) -> None:
    thin = joined(sphere(16), turned_in(sphere(16, 0.97)),
                  moved(box(upper=(1, 1e-3, 1)), (2, 0, 0)))
    samples = sample(device, thin, spacing=0.1)
    assert points_inside(device, thin, samples.point).all()
    middle = 0.5 * (thin.vertex[thin.triangle[:, 0]] + thin.vertex[thin.triangle[:, 1]])
    assert cKDTree(samples.point).query(middle)[0].max() < 0.1 * 1.05


def test_graded_points_keep_the_smaller_of_their_sizes(device: Device) -> None:
    impact, spacing = np.array([0.0, 0.0, 0.5]), 0.03
    samples = sample(device, box(), spacing=spacing, grading=toward_impact(impact, 0.25, 4.0))
    tree = cKDTree(samples.point)
    pair = tree.query_pairs(samples.size.max(), output_type="ndarray")
    apart = np.linalg.norm(samples.point[pair[:, 0]] - samples.point[pair[:, 1]], axis=1)
    assert (apart >= samples.size[pair].min(axis=1) * (1 - 1e-9)).all()
    away = np.linalg.norm(samples.point - impact, axis=1)
    # The number density is a normal distribution of the distance, above what is far away.
    share = 4.0**-3
    expected = spacing * (share + (1 - share) * np.exp(-0.5 * (away / 0.25) ** 2)) ** (-1 / 3)
    assert np.abs(samples.size / expected - 1.0).max() < 0.02
    found = nearest(samples.point)
    assert found[away > 0.9].min() > 2.5 * found[away < 0.2].max() / 1.8


def test_a_field_grades_as_well(device: Device) -> None:
    grading = Grading(lambda place: 1.0 + 2.0 * place[:, 0])
    samples = sample(device, box(), count=800, grading=grading)
    assert len(samples.point) == 800
    assert np.allclose(samples.size, samples.distance * (1.0 + 2.0 * samples.point[:, 0]))


def test_seeds_differ_and_threads_do_not() -> None:
    device = open_device("cpu")
    found = []
    for threads in (1, 2, 3):
        device.threads = threads
        found.append(sample(device, torus(24), spacing=0.08).point)
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    other = sample(device, torus(24), spacing=0.08, seed=2).point
    assert not np.array_equal(found[0][:5], other[:5])


def test_what_encloses_nothing_is_refused(device: Device) -> None:
    with pytest.raises(ValueError, match="encloses a volume of -1 m"):
        sample(device, turned_in(box()), spacing=0.1)
    flat = surface([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 1]])
    with pytest.raises(ValueError, match="encloses"):
        sample(device, flat, count=3)
    with pytest.raises(ValueError, match="either"):
        sample(device, box())
    with pytest.raises(ValueError, match="above 0 everywhere"):
        sample(device, box(), count=3, grading=Grading(lambda place: place[:, 0]))
