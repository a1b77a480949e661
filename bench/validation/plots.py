"""A picture of each validation, for docs/validation.md; needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vfx.bench.validation.findings import Report

Data = dict[str, Any]


def draw(report: Report, folder: Path) -> Path:
    """Draw what a report found; return the file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path = folder / f"validation-{report.case}.png"
    figure = plt.figure(figsize=(8.0, 3.4), layout="constrained")
    DRAWERS[report.case](figure, report.data)
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return path


def draw_lammps(figure: Any, data: Data) -> None:
    """Draw broken bonds over time, here and in LAMMPS, a line for each seed."""
    axes = figure.subplots()
    for number, (here, there) in enumerate(data["rows"]):
        axes.plot(data["looks"], here, "o-", color="#0072b2", alpha=0.6,
                  label=None if number else "vfx")
        axes.plot(data["looks"], there, "x--", color="#d55e00", alpha=0.6,
                  label=None if number else "LAMMPS peri/pmb")
    axes.set(xlabel="step of 2^-25 s", ylabel="broken bonds", title="The same plate, five seeds")
    axes.legend()


def draw_notched_plate(figure: Any, data: Data) -> None:
    """Draw crack speed over the load; the cracks of held and of suddenly pulled plates."""
    figure.set_size_inches(9.0, 4.0)
    grid = figure.add_gridspec(2, 3, width_ratios=(1.3, 1.0, 1.0))
    left = figure.add_subplot(grid[:, 0])
    left.plot(data["loads"], np.array(data["speeds"]) / data["rayleigh"], "o-", color="#0072b2")
    left.axhline(1.0, color="#d55e00", ls="--")
    left.set(xlabel="energy offered / G", ylabel="crack speed / Rayleigh speed", ylim=(0, 1.1))
    held = [(f"held, {data['loads'][which]:g} G", data["maps"][which]) for which in (0, -1)]
    pulled = [(f"pulled at {speed:g} m/s", lost) for speed, lost in data["sudden"].items()]
    for row, plates in enumerate((held, pulled)):
        for column, (title, lost) in enumerate(plates, 1):
            axes = figure.add_subplot(grid[row, column])
            axes.imshow(lost.T, origin="lower", cmap="magma", vmin=0, vmax=0.6)
            axes.set(title=title, xticks=[], yticks=[])


def draw_kalthoff(figure: Any, data: Data) -> None:
    """Draw the damage of the plate, struck from the left, and lines at 68 degrees."""
    axes = figure.subplots()
    axes.imshow(data["map"].T, origin="lower", cmap="magma", vmin=0, vmax=0.6)
    reach = 45 * np.array([0.0, 1.0])
    for tip, side in ((125, 1.0), (75, -1.0)):
        axes.plot(50 + reach * np.cos(np.radians(68)), tip + side * reach * np.sin(np.radians(68)),
                  "--", color="#56b4e9")
    axes.set(title="Damage; dashed: 68 degrees", xlabel="mm", ylabel="mm", xlim=(0, 99),
             ylim=(0, 199))


def draw_energy(figure: Any, data: Data) -> None:
    """Draw the lattice's G over the continuum's, measured and in closed form."""
    axes = figure.subplots()
    axes.plot(list(data["ratio"]), list(data["ratio"].values()), "-", color="#d55e00",
              label="closed form of the lattice")
    horizon, measured, _ = np.array(data["rows"]).T
    axes.plot(horizon, measured, "o", color="#0072b2", label="measured")
    axes.axhline(1.0, color="#999999", ls=":")
    axes.set(xlabel="delta / lambda", ylabel="G of the lattice / G", xscale="log")
    axes.legend()


def draw_parameters(figure: Any, data: Data) -> None:
    """Draw the shares of largest piece, chunks and dust in the mass for each study."""
    panels = figure.subplots(1, len(data), sharey=True)
    for axes, (name, outcomes) in zip(panels, data.items(), strict=True):
        label = [f"{value:g}" for value in outcomes]
        largest = np.array([o.largest for o in outcomes.values()])
        dust = np.array([o.dust for o in outcomes.values()])
        axes.bar(label, largest, color="#0072b2", label="largest piece")
        axes.bar(label, 1 - largest - dust, bottom=largest, color="#56b4e9", label="chunks")
        axes.bar(label, dust, bottom=1 - dust, color="#d55e00", label="dust (< 8 elements)")
        for at, outcome in enumerate(outcomes.values()):
            axes.text(at, 1.02, str(outcome.n_pieces), ha="center", fontsize=7)
        axes.set(xlabel=name, ylim=(0, 1.1))
        axes.tick_params(axis="x", labelsize=7, rotation=30)
    panels[0].set_ylabel("share of the mass")
    panels[0].legend(fontsize=7, loc="lower left")


DRAWERS: dict[str, Callable[[Any, Data], None]] = {
    "lammps": draw_lammps, "notched-plate": draw_notched_plate,
    "kalthoff-winkler": draw_kalthoff, "energy-release": draw_energy,
    "parameters": draw_parameters,
}
