"""The command line. Every command ends in an exit code of :mod:`vfx.pipeline.errors`."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from vfx.pipeline import doctor as doctor_report
from vfx.pipeline.cli_handoff import add_handoff_commands
from vfx.pipeline.cli_options import (
    SHOT,
    WORK,
    ends_in_sentences,
    json_option,
    kernel_options,
    run_options,
)
from vfx.pipeline.cli_preview import add_preview_command
from vfx.pipeline.errors import MissingInput, PipelineError, printable
from vfx.pipeline.frames import frames_text
from vfx.pipeline.paths import NamedPath
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.report import check_report, clean, refused_mesh_lines, status_table
from vfx.pipeline.review import make_review
from vfx.pipeline.run import (
    WARNING,
    Request,
    describe,
    describe_comp,
    finish_run,
    frames_to_take,
    open_work,
    prepare,
    run_comp,
    run_job,
    run_lineage,
    say_warnings,
)
from vfx.pipeline.stage_comp import FOLDER as COMP_FOLDER
from vfx.pipeline.stages import STAGE, STAGES, Stage
from vfx.pipeline.streams import tell
from vfx.pipeline.templates import list_templates, write_asset, write_new_shot

if TYPE_CHECKING:
    from vfx.bench.rows import Row


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(doctor_report.package_version(), prog_name="vfx")
def main() -> None:
    """Break things: from a shot file to OpenEXR frames.

    Stages read and write files in a work folder: geometry divides the bodies into elements,
    sim breaks them, align finds the pieces and their motion, render makes the frames, comp
    checks them. Work that is up to date is skipped; a changed shot redoes just what it changes.

    \b
    Start here:
      vfx new plate --from glass          write plate.toml, a commented shot file
      vfx check plate.toml                is it valid, stable, and does it fit in memory?
      vfx run plate.toml --frames 1001-1004
      vfx status plate.toml               what is done, stale, damaged or missing
    \b
    For others:
      vfx review plate.toml               a page with frames, passes, plots, times
      vfx export plate.toml --to usd      pieces for another program
      vfx submit plate.toml --farm slurm  the same stages on a farm
    \b
    One stage, some frames, as a farm would call it:
      vfx stage render plate.toml --frames 1001-1048x4 --device cuda:0
    \b
    Exit codes: 0 well, 1 a frame failed, 2 bad settings, 3 missing input, device or room,
    129 SIGHUP, 130 Ctrl-C, 143 SIGTERM. A stopped or killed run goes on where it was.
    """


@main.command()
@click.argument("name", type=click.Choice(
    ["geometry", "sim", "lineage", "align", "render", "comp"]), metavar="STAGE")
@SHOT
@run_options
@click.option("--wait", is_flag=True, help="If another process simulates this shot already, wait "
              "for it instead of ending with 3.")
@ends_in_sentences
def stage(name: str, shot: Path, frames: str | None, device: str, work: Path | None, force: bool,
          dry_run: bool, threads: int | None, wait: bool) -> None:
    """Run one stage of SHOT.

    The stages are geometry, sim, align, render and comp, in this order. comp reads every pixel
    of the frames, names those that are no good, and writes what the next desk needs: a
    manifest, checksums, and scripts for Nuke and Blender; frames handed over before that are
    still good stay in it beside --frames. lineage is the part of align that
    follows which piece broke off which; a farm runs it once before align is shared out.

    \b
    Examples:
      vfx stage geometry shots/glass.toml
      vfx stage sim shots/glass.toml --frames 1001-1010    up to frame 1010; resumes
      vfx stage render shots/glass.toml --frames 1005 --force
      vfx stage comp shots/glass.toml
    """
    request = Request(shot, frames, device, work, force, threads, wait)
    if name == "comp":
        _comp(request, dry_run)
    elif name == "lineage":
        _lineage(request, dry_run)
    else:
        _run([STAGE[name]], request, dry_run)


@main.command()
@SHOT
@run_options
@ends_in_sentences
def run(shot: Path, frames: str | None, device: str, work: Path | None, force: bool,
        dry_run: bool, threads: int | None) -> None:
    """Run all stages of SHOT.

    What is done and up to date is skipped; a run that was stopped or killed goes on where it
    was. The frames are then checked for comp, as by 'vfx stage comp', and a contact sheet and a
    movie end the run. What happened is in <work>/logs, a file a stage.

    \b
    Examples:
      vfx run shots/glass_small.toml
      vfx run shots/glass.toml --frames 1001-1024 --device cpu --work /disk/glass
      vfx run shots/glass.toml --dry-run
    """
    _run(list(STAGES), Request(shot, frames, device, work, force, threads), dry_run, review=True)


@main.command()
@SHOT
@WORK
@click.option("--verify", is_flag=True, help="Read every file whole, instead of trusting those "
              "that have the size and the time with which they were written.")
@ends_in_sentences
def status(shot: Path, work: Path | None, verify: bool) -> None:
    """Show what is done, stale, damaged or missing.

    A table of stages by frames, and the command that makes the rest. done: as the shot wants it
    now; stale: made from other settings or other files, or not yet checked for comp; damaged: not
    what was written; missing: not there. A run reads every file whole before it trusts it, and
    so does --verify.

    \b
    Examples:
      vfx status shots/glass.toml
      vfx status shots/glass.toml --verify --work /disk/glass
    """
    request = Request(shot, work=work)
    opened = open_work(request, quick=not verify)
    click.echo("\n".join(status_table(opened, request.arguments())))


@main.command()
@SHOT
@WORK
@ends_in_sentences
def check(shot: Path, work: Path | None) -> None:
    """Check SHOT, its physics and its room.

    Tells particles, bonds, the largest stable time step, memory, disk, about how long it will
    take, and what there is to say of its meshes. Nothing is run and nothing is written. A shot
    that cannot run ends with 2 or 3, and a sentence that says how to mend it.

    \b
    Example:
      vfx check shots/glass.toml
    """
    try:
        opened = open_work(Request(shot, work=work))
    except PipelineError as error:
        for line in refused_mesh_lines(error):
            click.echo(line)
        raise
    lines, problems = check_report(opened)
    click.echo(printable("\n".join(lines)))
    if problems:
        click.echo("\n".join(str(problem) for problem in problems), err=True)
        sys.exit(problems[0].exit_code)
    warned = any(line.startswith(WARNING) for line in lines)
    click.echo(f"{shot}: {'valid, but see the warnings' if warned else 'all well'}")


@main.command()
@click.argument("name", type=NamedPath())
@click.option("--from", "template", default="glass", show_default=True, metavar="TEMPLATE",
              shell_complete=lambda context, parameter, incomplete: [
                  CompletionItem(name) for name in list_templates()
                  if name.startswith(incomplete)],
              help=f"The shot to start from: {', '.join(list_templates())}.")
@ends_in_sentences
def new(name: str, template: str) -> None:
    """Write NAME.toml, a shot to start from.

    \b
    Example:
      vfx new plate --from glass_small
    """
    path = write_new_shot(name, template)
    tell(f"wrote {path}; next: {shlex.join(['vfx', 'check', str(path)])}")


@main.command()
@click.argument("name")
@click.argument("file", type=NamedPath(path_type=Path, dir_okay=False))
@ends_in_sentences
def asset(name: str, file: Path) -> None:
    """Write a mesh of ours as FILE, an OBJ.

    NAME is vase, bowl, mug, column or serpent; in a shot, mesh = "asset:vase" needs no file.

    \b
    Example:
      vfx asset vase vase.obj
    """
    write_asset(name, file)
    tell(f"wrote {file}")


@main.command("clean")
@SHOT
@click.option("--stage", "name", required=True,
              type=click.Choice([*(s.name for s in STAGES), COMP_FOLDER]),
              help="The first stage whose files go; those of later stages go too.")
@WORK
@click.option("--dry-run", is_flag=True, help="List the files; remove nothing.")
@ends_in_sentences
def clean_command(shot: Path, name: str, work: Path | None, dry_run: bool) -> None:
    """Remove the files of a stage.

    Those of all stages that follow from it go, too, with the review; logs, exports and files
    of your own stay.

    \b
    Examples:
      vfx clean shots/glass.toml --stage render --dry-run
      vfx clean shots/glass.toml --stage sim
    """
    removed = clean(open_work(Request(shot, work=work)), name, dry_run=dry_run)
    for path in removed if dry_run else ():
        click.echo(path)
    (click.echo if dry_run else tell)(
        f"{'would remove' if dry_run else 'removed'} {len(removed)} file(s)")


@main.command()
@ends_in_sentences
def reference() -> None:
    """Print every key of a shot file, as Markdown."""
    from vfx.pipeline.reference import reference as all_keys

    click.echo(all_keys(), nl=False)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@ends_in_sentences
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, options and files.

    \b
    For good:
      vfx completion bash >> ~/.bashrc
      vfx completion zsh >> ~/.zshrc
      vfx completion fish > ~/.config/fish/completions/vfx.fish
    """
    cls = get_completion_class(shell)
    assert cls is not None, "these shells are known"
    click.echo(cls(main, {}, "vfx", "_VFX_COMPLETE").source())


