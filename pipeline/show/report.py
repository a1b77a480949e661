"""What ``vfx status`` and ``vfx check`` print, and what ``vfx clean`` removes."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from vfx.pipeline.errors import MissingInput, PipelineError
from vfx.pipeline.quantities import as_clock, as_duration, as_pace, as_size, as_time
from vfx.pipeline.shot import checks
from vfx.pipeline.shot.frames import format_frames, frames_text
from vfx.pipeline.shot.needs import (
    Estimate,
    check_division,
    check_folder,
    check_meshes,
    check_physics,
    estimate_time,
    host_memory,
    plan_needs,
)
from vfx.pipeline.shot.shot_file import Shot
from vfx.pipeline.shot.validate import MOST_TOLD
from vfx.pipeline.show.review import FOLDER as REVIEW_FOLDER
from vfx.pipeline.stages.run import WARNING, checks_of, room_to_come, shot_warnings
from vfx.pipeline.stages.stage import Stage
from vfx.pipeline.stages.table import COMP, SIM, STAGES
from vfx.pipeline.work import manifest
from vfx.pipeline.work.cache import remove_file
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State
from vfx.sim.solver import Plan

_MAP_WIDTH = 100
_LONG = 2 * 3600.0           # [s]: simulations that take longer are worth a word
_LONG_SHOT = 0.1             # [s]: what takes longer in the world is not an impact alone
_SIGNS = {State.DONE: "#", State.MISSING: ".", State.STALE: "~", State.DAMAGED: "!"}


def status_table(work: Work, arguments: Sequence[str] = ()) -> list[str]:
    """Return which frames of which stage are done, stale, damaged or missing, and what to run.

    ``arguments`` are the options that a command shown to the user must repeat.
    """
    states = {stage: work.states(stage, work.shot.frames) for stage in STAGES}
    rows = state_rows(states)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]
    return [f"{work.shot.path}, frames {work.shot.first_frame}-{work.shot.last_frame}, "
            f"in {work.folder}", *lines, "", *_frame_map(work.shot, states), *_faults(work),
            *_next_command(work.shot, states, arguments)]


def state_rows(states: Mapping[Stage, Mapping[int, State]]) -> list[list[str]]:
    """Return a table with a head: the frames of each stage by their states."""
    rows = [["stage", *(state.value for state in State)]]
    for stage, found in states.items():
        cells = []
        for state in State:
            frames = [frame for frame, each in found.items() if each is state]
            whole = format_frames(frames) if stage.is_per_frame else stage.gives
            cells.append(whole if frames else "-")
        rows.append([stage.name, *cells])
    return rows


def _next_command(shot: Shot, states: Mapping[Stage, Mapping[int, State]],
                  arguments: Sequence[str]) -> list[str]:
    """Return what makes the rest of a shot and hands it over; nothing where all is done."""
    rest = {stage: frames for stage, found in states.items()
            if (frames := [frame for frame, state in found.items() if state is not State.DONE])}
    if not rest:
        return []
    if list(rest) == [COMP]:
        return ["", f"{frames_text(rest[COMP])} not checked for comp as rendered now; check and "
                "hand over with:",
                "  " + shlex.join(["vfx", "stage", COMP.name, str(shot.path), *arguments])]
    return ["", "make the rest and hand it over to comp with:",
            "  " + shlex.join(["vfx", "run", str(shot.path), *arguments])]


def _frame_map(shot: Shot, states: Mapping[Stage, Mapping[int, State]]) -> list[str]:
    """Return stages x frames, a sign a frame, or the worst of several where there are many."""
    share = -(-len(shot.frames) // _MAP_WIDTH)
    groups = [shot.frames[i:i + share] for i in range(0, len(shot.frames), share)]
    ruler = ""
    for i in range(0, len(groups), 10):
        ruler = ruler.ljust(i) + (str(groups[i][0]) if i + 4 <= len(groups) or not i else "")
    lines = [f"{'frames':10s}{ruler}"]
    for stage, found in states.items():
        if stage.is_per_frame:
            signs = (max((found[frame] for frame in group), key=list(_SIGNS).index)
                     for group in groups)
            lines.append(f"{stage.name:10s}" + "".join(_SIGNS[state] for state in signs))
    each = f", the worst of {share} frames" if share > 1 else ""
    return [*lines, f"{'':10s}" + "  ".join(f"{sign} {state.value}"
                                          for state, sign in _SIGNS.items()) + each]


def _faults(work: Work) -> list[str]:
    """Return what else is damaged in a work folder; the next run puts it right."""
    lines = []
    for stage in STAGES:
        if stage.find_states is None and work.manifest(stage).fault == "damaged":
            lines.append(f"{work.folder_of(stage) / manifest.FILE_NAME}: damaged; files are known "
                         "by the fingerprint they carry, and the next run lists them again")
        lines += [f"{path}: {fault}; the next run says so and makes it again or does without it"
                  for path, fault in stage.unfit_aids(work, stage).items()]
    return list(dict.fromkeys(lines))


def check_report(work: Work) -> tuple[list[str], list[PipelineError]]:
    """Return a readable report on a valid shot file, and what stands in the way of running it."""
    shot = work.shot
    problems: list[PipelineError] = []
    try:
        check_meshes(shot)
    except PipelineError as error:
        return refused_mesh_lines(error), [error]
    width, height = shot.film.resolution
    lines = [
        f"shot        {shot.name}: frames {shot.first_frame}-{shot.last_frame} at "
        f"{shot.fps:g} fps",
        f"bodies      {_bodies_text(shot)}: {shot.n_particles} particles",
        f"picture     {width} x {height}, {shot.film.samples} samples, "
        f"{shot.film.color_space}, environment '{shot.light.environment}'",
    ]
    try:
        plan = plan_needs(shot, host_memory())
        lines[2:2] = [
            *_body_lines(shot, plan), f"time        {plan.time_text()} a frame: {_time_text(shot)}"]
        check_physics(shot, host_memory())
        lines[-1:-1] = _sim_lines(shot, plan)
    except PipelineError as error:
        problems.append(error)
    if controls := _controls_text(shot):
        lines.append(f"controls    {controls}")
    if not problems:
        lines += [f"{WARNING}     {line}" for line in shot_warnings(work, STAGES)]
    needed = sum(stage.room(shot, len(shot.frames)) for stage in STAGES)
    lines.append(f"disk        about {as_size(needed)} in {work.folder}")
    machine = checks.this_machine()
    done = (checks.meshes, checks.bodies, checks.physics)      # above, for what they found
    trials: list[Callable[[], object]] = [
        functools.partial(check, work.inputs, machine) for check in checks_of(STAGES)
        if check not in done]
    trials += [lambda: check_folder(work.folder, room_to_come(work)),
               lambda: None if problems else check_division(shot)]
    for trial in trials:
        try:
            trial()
        except PipelineError as error:
            problems.append(error)
    return lines, problems


def refused_mesh_lines(error: PipelineError) -> list[str]:
    """Return what was found of a mesh that is refused, as far as it was looked at."""
    report = getattr(error.__cause__, "report", None)
    return [] if report is None else [f"mesh        {line}" for line in report.lines()]


def _bodies_text(shot: Shot) -> str:
    more = len(shot.bodies) - MOST_TOLD
    names = [f"{body.name} ({body.material})" for body in shot.bodies[:MOST_TOLD]]
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def _body_lines(shot: Shot, plan: Plan[Any]) -> list[str]:
    from vfx.geometry.divide.build import mesh_reports

    reports = mesh_reports(shot.bodies)
    alike: dict[tuple[str, ...], list[str]] = {}
    for number, body in enumerate(shot.bodies[:MOST_TOLD]):
        never = "; it never breaks" if body.whole else ""
        mesh = reports[body.name].lines() if body.name in reports else []
        told = (f"{plan.body_text(number)}{never}", *plan.body_lines(number), *mesh)
        alike.setdefault(told, []).append(body.name)
    lines = []
    for (text, *more), names in alike.items():
        who = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} alike"
        lines += [f"  {who:<10}{'' if len(who) < 10 else ' '}{text}",
                  *(f"  {'':<10}{line}" for line in more)]
    return lines


def _sim_lines(shot: Shot, plan: Plan[Any]) -> list[str]:
    """Return what the stages need, and how long the simulation may take here."""
    from vfx.geometry.divide.build import solid_bytes

    memory = max(plan.memory, solid_bytes(shot.placed_bodies))
    return [
        *(f"{'' if number else SIM.name:<12}{line}" for number, line in enumerate(plan.lines())),
        f"memory      about {as_size(memory)} ({as_size(host_memory())} available)",
        *_duration_lines(shot),
    ]


def _duration_lines(shot: Shot) -> list[str]:
    try:
        estimate = estimate_time(shot)
    except MissingInput as error:
        return [f"duration    cannot be estimated: {error}"]
    parts = [f"{as_clock(seconds)} for {what}" for what, seconds in estimate.parts]
    if len(parts) > 1:
        parts.insert(0, f"{as_clock(estimate.seconds)} in all")
    lines = [f"{'' if number else 'duration':<12}{'an estimate: ' if not number else ''}{part}"
             for number, part in enumerate(parts)]
    if shot.solver.tries_pace:
        lines.append(f"            ({estimate.steps_per_second:.3g} steps/s, from a small block "
                     f"stepped just now on {estimate.device})")
    return lines + _long_sim(shot, estimate)


def _long_sim(shot: Shot, estimate: Estimate) -> list[str]:
    """Return what to do about a simulation that takes hours of which little are impacts."""
    simulated = shot.time_of(shot.last_frame)
    if not shot.solver.counts_steps or estimate.seconds < _LONG or simulated < _LONG_SHOT:
        return []
    return [f"{WARNING}     bonds alone will step through {as_time(simulated)} for about "
            f"{as_duration(estimate.seconds)}; with method = \"auto\" in [sim] bodies are rigid "
            "until something hits them hard, and only the milliseconds of impacts take bonds"]


def _time_text(shot: Shot) -> str:
    """Return how much of the world's time frames take, and how fast that is."""
    if not shot.clock.time_keys:
        return f"{shot.frame_time * 1e3:.4g} ms a frame, {pace_text(shot)}"
    total = as_time(shot.time_of(shot.last_frame))
    return f"{total} in {len(shot.frames)} frames, {pace_text(shot)}"


