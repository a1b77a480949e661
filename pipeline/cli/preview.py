"""The command ``vfx preview``: a picture in seconds."""

from __future__ import annotations

from pathlib import Path

import click

from vfx.pipeline.cli.options import SHOT, WORK, ends_in_sentences, kernel_options
from vfx.pipeline.devices import open_device
from vfx.pipeline.paths import NamedPath
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.shot.needs import check_meshes
from vfx.pipeline.show.preview import write_picture
from vfx.pipeline.show.views import COLORS, SAMPLES, SHOWN, WIDTH, ViewRequest, make_view, view_path
from vfx.pipeline.stages.run import Request, open_work
from vfx.raytrace.settings import LIGHTINGS, PASSES


@click.command()
@SHOT
@click.option("--frame", type=int, metavar="N",
              help="The frame, whose pieces must be aligned; by default the solid at rest.")
@click.option("--show", type=click.Choice(SHOWN), default="shot", show_default=True,
              help="As the shot's camera sees it; or the object alone: its surface, its elements "
              "exploded, or cut in the middle.")
@click.option("--color", type=click.Choice(COLORS), default=None,
              help="What colours mean; by default the shot's looks, and volume for exploded and "
              "cut.")
@click.option("--pass", "layer", type=click.Choice(PASSES), default="beauty", show_default=True,
              help="A pass of the frames, as colours.")
@click.option("--width", type=click.IntRange(16, 8192), default=None, metavar="N",
              help=f"Width of the picture; by default the frames', at most {WIDTH}.")
@click.option("--samples", type=click.IntRange(1, 4096), default=SAMPLES, show_default=True,
              metavar="N", help="Camera rays a pixel.")
@click.option("--lighting", type=click.Choice(LIGHTINGS), default="harmonic",
              show_default=True, help="By harmonics, or slower along paths with several bounces.")
@click.option("--output", "-o", type=NamedPath(path_type=Path, dir_okay=False), metavar="FILE",
              help="The PNG or JPEG to write; by default a PNG in <work>/preview/.")
@kernel_options("auto")
@WORK
@ends_in_sentences
def preview(shot: Path, frame: int | None, show: str, color: str | None, layer: str,
            width: int | None, samples: int, lighting: str, output: Path | None, device: str,
            threads: int | None, work: Path | None) -> None:
    """Make a picture of SHOT in seconds.

    Nothing has to run before it: without --frame the solid is shown at rest, from its file or
    divided in memory.

    \b
    Examples:
      vfx preview shots/glass.toml
      vfx preview shots/vase.toml --show exploded
      vfx preview shots/glass.toml --show cut --color strength
      vfx preview shots/glass.toml --frame 1013 --pass forward -o motion.png
      vfx preview shots/vase.toml --frame 1012 --width 1280 --samples 64 --lighting path
    """
    if output is not None and output.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise click.BadParameter(f"found {str(output)!r}, but only .png and .jpg are written",
                                 param_hint="--output")
    opened = open_work(Request(shot, work=work))
    check_meshes(opened.shot)
    view = ViewRequest(frame=frame, show=show, color=color or "", layer=layer, width=width,
                       samples=samples, lighting=lighting)
    progress = Progress()
    with StopSignals().caught() as stop, progress.stage("preview"):
        def report(what: str, fraction: float) -> None:
            stop.check()
            progress.update(None, fraction, what)

        pixels = make_view(opened, open_device(device, threads), view, progress.say, report)
        path = output or view_path(opened, view)
        write_picture(path, pixels)
    progress.say(f"wrote {path}")


def add_preview_command(main: click.Group) -> None:
    """Add the command to the program's."""
    main.add_command(preview)