@main.command()
@ends_in_sentences
def doctor() -> None:
    """Show what this machine has and lacks.

    Device, cores, memory and versions, and how to get what is missing.
    """
    lines, complete = doctor_report.examine()
    click.echo("\n".join(lines))
    if not complete:
        sys.exit(3)


@main.group()
def bench() -> None:
    """Measure speed.

    Against the paper, other programs and this machine.
    """


@bench.command("sim")
@click.option("--case", "case", type=click.Choice(["glass", "vase", "dragon"]),
              help="What to simulate; by default all three, one after the other.")
@click.option("--at", type=click.IntRange(min=0), default=0, metavar="STEP",
              help="Measure the glass shot from this step on; it is simulated once, then kept.")
@click.option("--steps", type=click.IntRange(min=1, max=10**7), metavar="N",
              help="Steps to time; by default some seconds of them.")
@click.option("--peer", type=click.Choice(["lammps"]),
              help="Run the plate in another program too and compare.")
@click.option("--scaling", is_flag=True,
              help="Measure blocks of 10^4 to 10^7 cubes instead: the cost of a bond.")
@click.option("--contact/--no-contact", default=True, show_default=True,
              help="Whether contact is part of the steps.")
@click.option("--particles", type=click.IntRange(min=64, max=10**9), metavar="N",
              help="A body of about this size instead; the largest block with --scaling.")
