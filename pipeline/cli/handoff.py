"""The commands that take a shot to others: submit, export, review."""

from __future__ import annotations

from pathlib import Path

import click

from vfx.pipeline.cli.options import (
    SHOT,
    WORK,
    check_device_name,
    check_thread_count,
    complete_device,
    ends_in_sentences,
)
from vfx.pipeline.export.formats import FORMATS, ExportRequest, export
from vfx.pipeline.export.usd import INSTANCER_ABOVE
from vfx.pipeline.farm.graph import DEFAULT_CHUNK
from vfx.pipeline.farm.submit import FARMS, FarmRequest, listing, plan_submission
from vfx.pipeline.farm.submit import submit as start_submission
from vfx.pipeline.paths import NamedPath
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.shot.needs import check_folder
from vfx.pipeline.show.review import FOLDER as REVIEW_FOLDER
from vfx.pipeline.show.review import make_review
from vfx.pipeline.show.review_page import write_page
from vfx.pipeline.stages.run import Request, frames_to_take, open_work

FRAMES = click.option("--frames", metavar="F", help="Frames like 1001-1010 or 1001-1100x2,1120; "
                      "by default all.")


@click.command()
@SHOT
@click.option("--farm", required=True, type=click.Choice(FARMS),
              help="Where to run; local is a pool of tasks on this machine.")
@click.option("--chunk", type=click.IntRange(1, 100_000), default=DEFAULT_CHUNK,
              show_default=True, metavar="N", help="Frames of a task of align and render.")
@FRAMES
@click.option("--at-once", type=click.IntRange(1, 100_000), metavar="N",
              help="At most so many tasks of a job at once; by default what the farm allows, "
              "locally what fills the cores.")
@click.option("--device", default="auto", show_default=True, callback=check_device_name,
              shell_complete=complete_device, metavar="auto|cpu|guard|cuda:N",
              help="Device of the workers.")
@click.option("--threads", callback=check_thread_count, metavar="N",
              help="CPU threads of a task; by default whole machines for sim and render.")
@WORK
@click.option("--farm-option", multiple=True, metavar="WORD",
              help="A word for the farm's own submit command, as often as needed, e.g. "
              "--farm-option=--partition=render.")
@click.option("--force", is_flag=True, help="Make results again though they are done.")
@click.option("--no-start", is_flag=True, help="Write the farm's files; start nothing.")
@click.option("--dry-run", is_flag=True,
              help="Show every task and command; write and start nothing.")
@ends_in_sentences
def submit(shot: Path, farm: str, chunk: int, frames: str | None, at_once: int | None,
           device: str, threads: int | None, work: Path | None, farm_option: tuple[str, ...],
           force: bool, no_start: bool, dry_run: bool) -> None:
    """Run SHOT on a farm.

    The stages become jobs that wait for each other: geometry, sim, lineage, align and render in
    chunks of frames, comp. What is done already is left out. A task that was killed, or whose
    machine died, can be started again anywhere: it makes only what is missing. The work folder
    must be one that all machines see.

    \b
    Examples:
      vfx submit shots/glass.toml --farm slurm --chunk 2 --threads 8
      vfx submit shots/glass.toml --farm slurm --farm-option=--partition=gpu --device cuda:0
      vfx submit shots/glass.toml --farm local --at-once 2
      vfx submit shots/glass.toml --farm openjd --frames 1001-1010 --dry-run
    """
    request = Request(shot, frames, device, work, force, threads)
    submission = plan_submission(request, FarmRequest(farm, chunk, at_once, farm_option))
    if dry_run:
        click.echo("\n".join(listing(submission, farm)))
        return
    with StopSignals().caught() as stop:
        start_submission(submission, farm, Progress(), stop, no_start=no_start)


@click.command("export")
@SHOT
@click.option("--to", required=True, type=click.Choice(FORMATS),
              help="usd and abc: animated pieces; obj: a file a frame; vdb: dust, a volume a "
              "frame.")
@FRAMES
@click.option("--output", type=NamedPath(path_type=Path), metavar="PATH",
              help="File (usd, abc) or folder (obj, vdb); by default in <work>/export.")
@click.option("--debris", type=click.FloatRange(min=0.0), metavar="METRES",
              help="usd: pieces smaller than this become points; by default single elements. "
              "0 for none.")
@click.option("--instancer-above", type=click.IntRange(min=0), default=INSTANCER_ABOVE,
              show_default=True, metavar="N",
              help="usd: more pieces than this become instances instead of objects.")
@click.option("--voxel", type=click.FloatRange(min=0.0, min_open=True), metavar="METRES",
              help="vdb: edge of a voxel; by default half an element.")
@WORK
@ends_in_sentences
def export_command(shot: Path, to: str, frames: str | None, output: Path | None,
                   debris: float | None, instancer_above: int, voxel: float | None,
                   work: Path | None) -> None:
    """Write pieces for other programs.

    A piece is named as in the Cryptomatte, <body>_<id>, and keeps its name through all frames.
    It needs the results of geometry, sim and align, not the pictures.

    \b
    Examples:
      vfx export shots/glass.toml --to usd
      vfx export shots/glass.toml --to usd --debris 0.004 --output /show/seq/glass.usd
      vfx export shots/glass.toml --to obj --frames 1010
      vfx export shots/glass.toml --to vdb --frames 1005-1024
    """
    progress = Progress()
    with StopSignals().caught() as stop, progress.stage("export"):
        def report(fraction: float) -> None:
            stop.check()
            progress.update(None, fraction)

        lines = export(Request(shot, frames, work=work),
                       ExportRequest(to, output, debris, instancer_above, voxel), report)
    for line in lines:
        progress.say(line)


@click.command()
@SHOT
@FRAMES
@WORK
@ends_in_sentences
def review(shot: Path, frames: str | None, work: Path | None) -> None:
    """Make a page to look at SHOT.

    One HTML file that needs no server and no network: frames to scrub through, a contact sheet,
    every pass, plots of energy, bonds and pieces, settings, times and warnings. Contact sheet
    and movie are made beside it.

    \b
    Example:
      vfx review shots/glass_small.toml
    """
    request = Request(shot, frames, work=work)
    opened = open_work(request)
    chosen = frames_to_take(request, opened.shot)
    check_folder(opened.folder / REVIEW_FOLDER, 0)
    progress = Progress()
    with opened.in_use(), StopSignals().caught() as stop, progress.stage("review"):
        def report(fraction: float) -> None:
            stop.check()
            progress.update(None, fraction)

        page = write_page(opened, chosen, report, request.arguments())
        lines = make_review(opened)
    for line in (*lines, f"page: {page}"):
        progress.say(line)


def add_handoff_commands(main: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (submit, export_command, review):
        main.add_command(command)
