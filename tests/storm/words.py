"""Words: every option of every command, with values of every sort, and odd surroundings.

The commands and options are read from the command line itself, so that new ones are covered as
soon as they exist.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import click

from .case import QUICK, Case
from .document import TEXTS
from .plate import Reference, make_reference, write_shot

_VALUES = (
    "", " ", "0", "1", "-1", "2", "1001", "1001-1002", "1001-1003x2", "1003-1001", "x", "1e9",
    "99999999999999999999", "0x10", "1.5", "nan", "inf", "-inf", "1e-320", "auto", "cpu", "guard",
    "cuda:0", "cuda:99", "1001-", "-1001", ",", "1001,,1002", "1001x0", "1001x-1", "1001-1002x1x1",
    "a=b", "--", "-h", "\n", "\x1b[31m", "1_0", "١", "+1", "1001 - 1002", "plate.toml", "work", ".",
    "out.png", "out.jpg", "out.usd", "out.abc", "no/such/out.png", "out")
_SURROUNDINGS: tuple[dict[str, str], ...] = (
    {}, {}, {}, {"OMP_NUM_THREADS": "10000"}, {"VFX_ISA": "v9"}, {"VFX_ISA": ""},
    {"COLUMNS": "0"}, {"COLUMNS": "x"},
    {"HOME": "/nonexistent"}, {"HOME": ""}, {"TZ": "nowhere"},
    {"OPENJD": "1"}, {"PATH": ""}, {"TERM": "dumb"}, {"LC_ALL": "C"}, {"OMP_THREAD_LIMIT": "1"},
    {"IMAGEIO_FFMPEG_EXE": "/nonexistent"}, {"IMAGEIO_FFMPEG_EXE": "/bin/false"},
)
#: Commands that take long by their nature, or print no answer to a shot.
_LEFT_OUT = ("bench",)


def prepare(ground: Path) -> Reference:
    """Make the run that commands find results of."""
    return make_reference(ground)


def play(case: Case, reference: Reference) -> None:
    """Call one command with options of chance."""
    from vfx.pipeline.cli.commands import main

    write_shot(case.shot.parent)
    if case.random.random() < 0.7:
        shutil.copytree(reference.work, case.work)
        if case.random.random() < 0.3:
            shutil.rmtree(case.work / case.random.choice(["sim", "align", "render", "comp"]))
    commands = {name: command for name, command in main.commands.items() if name not in _LEFT_OUT}
    name = list(commands)[case.number % len(commands)]
    words = [name, *_words(case.random, commands[name])]
    if not any(word == "--work" for word in words) and any(
            "--work" in parameter.opts for parameter in commands[name].params):
        words += ["--work", str(case.work)]
    if name == "submit" and "--dry-run" not in words:
        words.append("--no-start")
    if "--threads" not in words and any("--threads" in parameter.opts
                                        for parameter in commands[name].params):
        words += QUICK[2:]
    surroundings = case.random.choice(_SURROUNDINGS)
    case.tell(f"in {surroundings}")
    # Where output goes is said by the words.
    outcome = case.take(case.start(*words, writable=[case.root], environment=surroundings))
    case.tally["accepted" if outcome.code == 0 else "refused"] += 1
    if case.work.is_dir() and name in ("run", "stage", "clean"):
        write_shot(case.shot.parent)
        case.finish(reference.sums)


def _words(random: Random, command: click.Command) -> list[str]:
    """Return arguments and options for a command: mostly of the right sort."""
    words: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            words += _argument(random, parameter)
        elif parameter.required or random.random() < 0.25:
            option = random.choice(parameter.opts)
            if isinstance(parameter, click.Option) and parameter.is_flag:
                words.append(option)
            else:
                words += [option, _value(random, parameter)]
    if random.random() < 0.05:
        words.insert(random.randrange(len(words) + 1), random.choice(
            ["--no-such-option", "--", "-x", "", "extra", "--help", "--work", "--frames="]))
    return words


def _argument(random: Random, parameter: click.Parameter) -> list[str]:
    if parameter.name == "shot" and random.random() < 0.93:
        return ["plate.toml"]
    if random.random() < 0.03:
        return []
    return [_value(random, parameter)]


def _value(random: Random, parameter: click.Parameter) -> str:
    kind = parameter.type
    if isinstance(kind, click.Choice) and random.random() < 0.9:
        return str(random.choice(list(kind.choices)))
    if parameter.name in ("frames", "frame") and random.random() < 0.6:
        return random.choice(["1001", "1002", "1003", "1001-1002"][:3 if parameter.name == "frame"
                                                                   else 4])
    if isinstance(kind, (click.types.IntRange, click.types.FloatRange)) and random.random() < 0.6:
        low = kind.min if kind.min is not None else 0
        high = kind.max if kind.max is not None else 100
        return str(random.choice([low, low, low + 1, min(high, 16), low - 1]))
    # No word holds a null, and none may lead out of the case's folder.
    return random.choice([word for word in (*_VALUES, *TEXTS)
                          if "\0" not in word and not word.startswith(("/", "~", ".."))]
                         + ["/dev/full/x.png", "/proc/x.png"])