def pace_text(shot: Shot) -> str:
    """Return the speed of a shot, or how it goes from key to key."""
    if not shot.clock.time_keys:
        return as_pace(shot.frame_time * shot.fps)
    keys = [f"{speed:g} at {shot.first_frame + frame:g}" for frame, speed in shot.clock.time_keys]
    more = len(keys) - MOST_TOLD
    return "speed " + ", ".join(keys[:MOST_TOLD]) + (f" and {more:,} more" if more > 0 else "")


def _controls_text(shot: Shot) -> str:
    """Return what acts on the bodies, in one line; empty where nothing does."""
    kinds = (("projectile", shot.projectiles), ("collider", shot.colliders),
             ("region", shot.regions), ("weakening", shot.weakening), ("crack", shot.cracks),
             ("animation", [body for body in shot.bodies if body.animation]))
    words = [f"{len(items)} {name}{'s' if len(items) > 1 else ''}" for name, items in kinds
             if items]
    heavy = sum(projectile.has_mass for projectile in shot.projectiles)
    if heavy:
        words[0] += f" ({heavy} with a mass)"
    return ", ".join(words)


def clean(work: Work, first: Stage, *, dry_run: bool) -> list[Path]:
    """Remove the files of a stage and of all that follow it; return them.

    Only files that the pipeline itself writes are touched; a folder goes when it is empty. While
    a run uses the folder, nothing is removed.
    """
    with nullcontext() if dry_run or not work.folder.is_dir() else work.alone():
        doomed = STAGES[STAGES.index(first):]
        folders = dict.fromkeys(stage.folder for stage in doomed)
        removed: list[Path] = []
        for name in folders:
            patterns = [pattern for stage in STAGES if stage.folder == name
                        for pattern in _own_names(work.shot, stage)]
            removed += _remove(work.folder / name, patterns, dry_run)
        pages = [re.escape(work.shot.name + suffix) for suffix in (".png", ".mp4", ".html")]
        removed += _remove(work.folder / REVIEW_FOLDER, pages, dry_run)
    return removed


