"""Numbers in other units than SI, and keys that do not count, are told, not refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_plate import plate_shot

SHOT = plate_shot("1001-1001", 5, (32, 24), 6)


@pytest.mark.parametrize("key, value, words", [
    ("density", "2.4", "if it is in g/cm^3"), ("bulk_modulus", "35.0", "if it is in GPa"),
    ("strain_limit", "15.0", "16 times as long"), ("density", "2400.0", ""),
    ("strength", "50.0\nbulk_modulus = 35e9", "if it is in MPa"),
    ("strength", "50e6\nbulk_modulus = 35e9", ""),
    ("prestress", "100.0", "if it is in MPa"), ("prestress", "1e6", "")])
def test_check_tells_of_materials_in_other_units(
    vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shot = tmp_path / "plate.toml"
    plain = re.sub(rf"^{key} = .*$", "", SHOT, flags=re.MULTILINE)
    assert "[materials.glass]\n" in plain
    plain = re.sub(r"^timestep = .*$", "", plain, flags=re.MULTILINE)
    # Thick enough for residual stress.
    plain = re.sub(r"^(cells = .*), 2\]$", r"\1, 3]", plain, flags=re.MULTILINE)
    shot.write_text(plain.replace("[materials.glass]\n", f"[materials.glass]\n{key} = {value}\n")
                    .replace("[sim]\n", '[sim]\ntimestep = "auto"\n'))
    result = vfx("check", shot)
    assert result.exit_code == 0, result.output
    assert words in result.output
    assert (f"materials.glass.{key}" in result.output) == bool(words)


@pytest.mark.parametrize("speed, warned", [(30.0, False), (9000.0, True)])
def test_check_tells_of_bodies_faster_than_sound(
    vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speed: float, warned: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    shot = tmp_path / "plate.toml"
    plain = re.sub(r"^timestep = .*$", "", SHOT, flags=re.MULTILINE)
    shot.write_text(plain.replace("[[bodies]]\n", f"[[bodies]]\nvelocity = [0.0, {speed}, 0.0]\n")
                    .replace("[sim]\n", '[sim]\ntimestep = "auto"\n'))
    result = vfx("check", shot)
    assert result.exit_code == 0, result.output
    assert ("faster than sound" in result.output) == warned


@pytest.mark.parametrize("layers, told", [(4, True), (6, False)])
def test_check_tells_of_layers_of_another_shape(
    vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: int, told: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    shot = tmp_path / "plate.toml"
    shot.write_text(SHOT.replace("[[bodies]]\n", f"[[bodies]]\nlayers = {layers}\n"))
    result = vfx("check", shot)
    assert result.exit_code == 0, result.output
    assert ('alone, but its shape is "grid"' in result.output) == told
