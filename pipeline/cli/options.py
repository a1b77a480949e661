"""What the commands have in common: options, and how they end when something goes wrong."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from vfx.pipeline.errors import PipelineError, shortage
from vfx.pipeline.paths import NamedPath

Command = TypeVar("Command", bound=Callable[..., Any])


def ends_in_sentences(command: Command) -> Command:
    """Print what went wrong without a traceback (VFX_DEBUG=1 shows it) and set the exit code."""
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except PipelineError as error:
            if os.environ.get("VFX_DEBUG"):
                raise
            if str(error):
                click.echo(str(error), err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("stopped; finished files are kept", err=True)
            sys.exit(130)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:
            if os.environ.get("VFX_DEBUG"):
                raise
            if (lack := shortage(error)) is not None:
                click.echo(lack + (f" ({error})" if str(error) else ""), err=True)
                sys.exit(3)
            click.echo(f"vfx failed: {type(error).__name__}: {error} (this is a fault of the "
                       "program; VFX_DEBUG=1 shows where)", err=True)
            sys.exit(1)
    return wrapped  # type: ignore[return-value]


def check_device_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse words that name no device; ``warp``, for tests, is not advertised."""
    if not re.fullmatch(r"auto|cpu|guard|warp|cuda(:\d{1,3})?", value):
        raise click.BadParameter(f"{value!r}; use auto, cpu, guard or cuda:N")
    return value


def check_thread_count(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> int | None:
    """Return a number of threads; refuse what is none."""
    if value is None:
        return None
    if not re.fullmatch(r"\d{1,4}", value, re.ASCII) or int(value) == 0:
        raise click.BadParameter(f"{value!r}; give a whole number from 1 to 9999, or leave it out "
                                 "for all cores")
    return int(value)


def check_work_folder(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Path | None:
    """Return the work folder; refuse an empty name, which a variable that is not set gives."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty (a variable that is not set?); name a folder, '.' "
                                 "for this one, or leave --work out")
    return None if value is None else Path(value)


def complete_device(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the devices that a shell may complete."""
    return [CompletionItem(name) for name in ("auto", "cpu", "guard", "cuda:0")
            if name.startswith(incomplete)]


SHOT = click.argument("shot", type=NamedPath(path_type=Path))
WORK = click.option("--work", type=NamedPath(), callback=check_work_folder, metavar="DIR",
                    help="Work folder; by default work/<shot name>.")


def run_options(command: Command) -> Command:
    """Add the options of commands that run stages."""
    options = (
        click.option("--frames", metavar="F", help="Frames like 1001-1010 or 1001-1100x2,1120; "
                     "by default all. sim always runs through the last of them."),
        click.option("--device", default="auto", show_default=True, callback=check_device_name,
                     shell_complete=complete_device, metavar="auto|cpu|guard|cuda:N",
                     help="Where the kernels run; guard is the CPU, refusing what a GPU would."),
        WORK,
        click.option("--force", is_flag=True, help="Make results again though they are done."),
        click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing."),
        click.option("--threads", callback=check_thread_count, metavar="N",
                     help="CPU threads; by default all cores, fewer where others need them. "
                     "Results do not depend on it."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def kernel_options(default: str) -> Callable[[Command], Command]:
    """Add the options of commands that run kernels but no stage; ``default`` is their device."""
    def add(command: Command) -> Command:
        command = click.option(
            "--threads", callback=check_thread_count, metavar="N",
            help="CPU threads; by default all cores.")(command)
        return click.option(
            "--device", default=default, show_default=True, callback=check_device_name,
            shell_complete=complete_device, metavar="auto|cpu|guard|cuda:N",
            help="Where the kernels run.")(command)
    return add


def json_option(command: Command) -> Command:
    """Add the option of commands that measure: a file for the rows."""
    return click.option("--json", "json_file", type=NamedPath(path_type=Path, dir_okay=False),
                        metavar="FILE", help="Write the rows there, too.")(command)