@kernel_options("cpu")
@click.option("--cache", type=NamedPath(path_type=Path, file_okay=False), metavar="DIR",
              default=Path("work/bench"), show_default=True,
              help="Where points and states are kept; it may be removed at any time.")
@json_option
@ends_in_sentences
def bench_sim(case: str | None, at: int, steps: int | None, peer: str | None, scaling: bool,
              contact: bool, particles: int | None, device: str, threads: int | None, cache: Path,
              json_file: Path | None) -> None:
    """Time the solver at the sizes of levine-2014.

    Costs are the least over several stretches of steps (the median says how noisy the machine
    was) by the clock and in CPU time of all threads; a bond counts at both its ends.

    \b
    Examples:
      vfx bench sim --case glass --peer lammps --json glass.json
      vfx bench sim --case glass --at 50000
      vfx bench sim --scaling
    """
    from vfx.bench.scaling import measure_scaling
    from vfx.bench.sim import Request as BenchRequest
    from vfx.bench.sim import measure

    if scaling:
        if case or at or peer or not contact:
            raise click.UsageError("--scaling goes with --steps, --particles, --device, --threads "
                                   "and --json only")
        rows = measure_scaling(device, threads, steps, particles, click.echo)
    else:
        chosen = {"cases": (case,)} if case else {}
        rows = measure(BenchRequest(
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
    from vfx.bench.render import Request as RenderRequest
    from vfx.bench.render import measure

    rows = measure(RenderRequest(cases=(case or "plate",), elements=elements, device=device,
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
    from vfx.bench.geometry import CASES, measure
    from vfx.bench.geometry import Request as GeometryRequest

    if peer and case not in (None, "points"):
        raise click.UsageError("--peer goes with --case points only")
    rows = measure(GeometryRequest(
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
    from vfx.bench.rows import write_json
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
    from vfx.bench.rows import table, write_json

    click.echo("\n".join(table(rows)))
    if json_file is not None:
        write_json(json_file, rows)


def _comp(request: Request, dry_run: bool) -> None:
    if dry_run:
        work = open_work(request)
        click.echo(f"comp: would read {frames_text(frames_to_take(request, work.shot))} and "
                   f"write into {work.folder / COMP_FOLDER}")
        return
    with StopSignals().caught() as stop:
        run_comp(request, Progress(), stop)


def _lineage(request: Request, dry_run: bool) -> None:
    with StopSignals().caught() as stop:
        job, = prepare(request, [STAGE["align"]], Progress(), stop)
        if dry_run:
            click.echo(f"lineage: would follow the pieces through frame {job.frames[-1]}")
            return
        with job.work.in_use():
            run_lineage(job)


def _run(stages: list[Stage], request: Request, dry_run: bool, *, review: bool = False) -> None:
    progress = Progress()
    with StopSignals().caught() as stop:
        jobs = prepare(request, stages, progress, stop)
        work = jobs[-1].work
        say_warnings(jobs)
        if dry_run:
            for job in jobs:
                click.echo("\n".join(describe(job)))
            if review:
                click.echo("\n".join(describe_comp(jobs[-1])))
            return
        with work.in_use(begins=True):
            for job in jobs:
                stop.check()
                run_job(job)
            if review:
                finish_run(jobs[-1], progress, stop)
                progress.log_to(work.folder, "review")
                for line in make_review(work):
                    progress.say(line)


add_handoff_commands(main)
add_preview_command(main)
