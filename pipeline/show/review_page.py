"""``vfx review``: one HTML page with all a shot shows, that works from disk without a network.

Frames to scrub through, a contact sheet, a picture of each pass, plots over time, the shot's
settings, times taken and warnings; pictures and data are within the page.
"""

from __future__ import annotations

import base64
import html
import io
import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vfx.pipeline.errors import DamagedFile, MissingInput
from vfx.pipeline.progress import BEGUN, LOG_FOLDER, TIMINGS_FILE
from vfx.pipeline.quantities import as_clock
from vfx.pipeline.shot.frames import format_frames, frames_text
from vfx.pipeline.show.pass_colors import pass_pixels
from vfx.pipeline.show.plots import Curve, energies, holders
from vfx.pipeline.show.preview import Pixels
from vfx.pipeline.show.report import pace_text, state_rows
from vfx.pipeline.show.review import FOLDER
from vfx.pipeline.stages.comp import Footage, pass_text, sequence_names
from vfx.pipeline.stages.run import shot_warnings
from vfx.pipeline.stages.stage import Stage
from vfx.pipeline.stages.table import ALIGN, COMP, RENDER, SIM, STAGES
from vfx.pipeline.work.cache import publish_bytes, read_npz
from vfx.pipeline.work.diagnostics import DiagnosticsTable
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State
from vfx.pipeline.work.seal import read_regular
from vfx.pipeline.work.timeline import Timeline, impacts
from vfx.sim.solver import WITHSTOOD

Values = npt.NDArray[np.float64]

_TEMPLATE = Path(__file__).with_name("review_page.html")
_MOST_FRAMES = 240
_FRAME_WIDTH = 960
_PASS_WIDTH = 480
_MOST_WARNINGS = 40