def _own_names(shot: Shot, stage: Stage) -> list[str]:
    """Return patterns of the names of a stage's files.

    Pictures are named after the shot; others of their kind in the folder are somebody's own.
    """
    result = re.escape(stage.file_name.format(shot="SHOT", frame=9999)).replace("9999", r"\d{4,}")
    return [result.replace("SHOT", re.escape(shot.name) + "(_crypto)?"),
            *map(re.escape, stage.aids(shot))]


def _remove(folder: Path, patterns: Sequence[str], dry_run: bool) -> list[Path]:
    """Remove files of such names from a folder, and what goes with them; return them."""
    if not folder.is_dir():
        return []
    own = re.compile("|".join([*patterns, re.escape(manifest.FILE_NAME),
                               re.escape(manifest.LOCK_NAME), r"\.tmp-.*"]), re.DOTALL)
    removed = _unlink([path for path in sorted(folder.iterdir()) if own.fullmatch(path.name)],
                      dry_run)
    _remove_if_empty(folder, dry_run)
    return removed


def _unlink(paths: list[Path], dry_run: bool) -> list[Path]:
    if not dry_run:
        for path in paths:
            remove_file(path)
    return paths


def _remove_if_empty(folder: Path, dry_run: bool) -> None:
    if not dry_run and not any(folder.iterdir()):
        folder.rmdir()
