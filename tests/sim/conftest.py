"""Every law of the simulation is proved on both layouts of the bonds."""

from __future__ import annotations

import pytest

from vfx.sim.bonds import simulate


@pytest.fixture(params=["lattice", "clusters"], autouse=True)
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make whole boxes of cubes take the lattice, or the layout for any body."""
    if request.param == "clusters":
        monkeypatch.setattr(simulate, "is_lattice", lambda solid: False)
    name: str = request.param
    return name
