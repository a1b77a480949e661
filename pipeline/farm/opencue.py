"""OpenCue: a job specification that Cuebot takes, and the command that launches it.

The server is on no package index, so this is generated and checked against what the client
library writes, but not run here. A frame of a layer is the number of a chunk, looked up in
its script: OpenCue's own ranges read ``:`` as an interleave.
"""

from __future__ import annotations

import getpass
import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from vfx.pipeline.errors import FrameFailed, MissingInput, ShotError
from vfx.pipeline.farm.graph import (
    TRIES,
    FarmJob,
    Submission,
    find_frames,
    script_name,
    task_script,
)
from vfx.pipeline.paths import why_not
from vfx.pipeline.work.cache import publish_bytes

NAME = "opencue"
SPEC = "job.xml"
_VERSION = "1.15"
_KEYS = ("facility", "show", "shot", "service")
_LAUNCH = ("import sys, opencue.api; "
           "opencue.api.launchSpecAndWait(open(sys.argv[1], encoding='utf-8').read())")


def specification(submission: Submission) -> str:
    """Return the job specification as XML."""
    choice = _choices(submission)
    root = ElementTree.Element("spec")
    _add(root, "facility", choice["facility"])
    _add(root, "show", choice["show"])
    _add(root, "shot", choice["shot"])
    _add(root, "user", _user())
    _add(root, "uid", str(os.getuid()))
    job_name = f"{choice['show']}-{choice['shot']}-{_user()}_{submission.name}"
    job_element = ElementTree.SubElement(root, "job", {"name": job_name})
    _add(job_element, "paused", "False")
    _add(job_element, "priority", "1")
    _add(job_element, "maxretries", str(TRIES))
    _add(job_element, "autoeat", "False")
    ElementTree.SubElement(job_element, "env")
    layers = ElementTree.SubElement(job_element, "layers")
    depends = ElementTree.Element("depends")
    for job in submission.jobs:
        layer = ElementTree.SubElement(layers, "layer", {"name": job.name, "type": "Render"})
        _add(layer, "cmd", f"bash {_quoted(str(_script_path(submission, job)))} #IFRAME#")
        _add(layer, "range", f"1-{len(job.chunks)}" if job.is_chunked else "1")
        _add(layer, "chunk", "1")
        if submission.threads is not None:
            _add(layer, "cores", f"{submission.threads:.1f}")
        _add(layer, "threadable", "True")
        if submission.needs_gpu(job):
            _add(layer, "gpus", "1")
            _add(layer, "gpu_memory", "1g")
        ElementTree.SubElement(layer, "env")
        services = ElementTree.SubElement(layer, "services")
        _add(services, "service", choice["service"])
        if job.after is not None:
            depend = ElementTree.SubElement(depends, "depend", {
                "type": "FRAME_BY_FRAME" if job.is_paired else "LAYER_ON_LAYER",
                "anyframe": "False"})
            _add(depend, "depjob", job_name)
            _add(depend, "deplayer", job.name)
            _add(depend, "onjob", job_name)
            _add(depend, "onlayer", job.after.name)
    root.append(depends)
    ElementTree.indent(root, " ")
    return ('<?xml version="1.0"?>\n<!DOCTYPE spec PUBLIC "SPI Cue  Specification Language" '
            f'"http://localhost:8080/spcue/dtd/cjsl-{_VERSION}.dtd">\n'
            + ElementTree.tostring(root, encoding="unicode") + "\n")


def write_files(submission: Submission) -> list[Path]:
    """Write the specification, and a script a layer that looks its chunk up."""
    folder = submission.folder(NAME)
    for job in submission.jobs:
        publish_bytes(_script_path(submission, job), _script(submission, job).encode())
    publish_bytes(folder / SPEC, specification(submission).encode())
    return [folder / SPEC]


def commands(submission: Submission) -> list[str]:
    """Return the command that launches the specification."""
    return [shlex.join(_words(submission))]


def require(submission: Submission) -> None:
    """Raise if the client library is not there."""
    if importlib.util.find_spec("opencue") is None:
        raise MissingInput("the client library of OpenCue is not installed; 'pip install "
                           "opencue-pycue' brings it; or write the job's specification with "
                           "--no-start, or run the shot on this machine:\n"
                           f"  {submission.local_command()}")


def start(submission: Submission, say: Callable[[str], None]) -> None:
    """Launch the specification through the client library."""
    done = subprocess.run(_words(submission), capture_output=True, encoding="utf-8",
                          errors="backslashreplace", check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise FrameFailed(f"OpenCue did not take the job: {reason}; is CUEBOT_HOSTS set?")
    say(f"launched {submission.folder(NAME) / SPEC}; see it in CueGUI")


def _words(submission: Submission) -> list[str]:
    return [sys.executable, "-c", _LAUNCH, str(submission.folder(NAME) / SPEC)]


def _script_path(submission: Submission, job: FarmJob) -> Path:
    return submission.folder(NAME) / script_name(job, _script(submission, job))


def _script(submission: Submission, job: FarmJob) -> str:
    """Return the script of a layer; it takes the number of the chunk, from 1."""
    return task_script(submission, job, find_frames(job, "${1:?}"))


def _quoted(word: str) -> str:
    """Return a word for a shell, without #NAME#, which OpenCue would put something else for."""
    return shlex.quote(word).replace("#", "'\"#\"'")


def _choices(submission: Submission) -> dict[str, str]:
    """Return facility, show, shot and service: those given as ``show=NAME``, or defaults."""
    choice = {"facility": "local", "show": os.environ.get("SHOW", "testing"),
              "shot": os.environ.get("SHOT", submission.name), "service": "default"}
    for word in submission.extra:
        key, equals, value = word.partition("=")
        if key not in _KEYS or not equals:
            raise ShotError(f"--farm-option {word}: for OpenCue write one of "
                            f"{', '.join(f'{name}=NAME' for name in _KEYS)}")
        choice[key] = value
    for key, value in choice.items():
        if (reason := why_not(value)) is not None:
            raise ShotError(f"{key}={value!a} of OpenCue: {reason}")
    return choice


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _add(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = text
