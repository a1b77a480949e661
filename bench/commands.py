"""The commands ``vfx bench …``; the package registers them under ``vfx.commands``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from vfx.bench.rows import Row, table, write_json
from vfx.pipeline.cli.options import ends_in_sentences, json_option, kernel_options
from vfx.pipeline.errors import MissingInput
from vfx.pipeline.paths import NamedPath
from vfx.pipeline.progress import Progress


@click.group()
def bench() -> None:
    """Measure speed.

    Against the paper, other programs and this machine.
    """


@bench.command("sim")
@click.option("--case", "case", type=click.Choice(
    ["glass", "vase", "dragon", "drop", "window", "pile", "handover", "shared"]),
              help="What to simulate; by default glass, vase and dragon. drop, window: a shot from "
              "geometry to align; pile: rigid hulls; handover: pieces to bonds and back; shared: "
              "two sims at once.")
@click.option("--at", type=click.IntRange(min=0), default=0, metavar="STEP",
              help="Measure the glass shot from this step on; it is simulated once, then kept.")
@click.option("--steps", type=click.IntRange(min=1, max=10**7), metavar="N",
              help="Steps to time; by default some seconds of them.")
@click.option("--peer", type=click.Choice(["lammps", "pybullet"]),
              help="Run the plate (LAMMPS) or the pile (pybullet) in another program too.")
@click.option("--scaling", is_flag=True,
              help="Measure blocks of 10^4 to 10^7 cubes instead: the cost of a bond.")
@click.option("--contact/--no-contact", default=True, show_default=True,
              help="Whether contact is part of the steps.")
@click.option("--particles", type=click.IntRange(min=64, max=10**9), metavar="N",
              help="A body of about this size instead; the largest block with --scaling.")
@click.option("--elements", type=click.IntRange(min=64, max=10**8), metavar="N",
              help="Elements of the vase that is dropped or handed over, or of the window; or "
              "hulls of the pile.")
@click.option("--pieces", type=click.IntRange(min=1, max=10**7), metavar="N",
              help="Pieces that are handed over, about.")
@click.option("--frames", metavar="F", help="These frames of a shot or of sims at once only.")
@click.option("--seconds", type=click.FloatRange(min=0.0, min_open=True, max=3600.0), metavar="T",
              help="Simulated time of the pile.")
@kernel_options("cpu")
@click.option("--cache", type=NamedPath(path_type=Path, file_okay=False), metavar="DIR",
              default=Path("work/bench"), show_default=True,
              help="Where points and states are kept; it may be removed at any time.")
@json_option
@ends_in_sentences
def bench_sim(case: str | None, at: int, steps: int | None, peer: str | None, scaling: bool,
              contact: bool, particles: int | None, elements: int | None, pieces: int | None,
              frames: str | None, seconds: float | None, device: str, threads: int | None,
              cache: Path, json_file: Path | None) -> None:
    """Time the solver at the sizes of levine-2014, and what is rigid at that of shots.

    Costs are the least over several stretches of steps (the median says how noisy the machine
    was) by the clock and in CPU time of all threads; a bond counts at both its ends.

    \b
    Examples:
      vfx bench sim --case glass --peer lammps --json glass.json
      vfx bench sim --case glass --at 50000
      vfx bench sim --scaling
      vfx bench sim --case pile --peer pybullet
    """
    from vfx.bench.scaling import measure_scaling
    from vfx.bench.sim import Request, measure
    from vfx.bench.whole import Whole, check_whole, measure_whole

    whole = Whole(case or "", elements=elements, pieces=pieces, frames=frames, seconds=seconds,
                  peer=peer, device=device, threads=threads)
    if check_whole(whole, other=bool(at or steps or particles or scaling or not contact)):
        rows = measure_whole(whole, click.echo)
    elif scaling:
        if case or at or peer or not contact:
            raise click.UsageError("--scaling goes with --steps, --particles, --device, --threads "
                                   "and --json only")
        rows = measure_scaling(device, threads, steps, particles, click.echo)
    else:
        chosen = {"cases": (case,)} if case else {}
        rows = measure(Request(
            at=at, steps=steps, peer=peer, device=device, threads=threads, contact=contact,
            particles=particles, cache=cache, **chosen), click.echo, Progress())
    _show(rows, json_file)


@bench.command("render")
@click.option("--case", "case", type=click.Choice(["plate", "vase", "serpent"]),
              help="What to render; by default the plate of cubes.")
@click.option("--elements", type=click.IntRange(min=512, max=10**8), metavar="N",
              help="A body of about this many elements instead of the paper's size.")
@kernel_options("cpu")
@click.option("--cache", type=NamedPath(path_type=Path, file_okay=False), metavar="DIR",
              default=Path("work/bench"), show_default=True,
              help="Where solids are kept; it may be removed at any time.")
@json_option
@ends_in_sentences
def bench_render(case: str | None, elements: int | None, device: str, threads: int | None,
                 cache: Path, json_file: Path | None) -> None:
    """Time tree, rays and frames of shattered bodies, 1280 x 720.

    Where embreex is installed, Embree traces the same rays on the same triangles in the same
    run. Costs are the least over several runs.

    \b
    Examples:
      vfx bench render
      vfx bench render --case vase --json vase.json
    """
    from vfx.bench.render import Request, measure

    rows = measure(Request(cases=(case or "plate",), elements=elements, device=device,
                                 threads=threads, cache=cache), click.echo)
    _show(rows, json_file)


@bench.command("geometry")
@click.option("--case", "case", type=click.Choice(["serpent", "vase", "points"]),
              help="The serpent in Voronoi cells, the vase in tetrahedra, or the Voronoi cells of "
              "points in a box; by default all three.")
@click.option("--elements", type=click.IntRange(min=8, max=10**8), metavar="N",
              help="So many elements instead of the paper's; the most with --scaling.")
@click.option("--scaling", is_flag=True, help="Measure 10^4, 10^5 and 10^6 elements instead.")
@click.option("--peer", type=click.Choice(["voro++"]),
              help="Run another program on the points too and compare.")
@kernel_options("cpu")
@json_option
@ends_in_sentences
def bench_geometry(case: str | None, elements: int | None, scaling: bool, peer: str | None,
                   device: str, threads: int | None, json_file: Path | None) -> None:
    """Time the way from a mesh to elements at the sizes of levine-2014.

    \b
    Examples:
      vfx bench geometry --case serpent
      vfx bench geometry --case points --peer voro++ --json points.json
      vfx bench geometry --case serpent --scaling
    """
    from vfx.bench.geometry import CASES, Request, measure

    if peer and case not in (None, "points"):
        raise click.UsageError("--peer goes with --case points only")
    rows = measure(Request(
        cases=(case,) if case else CASES, elements=elements, scaling=scaling, peer=peer,
        device=device, threads=threads), click.echo)
    _show(rows, json_file)


@bench.command("validate")
@click.argument("names", nargs=-1, type=click.Choice(
    ["lammps", "notched-plate", "kalthoff-winkler", "energy-release", "parameters"]))
@click.option("--plots", type=NamedPath(path_type=Path, file_okay=False), metavar="DIR",
              help="Draw a picture of each there (needs matplotlib).")
@json_option
@ends_in_sentences
def bench_validate(names: tuple[str, ...], plots: Path | None, json_file: Path | None) -> None:
    """Compare the physics with other programs, closed forms and experiments.

    Runs all validations unless some are named; each takes a minute or so. Ends with 1 where a
    figure is not as expected.
    """
    from vfx.bench.validation.run import VALIDATIONS, run_validations

    if plots is not None and importlib.util.find_spec("matplotlib") is None:
        raise MissingInput("--plots needs matplotlib: pip install 'vfx-fracture[bench]'")
    rows, passed = run_validations(names or tuple(VALIDATIONS), plots)
    if json_file is not None:
        write_json(json_file, rows)
    if not passed:
        sys.exit(1)


def _show(rows: Sequence[Row], json_file: Path | None) -> None:
    """Print what was measured, and write it where asked to."""
    click.echo("\n".join(table(rows)))
    if json_file is not None:
        write_json(json_file, rows)
