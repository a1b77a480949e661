"""The command line. Every command ends in an exit code of :mod:`vfx.pipeline.errors`."""

from __future__ import annotations

import importlib.metadata
import shlex
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from vfx.pipeline.cli import doctor as doctor_report
from vfx.pipeline.cli.handoff import add_handoff_commands
from vfx.pipeline.cli.options import (
    SHOT,
    WORK,
    ends_in_sentences,
    run_options,
)
from vfx.pipeline.cli.preview import add_preview_command
from vfx.pipeline.errors import PipelineError, printable
from vfx.pipeline.paths import NamedPath
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.shot.templates import list_templates, write_asset, write_new_shot
from vfx.pipeline.show.report import check_report, clean, refused_mesh_lines, status_table
from vfx.pipeline.show.review import make_review
from vfx.pipeline.stages.run import (
    WARNING,
    Request,
    describe,
    open_work,
    prepare,
    run_job,
    say_warnings,
)
from vfx.pipeline.stages.stage import Stage
from vfx.pipeline.stages.table import STAGE, STAGES
from vfx.pipeline.streams import tell


class _Commands(click.Group):
    """The commands of this file, and those that others register as ``vfx.commands``."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *_registered().names})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        found = super().get_command(context, name)
        if found is None and name in _registered().names:
            found = _registered()[name].load()
        return found


def _registered() -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group="vfx.commands")


@click.group(cls=_Commands, context_settings={
    "help_option_names": ["-h", "--help"], "max_content_width": 100})
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
@click.argument("name", type=click.Choice(list(STAGE)), metavar="STAGE")
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
    _run([STAGE[name]], Request(shot, frames, device, work, force, threads, wait), dry_run)


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

    At real time: vase_drop, wall, marbles, and ramp, which slows down at the impact. In slow
    motion: glass, vase, sculpture. Those called _small are rougher and faster.

    \b
    Examples:
      vfx new plate --from glass_small
      vfx new drop --from vase_drop
    """
    path = write_new_shot(name, template)
    tell(f"wrote {path}; next: {shlex.join(['vfx', 'check', str(path)])}")


@main.command()
@click.argument("name")
@click.argument("file", type=NamedPath(path_type=Path, dir_okay=False))
@ends_in_sentences
def asset(name: str, file: Path) -> None:
    """Write a mesh of ours as FILE, an OBJ.

    NAME is vase, bowl, plate, wineglass, mug, column, serpent or sphere; in a shot, mesh =
    "asset:vase" needs no file.

    \b
    Example:
      vfx asset vase vase.obj
    """
    write_asset(name, file)
    tell(f"wrote {file}")


@main.command("clean")
@SHOT
@click.option("--stage", "name", required=True,
              type=click.Choice(list(STAGE)),
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
    removed = clean(open_work(Request(shot, work=work)), STAGE[name], dry_run=dry_run)
    for path in removed if dry_run else ():
        click.echo(path)
    (click.echo if dry_run else tell)(
        f"{'would remove' if dry_run else 'removed'} {len(removed)} file(s)")


@main.command()
@ends_in_sentences
def reference() -> None:
    """Print every key of a shot file, as Markdown."""
    from vfx.pipeline.shot.reference import reference as all_keys

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


def _run(stages: list[Stage], request: Request, dry_run: bool, *, review: bool = False) -> None:
    progress = Progress()
    with StopSignals().caught() as stop:
        jobs = prepare(request, stages, progress, stop)
        work = jobs[-1].work
        say_warnings(jobs)
        if dry_run:
            for job in jobs:
                click.echo("\n".join(describe(job)))
            return
        with work.in_use(begins=True):
            for job in jobs:
                stop.check()
                run_job(job)
            if review:
                progress.log_to(work.folder, "review")
                for line in make_review(work):
                    progress.say(line)


add_handoff_commands(main)
add_preview_command(main)
