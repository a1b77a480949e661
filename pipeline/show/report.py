"""What ``vfx status`` and ``vfx check`` print, and what ``vfx clean`` removes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from vfx.pipeline.errors import MissingInput, PipelineError
from vfx.pipeline.quantities import as_clock, as_pace, as_size
from vfx.pipeline.shot.frames import format_frames, frames_text
from vfx.pipeline.shot.needs import (
    check_camera,
    check_denoising,
    check_division,
    check_film,
    check_floor,
    check_folder,
    check_meshes,
    check_physics,
    check_uv,
    disk_needs,
    estimate_time,
    host_memory,
    plan_needs,
)
from vfx.pipeline.shot.shot_file import Shot
from vfx.pipeline.shot.validate import MOST_TOLD
from vfx.pipeline.show.review import FOLDER as REVIEW_FOLDER
from vfx.pipeline.stages import align as stage_align
from vfx.pipeline.stages import sim as stage_sim
from vfx.pipeline.stages.comp import FOLDER as COMP_FOLDER
from vfx.pipeline.stages.comp import comp_states, handoff_files
from vfx.pipeline.stages.run import WARNING, shot_warnings, unfit_aids
from vfx.pipeline.stages.table import STAGE, STAGES, Stage, following
from vfx.pipeline.work import checkpoint, diagnostics, manifest
from vfx.pipeline.work.cache import remove_file
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State
from vfx.sim.solver import Plan

_OWN_FILES = {
    manifest.FILE_NAME, manifest.LOCK_NAME, stage_sim.LOCK_FILE, stage_align.LOCK_FILE,
    stage_align.LINEAGE_FILE, stage_sim.PLOT_FILE, diagnostics.FILE_NAME, *checkpoint.FILES,
}

_MAP_WIDTH = 100
_SIGNS = {State.DONE: "#", State.MISSING: ".", State.STALE: "~", State.DAMAGED: "!"}


def status_table(work: Work, arguments: Sequence[str] = ()) -> list[str]:
    """Return which frames of which stage are done, stale, damaged or missing, and what to run.

    ``arguments`` are the options that a command shown to the user must repeat.
    """
    states = {stage.name: work.states(stage, work.shot.frames) for stage in STAGES}
    states[COMP_FOLDER] = comp_states(work, work.shot.frames)
    rows = state_rows(states)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]
    return [f"{work.shot.path}, frames {work.shot.first_frame}-{work.shot.last_frame}, "
            f"in {work.folder}", *lines, "", *_frame_map(work.shot, states), *_faults(work),
            *_next_command(work.shot, states, arguments)]


def state_rows(states: Mapping[str, Mapping[int, State]]) -> list[list[str]]:
    """Return a table with a head: the frames of each stage by their states."""
    rows = [["stage", *(state.value for state in State)]]
    for name, found in states.items():
        cells = []
        for state in State:
            frames = [frame for frame, each in found.items() if each is state]
            whole = format_frames(frames) if _is_per_frame(name) else STAGE[name].gives
            cells.append(whole if frames else "-")
        rows.append([name, *cells])
    return rows


def _is_per_frame(stage: str) -> bool:
    return stage == COMP_FOLDER or STAGE[stage].is_per_frame


def _next_command(shot: Shot, states: Mapping[str, Mapping[int, State]],
                  arguments: Sequence[str]) -> list[str]:
    """Return what makes the rest of a shot and hands it over; nothing where all is done."""
    def rest(stage: str) -> list[int]:
        return [frame for frame, state in states[stage].items() if state is not State.DONE]

    if rest("render"):
        return ["", "make the rest and hand it over to comp with:",
                "  " + shlex.join(["vfx", "run", str(shot.path), *arguments])]
    if rest(COMP_FOLDER):
        return ["", f"{frames_text(rest(COMP_FOLDER))} not checked for comp as rendered now; check "
                "and hand over with:",
                "  " + shlex.join(["vfx", "stage", "comp", str(shot.path), *arguments])]
    return []


def _frame_map(shot: Shot, states: Mapping[str, Mapping[int, State]]) -> list[str]:
    """Return stages x frames, a sign a frame, or the worst of several where there are many."""
    share = -(-len(shot.frames) // _MAP_WIDTH)
    groups = [shot.frames[i:i + share] for i in range(0, len(shot.frames), share)]
    ruler = ""
    for i in range(0, len(groups), 10):
        ruler = ruler.ljust(i) + (str(groups[i][0]) if i + 4 <= len(groups) or not i else "")
    lines = [f"{'frames':10s}{ruler}"]
    for name, found in states.items():
        if _is_per_frame(name):
            signs = (max((found[frame] for frame in group), key=list(_SIGNS).index)
                     for group in groups)
            lines.append(f"{name:10s}" + "".join(_SIGNS[state] for state in signs))
    each = f", the worst of {share} frames" if share > 1 else ""
    return [*lines, f"{'':10s}" + "  ".join(f"{sign} {state.value}"
                                          for state, sign in _SIGNS.items()) + each]


def _faults(work: Work) -> list[str]:
    """Return what else is damaged in a work folder; the next run puts it right."""
    lines = []
    for stage in STAGES:
        if work.manifest(stage).fault == "damaged":
            lines.append(f"{work.folder_of(stage) / manifest.FILE_NAME}: damaged; files are known "
                         "by the fingerprint they carry, and the next run lists them again")
        lines += [f"{path}: {fault}; the next run says so and makes it again or does without it"
                  for path, fault in unfit_aids(work, stage).items()]
    return lines


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
            *_body_lines(shot, plan), f"time        {plan.time_text()} a frame: "
            f"{plan.frame_time * 1e3:.4g} ms a frame, {as_pace(plan.frame_time * shot.fps)}"]
        check_physics(shot, host_memory())
        lines[-1:-1] = _sim_lines(shot, plan)
    except PipelineError as error:
        problems.append(error)
    if controls := _controls_text(shot):
        lines.append(f"controls    {controls}")
    if not problems:
        lines += [f"{WARNING}     {line}" for line in shot_warnings(work, STAGE)]
    needed = sum(disk_needs(shot, stage.name, len(shot.frames)) for stage in STAGES)
    missing = {stage: sum(state is not State.DONE for state in work.states(
        stage, shot.frames).values()) for stage in STAGES}
    to_come = sum(disk_needs(shot, stage.name, n) for stage, n in missing.items() if n)
    lines.append(f"disk        about {as_size(needed)} in {work.folder}")
    for check in (lambda: check_floor(shot), lambda: check_film(shot, host_memory()),
                  work.environment, work.texture, work.images, work.densities,
                  lambda: check_uv(shot), lambda: check_camera(shot, work.camera()),
                  lambda: check_denoising(shot), lambda: check_folder(work.folder, to_come),
                  lambda: None if problems else check_division(shot)):
        try:
            check()
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
    lines = []
    for number, body in enumerate(shot.bodies[:MOST_TOLD]):
        lines.append(f"  {body.name:<10}{plan.body_text(number)}")
        if body.name in reports:
            lines += [f"  {'':<10}{line}" for line in reports[body.name].lines()]
    return lines


def _sim_lines(shot: Shot, plan: Plan[Any]) -> list[str]:
    """Return what the stages need, and how long the simulation may take here."""
    from vfx.geometry.divide.build import solid_bytes

    memory = max(plan.memory, solid_bytes(shot.bodies))
    return [
        *(f"{'' if number else 'sim':<12}{line}" for number, line in enumerate(plan.lines())),
        f"memory      about {as_size(memory)} ({as_size(host_memory())} available)",
        *_duration_lines(shot),
    ]


def _duration_lines(shot: Shot) -> list[str]:
    n_steps = shot.plan.n_steps(shot.time_of(shot.last_frame))
    try:
        estimate = estimate_time(shot, n_steps)
    except MissingInput as error:
        return [f"duration    cannot be estimated: {error}"]
    return [
        f"duration    an estimate: {as_clock(estimate.seconds)} for the {n_steps} steps of sim "
        "while the bodies are whole, up to about twice that in pieces",
        f"            ({estimate.steps_per_second:.3g} steps/s, from a small block stepped just "
        f"now on {estimate.device})",
    ]


def _controls_text(shot: Shot) -> str:
    """Return what acts on the bodies, in one line; empty where nothing does."""
    kinds = (("projectile", shot.projectiles), ("collider", shot.colliders),
             ("region", shot.regions), ("weakening", shot.weakening), ("crack", shot.cracks))
    words = [f"{len(items)} {name}{'s' if len(items) > 1 else ''}" for name, items in kinds
             if items]
    heavy = sum(projectile.mass > 0.0 for projectile in shot.projectiles)
    if heavy:
        words[0] += f" ({heavy} with a mass)"
    return ", ".join(words)


def clean(work: Work, stage_name: str, *, dry_run: bool) -> list[Path]:
    """Remove the files of a stage and of all that follow it; return them.

    Only files that the pipeline itself writes are touched; a folder goes when it is empty. While
    a run uses the folder, nothing is removed.
    """
    with nullcontext() if dry_run or not work.folder.is_dir() else work.alone():
        return _clean(work, stage_name, dry_run)


def _clean(work: Work, stage_name: str, dry_run: bool) -> list[Path]:
    removed: list[Path] = []
    for stage in following(stage_name) if stage_name != COMP_FOLDER else ():
        if work.folder_of(stage).is_dir():
            removed += _remove(work, stage, dry_run)
    comp = work.folder / COMP_FOLDER
    if comp.is_dir():
        names = {manifest.FILE_NAME, manifest.LOCK_NAME, *handoff_files(work.shot.name)}
        removed += _unlink([path for path in comp.iterdir() if path.name in names], dry_run)
        _remove_if_empty(comp, dry_run)
    review = work.folder / REVIEW_FOLDER
    if review.is_dir():
        names = {manifest.FILE_NAME, manifest.LOCK_NAME, f"{work.shot.name}.png",
                 f"{work.shot.name}.mp4", f"{work.shot.name}.html"}
        removed += _unlink([path for path in review.iterdir() if path.name in names], dry_run)
        _remove_if_empty(review, dry_run)
    return removed


def _remove(work: Work, stage: Stage, dry_run: bool) -> list[Path]:
    folder = work.folder_of(stage)
    # Pictures are named after the shot; others of their kind in the folder are somebody's own.
    pattern = re.escape(stage.file_name.format(shot="SHOT", frame=9999))
    pattern = pattern.replace("SHOT", re.escape(work.shot.name) + "(_crypto)?")
    pattern = pattern.replace("9999", r"\d{4,}")
    doomed = [path for path in sorted(folder.iterdir())
              if path.name in _OWN_FILES or path.name.startswith(".tmp-")
              or re.fullmatch(pattern, path.name)]
    removed = _unlink(doomed, dry_run)
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