def write_page(work: Work, frames: Sequence[int], report: Callable[[float], None],
               arguments: Sequence[str] = ()) -> Path:
    """Publish the page of a shot; return its path.

    ``arguments`` are the options that a command shown to the user must repeat.
    """
    states = work.states(RENDER, frames)
    done = [frame for frame, state in states.items() if state is State.DONE]
    if not done:
        raise MissingInput(
            f"{work.shot.path}: no frame of {format_frames(frames)} is rendered, so there is "
            "nothing to review; run first:\n  " + shlex.join([
                "vfx", "run", str(work.shot.path), "--frames", format_frames(frames),
                *arguments]))
    shown = done[:: -(-len(done) // _MOST_FRAMES)]
    history = piece_history(work)
    pictures = []
    for number, frame in enumerate(shown):
        report(number / len(shown))
        pictures.append({"number": frame, "image": _frame_image(work, frame),
                         "pieces": history.get(frame, {}).get("pieces")})
    shot = work.shot
    last = done[-1]
    width, height = shot.film.resolution
    data = {
        "title": shot.name,
        "subtitle": frames_text(done) + (
            f" of {shot.first_frame}-{shot.last_frame}" if len(done) < len(shot.frames) else "")
            + f", {shot.fps:g} fps, {width} x {height}",
        "fps": shot.fps, "frames": pictures, "passes": _passes(work, last),
        "pass_frame": last, "plots": _plots(work, history), **_events(work),
        "stages": _stages(work, frames),
        "timings": _timings(work), "facts": _facts(work),
        "warnings": _warnings(work, frames, arguments),
        "past": _past(work),
        "file": shot.path.read_text(encoding="utf-8", errors="replace"),
    }
    # Nothing in the data may end the script it stands in.
    text = json.dumps(data).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8")
    page = page.replace("@TITLE@", html.escape(shot.name)).replace("@DATA@", text)
    path = work.folder / FOLDER / f"{shot.name}.html"
    publish_bytes(path, page.encode())
    report(1.0)
    return path


def piece_history(work: Work) -> dict[int, dict[str, float]]:
    """Return number and sizes of pieces by frame, of the frames that are aligned."""
    history = {}
    for frame in work.shot.frames:
        try:
            arrays = read_npz(work.path(ALIGN, frame), ["mass", "fragment"])
        except (DamagedFile, MissingInput):
            continue
        mass = np.sort(arrays["mass"])[::-1]
        # The piece that, with all larger ones, holds half of the mass.
        half = int(np.searchsorted(np.cumsum(mass), 0.5 * mass.sum()))
        history[frame] = {
            "pieces": len(mass), "largest": float(mass[0] / mass.sum()),
            "half": float(mass[min(half, len(mass) - 1)] / mass.sum()),
            "single": float((np.unique(arrays["fragment"], return_counts=True)[1] == 1).sum())}
    return history


def _frame_image(work: Work, frame: int) -> str:
    from vfx.raytrace.film.exr import read_exr

    channels, _ = read_exr(work.path(RENDER, frame))
    return _as_data(pass_pixels("beauty", channels, work.shot.film.color_space), _FRAME_WIDTH)


def _as_data(pixels: Pixels, width: int, kind: str = "JPEG") -> str:
    image = Image.fromarray(pixels)
    if image.width > width:
        size = (width, max(1, round(image.height * width / image.width)))
        image = image.resize(size, Image.Resampling.BOX)
    data = io.BytesIO()
    image.save(data, kind, **({"quality": 87} if kind == "JPEG" else {}))
    text = base64.b64encode(data.getvalue()).decode()
    return f"data:image/{kind.lower()};base64,{text}"


def _passes(work: Work, frame: int) -> list[dict[str, str]]:
    """Return a picture of each pass of a frame, and one of each Cryptomatte."""
    from vfx.raytrace.film.exr import read_exr

    passes = []
    for name in sequence_names(work.shot):
        path = work.folder_of(RENDER) / f"{name}.{frame:04d}.exr"
        try:
            channels, header = read_exr(path)
        except (FileNotFoundError, ValueError):
            continue
        footage = Footage(name, dict.fromkeys(channels, ""), header)
        mattes = list(footage.mattes.values())
        for layer in mattes or footage.layers:
            pixels = pass_pixels(layer, channels, work.shot.film.color_space)
            what = "a colour a name, mixed by coverage" if mattes else pass_text(layer)
            passes.append({"name": layer, "image": _as_data(pixels, _PASS_WIDTH, "PNG"),
                           "what": what + ("" if pixels.any() else "; all black here")})
    return passes


def _plots(work: Work, history: dict[int, dict[str, float]]) -> list[dict[str, Any]]:
    columns = _history(work)
    frame = _frames_at(work, columns.get("time", np.full_like(columns["step"], np.nan)))

    def drawn(curve: Curve) -> dict[str, Any]:
        valid = np.isfinite(curve.value) & np.isfinite(frame)
        return {"label": curve.label, "dashed": curve.dashed, "points": [
            [float(x), float(y)] for x, y in zip(frame[valid], curve.value[valid], strict=True)]}

    def column(name: str, label: str = "") -> list[dict[str, Any]]:
        return [drawn(Curve(label, columns[name]))] if name in columns else []

    def pieces(name: str, label: str = "") -> list[dict[str, Any]]:
        return [{"label": label, "points": [[number, row[name]] for number, row in
                                            history.items()]}]

    is_rigid = "rigid_pieces" in columns
    plots: list[dict[str, Any]] = [
        {"title": "Energy [J]", "curves": list(map(drawn, energies(columns))) if is_rigid else
         column("kinetic_energy", "motion") + column("bond_energy", "bonds")},
        {"title": "Elements", "curves": list(map(drawn, holders(columns))), "stacked": True},
        {"title": "Unbroken bonds", "curves": column("bonds")},
        {"title": "Pieces", "curves": pieces("pieces", "all")
         + (column("asleep", "asleep") if is_rigid else pieces("single", "of one element"))},
        {"title": "Size of pieces, as share of all mass", "curves": pieces(
            "largest", "largest") + pieces("half", "half of the mass is in larger ones")},
    ]
    return [plot for plot in plots if any(curve["points"] for curve in plot["curves"])]


def _history(work: Work) -> dict[str, Values]:
    """Return the columns of the history, as far as it can be read."""
    table = DiagnosticsTable(work.folder_of(SIM))
    table.read()
    return table.columns()


def _frames_at(work: Work, time: Values) -> Values:
    """Return which frames, or how far between two, are at times [s]."""
    shot = work.shot
    if not shot.clock.time_keys:
        return np.asarray(shot.first_frame + time / shot.frame_time)
    # Finer than the eye tells from a curve.
    sample = np.linspace(shot.first_frame, shot.last_frame, 20 * len(shot.frames) + 1)
    return np.interp(time, [shot.time_of(each) for each in sample.tolist()], sample)


def _events(work: Work) -> dict[str, Any]:
    """Return the timeline: a table of what happened, marks for the plots, and what came of it."""
    if not work.shot.solver.has_timeline:
        return {"events": [], "impacts": [], "withstood": [], "outcome": []}
    timeline, columns = Timeline(work.folder_of(SIM)), _history(work)
    timeline.read()
    events, time = timeline.events, columns.get("time", np.zeros(0))
    end = float(time[np.isfinite(time)].max(initial=0.0))
    found = impacts(events, end)
    frame = _frames_at(work, np.array([event.time for event in events]))
    ends = _frames_at(work, np.array([[each.first, each.last] for each in found]).reshape(-1, 2))
    rows = [["frame", "time [s]", "body", "what", "pieces", "elements", "why", "given up [J]"]]
    rows += [[f"{at:.2f}", f"{event.time:.5f}", event.who, event.what, f"{event.pieces:,}",
              f"{event.elements:,}", event.why,
              f"{event.energy_lost:.3g}" if event.energy_lost else ""]
             for at, event in zip(frame.tolist(), events, strict=True)]
    return {"events": rows, "impacts": ends.tolist(),
            "withstood": [at for at, event in zip(frame.tolist(), events, strict=True)
                          if event.what == WITHSTOOD],
            "outcome": _outcome(work, columns)}


def _outcome(work: Work, columns: dict[str, Values]) -> list[str]:
    """Return what came of a shot whose pieces settle: who is still awake, and what was left out."""
    if not {"time", "rigid_pieces", "asleep", "elements_in_bonds"} <= columns.keys():
        return []
    awake = columns["rigid_pieces"] - columns["asleep"] + columns["elements_in_bonds"]
    moving = np.flatnonzero(awake != 0.0)
    lines = []
    if not len(moving):
        lines.append("all is at rest from the start")
    elif len(moving) and moving[-1] + 1 < len(awake):
        rest = float(columns["time"][moving[-1] + 1])
        frame = float(_frames_at(work, np.array(rest)))
        lines.append(f"all is at rest from frame {frame:.1f} on ({rest:.4g} s)")
    else:
        lines.append(f"at the end {columns['rigid_pieces'][-1] - columns['asleep'][-1]:,.0f} of "
                     f"{columns['rigid_pieces'][-1]:,.0f} pieces are not at rest")
    lost, skipped = columns["energy_lost"][-1], columns["hits_skipped"][-1]
    lines.append(f"{lost:.3g} J of strain and vibration were given up after impacts")
    if skipped:
        lines.append(f"{skipped:,.0f} hits that might have broken something were not tried out: "
                     "they came within the pause after an impact, after most_steps was used up, "
                     "or to pieces below least_mass")
    return lines


def _stages(work: Work, frames: Sequence[int]) -> list[list[str]]:
    return state_rows({stage: work.states(stage, frames) for stage in STAGES})


def _timings(work: Work) -> list[list[str]]:
    """Return for each stage how often it ran, how long, and how many frames it made."""
    rows = [["stage", "runs", "time", "frames", "a frame [s]", "on"]]
    try:
        lines = read_regular(work.folder / LOG_FOLDER / TIMINGS_FILE).splitlines()
    except OSError:
        return rows
    ended: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    begun: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for line in lines:
        try:
            run = json.loads(line)
            name, key = run["stage"], (run["host"], run.get("process"), run["begun"])
            if run["outcome"] == BEGUN:
                begun[name].add(key)
                continue
            begun[name].discard(key)
            ended[name].append((float(run["seconds"]), int(run["made"]), f"{run['device']}, "
                                f"{run['threads']} thread{'' if run['threads'] == 1 else 's'}"))
        except (ValueError, KeyError, TypeError):
            continue
    for name in (stage.name for stage in STAGES):
        each, killed = ended[name], len(begun[name])
        if not each and not killed:
            continue
        seconds, made = sum(run[0] for run in each), sum(run[1] for run in each)
        rows.append([
            name, str(len(each)) + (f" and {killed} without an end" if killed else ""),
            as_clock(seconds), str(made) if made else "-",
            f"{seconds / made:.3g}" if made else "-", each[-1][2] if each else "-"])
    return rows


def _facts(work: Work) -> list[list[str]]:
    """Return what the shot says, as a reader of its pictures wants to know it."""
    shot = work.shot
    rows = [["time", f"{shot.plan.time_text()} a frame, {pace_text(shot)}"]]
    for body in shot.bodies:
        material = shot.materials[body.material]
        rows.append([f"body {body.name}", f"{body.material}: density {material.density:g} kg/m^3, "
                     f"bulk modulus {material.bulk_modulus:.4g} Pa, strain limit "
                     f"{material.strain_limit:g}"])
    rows += [[f"ball {number + 1}", f"radius {ball.radius:g} m, velocity "
              f"{', '.join(f'{value:g}' for value in ball.velocity)} m/s"]
             for number, ball in enumerate(shot.projectiles)]
    rows.append(["picture", f"{shot.film.samples} samples, {shot.film.color_space}, environment "
                            f"'{shot.light.environment}', focal length "
                            f"{shot.camera.focal_length:g} mm"])
    return rows


def _warnings(work: Work, frames: Sequence[int], arguments: Sequence[str]) -> list[str]:
    """Return what the shot is warned of, what is not as it should be now, and what logs say."""
    warnings = shot_warnings(work, STAGES)
    for stage in STAGES[:-1]:
        for state, which in _by_state(work, frames, stage).items():
            if state is not State.DONE:
                what = frames_text(which) if stage.is_per_frame else f"the {stage.gives}"
                warnings.append(f"{stage.name}: {what} {state.value}")
    unchecked = [frame for frame, state in work.states(COMP, frames).items()
                 if state is not State.DONE]
    if unchecked:
        command = shlex.join(["vfx", "stage", COMP.name, str(work.shot.path), *arguments])
        warnings.append(f"{COMP.name}: {frames_text(unchecked)} not checked as rendered now; run "
                        f"{command}")
    return _shortened(warnings + _log_lines(work, "warning"))


def _past(work: Work) -> list[str]:
    """Return what the logs tell of ends that were none; later runs may have put it right."""
    return _shortened(_log_lines(work, "damaged", "failed", "killed", "stopped"))


def _log_lines(work: Work, *words: str) -> list[str]:
    found = []
    for log in sorted((work.folder / LOG_FOLDER).glob("*.log")):
        try:
            lines = read_regular(log).decode(errors="replace").splitlines()
        except OSError:
            continue
        found += [f"{log.name}: {line}" for line in lines
                  if any(word in line.lower() for word in words)]
    return found


def _shortened(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_WARNINGS
    return lines[:_MOST_WARNINGS] + ([f"and {more} more, see {LOG_FOLDER}"] if more > 0 else [])


def _by_state(work: Work, frames: Sequence[int], stage: Stage) -> dict[State, list[int]]:
    found: dict[State, list[int]] = defaultdict(list)
    for frame, state in work.states(stage, frames).items():
        found[state].append(frame)
    return found
