"""How thin a body may be for its elements, told from volume and area before anything is built.

A wide plate is ``mean_thickness`` thick; other bodies are thicker somewhere.
"""

from __future__ import annotations

#: Cells as small as a body is thin that its surface may have: they are what darts need to hit it.
MOST_THIN_CELLS = 30_000_000
#: Spacings in thicknesses of a plate: wider, its cubes have half as much volume again, or its
#: layers of tetrahedra leave out too much of it.
MOST_SPACING = {"grid": 1.5, "tet-shell": 5.2}
#: Share of that for layers in meshes, whose walls are thinner in some places than in others.
UNEVEN_WALLS = 0.67
#: Layers of a number of tetrahedra are so much farther apart in a plate than in a thick body.
PLATE_LAYERS = 1.5


def mean_thickness(volume: float, area: float) -> float:
    """Return the thickness [m] of a plate of such a volume [m^3] and area [m^2]."""
    return 2.0 * volume / area


def least_thickness(area: float) -> float:
    """Return how thick [m] a body of such an area [m^2] must be on average for any elements."""
    return float((area / MOST_THIN_CELLS) ** 0.5)


def refuse_film(volume: float, area: float) -> None:
    """Raise ValueError where a body is too thin even for Voronoi cells."""
    thick, least = mean_thickness(volume, area), least_thickness(area)
    if thick < least:
        raise ValueError(f"is too thin to be divided: {thick:.3g} m on average; make it "
                         f"{least:.2g} m thick at least")


def way_out(volume: float, area: float, finer: str) -> str:
    """Return what to do where a body is too thin for its elements; ``finer`` is to divide it more.

    Neither that nor another shape helps a film.
    """
    if mean_thickness(volume, area) < least_thickness(area):
        return (f"make it {least_thickness(area):.2g} m thick at least, and use shape = "
                '"voronoi", which follows the surface')
    return f'{finer}, or use shape = "voronoi", which follows the surface'
