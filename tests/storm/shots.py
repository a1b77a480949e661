"""Shots: files with every key of the schema set to values of every sort, and spoilt texts.

``vfx check`` has to answer each of them with 0, 2 or 3 and a readable sentence, write nothing,
and answer alike twice; so have other commands that only look. What it accepts must run: of small
ones, some do.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from .case import QUICK, Case
from .document import (
    LEFT_ALONE,
    affordable,
    as_toml,
    base,
    document,
    edge,
    mixed,
    valid,
    wrong,
)
from .mutate import spoil
from .plate import write_sky
from .verdict import read_status

#: One case in so many is of valid values that cost little.
_SMALL_EVERY = 25
#: Of what is accepted, this share is run if it is small: elements, steps, samples, bytes on disk.
_RUN_SHARE = 0.25
_SMALL = {"elements": 300, "steps": 200, "samples": 16, "bytes": 2e6}

#: What ``check`` measures, and may say otherwise the next time.
_MEASURED = re.compile(r"^(duration|            \().*|\([\d.]+ .?B available\)"
                       r"|\S+ .?B are (available|free)", re.MULTILINE)
_MESH = """\
v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1
f 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3
"""


def prepare(ground: Path) -> None:
    """Nothing is needed beforehand."""


def play(case: Case, given: None) -> None:
    """Check one shot file; run it if it is one of those."""
    is_small = case.number % _SMALL_EVERY == 0
    _write_files(case)
    case.shot.write_bytes(_small_text(case.random) if is_small else _text(case.random))
    words = ("check", case.shot.name, "--work", case.work)
    outcome = case.vfx(*words, allowed={0, 2, 3}, writes=False)
    case.tally["refused" if outcome.code else "accepted"] += 1
    if case.random.random() < 0.04:
        again = case.vfx(*words, allowed={0, 2, 3}, writes=False)
        if (again.code, _lasting(again.output)) != (outcome.code, _lasting(outcome.output)):
            case.blame("untruthful", "check answers otherwise the second time")
    if case.random.random() < 0.08:
        others = [("status",), ("run", "--dry-run", *QUICK),
                  ("stage", "render", "--dry-run", *QUICK),
                  ("clean", "--stage", "sim", "--dry-run")]
        others += [("submit", "--dry-run", "--farm", farm) for farm in ("slurm", "openjd", "local")]
        case.tally["asked otherwise"] += 1
        case.vfx(*case.random.choice(others), *words[1:], allowed={0, 2, 3}, writes=False)
    if outcome.code == 0 and _is_small(outcome.output) and (
            is_small or case.random.random() < _RUN_SHARE):
        _run(case)


def _run(case: Case) -> None:
    """Run what was accepted: it may fail in the middle, saying how, but not be refused."""
    case.tally["run"] += 1
    outcome = case.vfx("run", case.shot.name, "--work", case.work, *QUICK, allowed={0, 1})
    if outcome.code == 1:
        case.tally["blew up"] += 1
        if "run again with" not in outcome.output and "make them again" not in outcome.output:
            case.blame("unreadable", "a run that failed does not say how to go on")
        case.status(None)
        return
    status = read_status(case.vfx("status", case.shot.name, "--work", case.work, allowed={0},
                                  writes=False).output)
    if outcome.code == 0 and (status is None or not status.is_done):
        case.blame("untruthful", "all was run, but status does not say done")


def _is_small(report: str) -> bool:
    """Whether a shot is done in a second, by what ``check`` says of it."""
    elements = re.search(r": (\d+) particles", report)
    steps = re.search(r"^duration .* for the (\d+) steps", report, re.MULTILINE)
    samples = re.search(r"^picture .*, (\d+) samples", report, re.MULTILINE)
    disk = re.search(r"^disk +about ([\d.]+) (\w+)", report, re.MULTILINE)
    if not (elements and steps and samples and disk):
        return False
    size = float(disk[1]) * {"B": 1, "kB": 1e3, "MB": 1e6}.get(disk[2], 1e9)
    found = {"elements": int(elements[1]), "steps": int(steps[1]), "samples": int(samples[1]),
             "bytes": size}
    return all(found[key] <= most for key, most in _SMALL.items())


def _small_text(random: Random) -> bytes:
    return as_toml(document(random, random.choice([0, 1, 2, 3, 5, 8]), affordable,
                            LEFT_ALONE)).encode()


def _text(random: Random) -> bytes:
    """Return a shot file: of valid values, at the edge, wrong ones, or of a spoilt text."""
    way = random.choices(("valid", "edge", "mixed", "wrong", "spoilt", "unknown", "huge"),
                         (25, 25, 20, 10, 15, 4, 1))[0]
    n_edits = random.choice([1, 1, 2, 3, 5, 10])
    if way == "spoilt":
        text = as_toml(document(random, random.choice([0, 1, 3]), valid)).encode()
        return spoil(random, text, is_text=True)
    if way == "unknown":
        return _with_unknown(random)
    if way == "huge":
        return _huge(random)
    values = {"valid": valid, "edge": edge, "mixed": mixed, "wrong": wrong}
    return as_toml(document(random, n_edits, values[way])).encode()


def _with_unknown(random: Random) -> bytes:
    """Return a shot with keys that do not exist, or stand in the wrong place."""
    made = base()
    name = random.choice(["sim", "render", "bodies", "sims", "", "a" * 3000, "\x1b[2J", "ü\n",
                          "materials", "__class__", "shot"])
    value = random.choice([1, "text", {}, {"a": 1}, [], [{"b": 2}], {"x": {"y": {"z": 1}}},
                           {f"key{i}": i for i in range(500)}])
    where = random.choice([made, made["sim"], made["bodies"][0], made["materials"],
                           made["materials"]["glass"]])
    where[name] = value
    return as_toml(made).encode()


def _huge(random: Random) -> bytes:
    """Return a text that is large or deep."""
    text = as_toml(base())
    return (text + random.choice([
        "x = " + "[" * 5000 + "]" * 5000, "[a" + ".a" * 5000 + "]", "[[cracks]]\n" * 3000,
        "x = \"" + "a" * 10**6 + "\"", "\n".join(f"[materials.m{i}]" for i in range(3000)),
        "#" * 10**6, "[[weakening]]\npoints = [" + "[0,0,0]," * 20_000 + "]",
        "x = 1" + "0" * 10**5, "[[projectiles]]\nposition=[0,0.2,0]\nvelocity=[0,0,0]\n" * 500,
    ])).encode()


def _write_files(case: Case) -> None:
    """Write the files that texts of the schema name (:data:`document.TEXTS`)."""
    from PIL import Image

    folder = case.shot.parent
    write_sky(folder / "sky.exr")
    (folder / "mesh.obj").write_text(_MESH)
    (folder / "camera.usda").write_text(
        '#usda 1.0\ndef Camera "cam" {\n  float focalLength = 35\n}\n')
    Image.new("L", (4, 4), 128).save(folder / "picture.png")


def _lasting(output: str) -> str:
    return _MEASURED.sub("", output)
