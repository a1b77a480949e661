"""Open Job Description: one template that ``openjd run`` and AWS Deadline Cloud take.

Frames are a parameter of the template and are chunked by whoever runs it (TASK_CHUNKING); its
ranges write a step as ``1-10:2``, which the tasks translate back. Pictures take the pieces of
frames beside them, too, so the frames of sim and align are a parameter of their own.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vfx.pipeline.errors import FrameFailed, MissingInput
from vfx.pipeline.farm.graph import FRAMES, FarmJob, Submission
from vfx.pipeline.progress import StopSignals
from vfx.pipeline.stages.stage import Stage
from vfx.pipeline.stages.table import ALIGN, LINEAGE, SIM
from vfx.pipeline.work.cache import publish_bytes

NAME = "openjd"
TEMPLATE = "template.json"
VALUES = "parameter_values.json"
_GIVEN = ("Program", "Shot", "Work", "Device", "Threads")     # to every task, in this order
_OF_PIECES = (SIM, LINEAGE, ALIGN)                            # they make frames beside, too
_STOP_SECONDS = 60
_POLL_SECONDS = 0.1


def template(submission: Submission) -> dict[str, Any]:
    """Return the job template."""
    return {
        "specificationVersion": "jobtemplate-2023-09",
        "extensions": ["TASK_CHUNKING"],
        "name": submission.name,
        "description": f"The shot {submission.name}, from its file to frames that were checked.",
        "parameterDefinitions": [
            {"name": "Shot", "type": "PATH", "objectType": "FILE", "dataFlow": "IN",
             "description": "The shot file."},
            {"name": "Work", "type": "PATH", "objectType": "DIRECTORY", "dataFlow": "INOUT",
             "description": "The work folder, shared by all workers."},
            {"name": "Frames", "type": "STRING", "default": frame_range(submission.frames),
             "description": "Frames to make; a step is written 1001-1010:2."},
            {"name": "PieceFrames", "type": "STRING",
             "default": frame_range(_piece_frames(submission)),
             "description": "Frames to simulate and align: those to make, and for motion the ones "
                            "beside them."},
            {"name": "Program", "type": "STRING", "default": submission.program,
             "description": "The command vfx on the workers."},
            {"name": "Device", "type": "STRING", "default": submission.device,
             "description": "auto, cpu, guard or cuda:N."},
            {"name": "Threads", "type": "INT", "minValue": 0,
             "default": submission.threads or 0,
             "description": "CPU threads of a task; 0 for all cores."},
        ],
        "steps": [_step(submission, job) for job in submission.jobs],
    }


def frame_range(frames: Iterable[int]) -> str:
    """Return frames as a range of OpenJD, with steps, for a parameter may not be long."""
    parts: list[range] = []
    for frame in sorted(set(frames)):
        last = parts[-1] if parts else range(0)
        if len(last) == 1:
            parts[-1] = range(last[0], frame + 1, frame - last[0])
        elif last and frame == last[-1] + last.step:
            parts[-1] = range(last[0], frame + 1, last.step)
        else:
            parts.append(range(frame, frame + 1))
    return ",".join(_part(part) for part in parts)


def _part(part: range) -> str:
    if len(part) <= 2 and part.step > 1:
        return ",".join(map(str, part))
    step = f":{part.step}" if part.step > 1 else ""
    return f"{part[0]}-{part[-1]}{step}" if len(part) > 1 else f"{part[0]}"


def _piece_frames(submission: Submission) -> list[int]:
    """Return the frames that need pieces: of align where it has to run, else those to make."""
    return [frame for job in submission.jobs if job.stage is ALIGN
            for chunk in job.chunks for frame in chunk] or list(submission.frames)


def write_files(submission: Submission) -> list[Path]:
    """Write the template, and the values of its paths as AWS Deadline Cloud takes them."""
    documents = {TEMPLATE: template(submission), VALUES: {"parameterValues": [
        {"name": name, "value": value} for name, value in _paths(submission).items()]}}
    for name, document in documents.items():
        publish_bytes(submission.folder(NAME) / name,
                      (json.dumps(document, indent=1) + "\n").encode())
    return [submission.folder(NAME) / name for name in documents]


def commands(submission: Submission) -> list[str]:
    """Return the command that runs the whole template here."""
    return [shlex.join(_words(submission))]


def require(submission: Submission) -> None:
    """Raise if the program that runs templates is not there."""
    if shutil.which("openjd") is None:
        raise MissingInput(
            "openjd: not on PATH; 'pip install openjd-cli' brings it; or write the template for "
            "another that takes it with --no-start, or run the shot on this machine:\n"
            f"  {submission.local_command()}")


def start(submission: Submission, say: Callable[[str], None], stop: StopSignals) -> None:
    """Run the template with ``openjd run``, passing its output on, and a stop to it."""
    # In a group of its own: Ctrl-C reaches it through us, once.
    process = subprocess.Popen(_words(submission), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, encoding="utf-8",
                               errors="backslashreplace", start_new_session=True)
    reader = threading.Thread(target=_pass_on, args=(process.stdout, say))
    reader.start()
    told = False
    while (code := process.poll()) is None:
        if stop.wanted and not told:
            process.terminate()
            told = True
        time.sleep(_POLL_SECONDS)
    reader.join()
    stop.check()
    if code != 0:
        raise FrameFailed(f"openjd ended with {code}, see above; submit again to do "
                          "what is missing")


def _pass_on(lines: Iterable[str] | None, say: Callable[[str], None]) -> None:
    for line in lines or ():
        say(line.rstrip())


def _words(submission: Submission) -> list[str]:
    return ["openjd", "run", str(submission.folder(NAME) / TEMPLATE), "--step",
            _step_name(submission.jobs[-1].stage), "--run-dependencies",
            "-p", json.dumps(_paths(submission), ensure_ascii=False)]     # NAME=VALUE is stripped


def _paths(submission: Submission) -> dict[str, str]:
    """Return the paths that a template may have no default for."""
    return {"Shot": str(submission.shot), "Work": str(submission.work)}


def _step_name(stage: Stage) -> str:
    return stage.name.capitalize()


def _step(submission: Submission, job: FarmJob) -> dict[str, Any]:
    step: dict[str, Any] = {"name": _step_name(job.stage)}
    if job.after is not None:
        step["dependencies"] = [{"dependsOn": _step_name(job.after)}]
    every = ("{{Param.PieceFrames}}" if job.stage in _OF_PIECES
             else "{{Param.Frames}}")
    frames = every
    if job.is_chunked:
        frames = "{{Task.Param.Frames}}"
        step["parameterSpace"] = {"taskParameterDefinitions": [{
            "name": "Frames", "type": "CHUNK[INT]", "range": every,
            "chunks": {"defaultTaskCount": submission.chunk, "rangeConstraint": "CONTIGUOUS"}}]}
    step["script"] = {
        "actions": {"onRun": {
            "command": "bash",
            "args": ["{{Task.File.Run}}", *(f"{{{{Param.{name}}}}}" for name in _GIVEN), frames],
            "cancelation": {"mode": "NOTIFY_THEN_TERMINATE",
                            "notifyPeriodInSeconds": _STOP_SECONDS}}},
        "embeddedFiles": [{"name": "Run", "type": "TEXT", "filename": f"{job.name}.sh",
                           "data": _script(submission, job)}]}
    return step


def _script(submission: Submission, job: FarmJob) -> str:
    """Return the script of a task.

    Values come as its arguments: in the text, an apostrophe in a path would end a word.
    """
    stand_ins = {submission.program: '"$program"', str(submission.shot): '"$shot"',
                 str(submission.work): '"$work"', submission.device: '"$device"',
                 FRAMES: '"${frames//:/x}"'}
    words = " ".join(stand_ins.get(word, shlex.quote(word)) for word in submission.command(job))
    lines = ["#!/bin/bash", *(f"{name.lower()}=${number}" for number, name in enumerate(
        (*_GIVEN, "Frames"), 1))]
    if not job.stage.uses_device:
        lines.append(f"exec {words}")
    else:
        lines += ["options=()", '[ "$threads" = 0 ] || options=(--threads "$threads")',
                  f'exec {words} "${{options[@]}}"']
    return "\n".join(lines) + "\n"
