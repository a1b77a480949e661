"""The plot of a simulation's history shows every curve, whatever the numbers are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageColor

from vfx.pipeline.show.plots import (
    _COLORS,
    diagnostics_panels,
    draw_panels,
    linear_ticks,
    log_ticks,
    write_diagnostics_plot,
)
from vfx.pipeline.work.diagnostics import DiagnosticsTable


def history(n: int) -> dict[str, np.ndarray]:
    """The columns of a run of ``n`` samples, with pieces at every tenth."""
    time = np.linspace(0.0, 3e-3, n)
    pieces = np.full(n, np.nan)
    pieces[::10] = 1.0 + np.arange(0, n, 10) ** 2
    return {
        "step": np.arange(n, dtype=float), "time": time, "kinetic_energy": 1e5 * time,
        "bond_energy": 10.0 * np.sin(1e3 * time), "potential_energy": 40.0 - 1e3 * time,
        "momentum_x": -time, "momentum_y": 0.5 * time, "momentum_z": 2.0 * time,
        "bonds": 1e6 * (1.0 - 50.0 * time), "broken_edges": time, "fragments": pieces}


def color_count(picture: Image.Image, color: str) -> int:
    near = np.abs(np.asarray(picture).astype(int) - ImageColor.getrgb(color)).max(2) < 12
    return int(near.sum())


def test_every_quantity_has_its_curve() -> None:
    columns = history(101)
    panels = diagnostics_panels(columns)
    assert [panel.heading for panel in panels] == ["Energy", "Momentum", "Bonds", "Fragments"]
    assert [len(panel.curves) for panel in panels] == [4, 3, 1, 1]
    picture = draw_panels(columns["time"], panels, "plate")
    for color in _COLORS:
        assert color_count(picture, color) > 300
    nothing = draw_panels(columns["time"], [], "plate")
    assert all(color_count(nothing, color) == 0 for color in _COLORS[:3])


def test_energies_add_up_to_their_sum() -> None:
    energy = diagnostics_panels(history(50))[0]
    *parts, total = energy.curves
    assert total.label == "sum"
    np.testing.assert_allclose(sum(part.value for part in parts), total.value)


def test_what_balls_lose_and_pieces_gain_is_drawn_as_one_sum() -> None:
    columns = history(50)
    gained = columns["momentum_z"]
    with_balls = {**columns, "ball_energy": 7.0 - columns["kinetic_energy"],
                  **{f"ball_momentum_{axis}": 3.0 - columns[f"momentum_{axis}"] for axis in "xyz"}}
    energy, momentum, *_ = diagnostics_panels(with_balls)
    assert [curve.label for curve in energy.curves] == [
        "motion", "bonds", "balls", "height (change)", "sum"]
    assert gained.max() > 0.0
    for curve in momentum.curves:
        np.testing.assert_allclose(curve.value, 3.0)


@pytest.mark.parametrize("spoil", [
    lambda columns: {name: column[:1] for name, column in columns.items()},
    lambda columns: {name: column[:0] for name, column in columns.items()},
    lambda columns: {name: np.zeros_like(column) for name, column in columns.items()},
    lambda columns: {**columns, "kinetic_energy": np.full(101, np.nan)},
    lambda columns: {**columns, "kinetic_energy": np.geomspace(1.0, 1e300, 101)},
    lambda columns: {**columns, "bond_energy": np.full(101, np.inf)},
    lambda columns: {"time": columns["time"], "kinetic_energy": columns["kinetic_energy"]},
    lambda columns: {"time": columns["time"]},
])
def test_odd_histories_are_drawn_without_fuss(spoil) -> None:
    columns = spoil(history(101))
    picture = draw_panels(columns["time"], diagnostics_panels(columns), "plate")
    assert picture.size == (1600, 1000)


def test_the_table_becomes_a_readable_png(tmp_path: Path) -> None:
    table = DiagnosticsTable(tmp_path)
    for step in range(0, 100, 10):
        row = {"time": step * 1e-7, "kinetic_energy": 0.1 * step, "bonds": 100 - step}
        table.add(step, row if step % 50 else {**row, "fragments": 1 + step})
    table.publish()
    read = DiagnosticsTable(tmp_path)
    read.read()
    columns = read.columns()
    assert columns["bonds"].tolist() == list(range(100, 0, -10))
    assert np.isnan(columns["fragments"]).sum() == 8
    assert (read.latest("bonds"), read.latest("fragments"), read.latest("x")) == (10, 51, None)
    write_diagnostics_plot(tmp_path / "plot.png", columns, "a plate")
    with Image.open(tmp_path / "plot.png") as picture:
        picture.load()
        assert picture.format == "PNG"


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12))
def test_ticks_are_few_round_and_inside(low: float, span: float) -> None:
    high = low + span
    ticks = linear_ticks(low, high)
    assert len(ticks) <= 9
    if span > 1e-6 * abs(low):
        assert len(ticks) >= 2
        step = ticks[1] - ticks[0]
        assert min(ticks) >= low - 1e-6 * span and max(ticks) <= high + 1e-6 * span
        lead = step / 10.0 ** np.floor(np.log10(step) + 1e-6)
        assert min(abs(lead - digit) for digit in (1.0, 2.0, 5.0, 10.0)) < 1e-3


def test_log_ticks_are_powers_of_ten() -> None:
    assert log_ticks(1.0, 1300.0) == [1.0, 10.0, 100.0, 1000.0]
    assert log_ticks(3.0, 90.0) == [10.0]
