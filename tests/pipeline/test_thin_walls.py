"""What `check` tells of thin walls, and which materials it refuses, with numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import Result
from small_plate import plate_shot

#: The small plate, and a ball that begins well in front of it.
PANE = plate_shot("1001-1001", 5, (32, 24), 6).replace("0.0135", "0.03")


@pytest.fixture
def told(vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what `check` says of the small plate with some lines instead of others."""
    monkeypatch.chdir(tmp_path)

    def check(*changes: tuple[str, str]) -> Result:
        text = PANE
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        Path("pane.toml").write_text(text)
        return vfx("check", "pane.toml")

    return check


def pane(layers: int, more: str = "") -> tuple[tuple[str, str], ...]:
    """The plate, 60 cells wide and some thick."""
    return (("cells = [6, 6, 2]", f"cells = [60, 60, {layers}]"), ("[sim]\n", f"[sim]\n{more}"))


def test_a_pane_one_cell_thick_is_warned_of(told) -> None:
    result = told(*pane(1))
    assert result.exit_code == 0, result.output
    assert "all well" not in result.output
    # Four cells of half a millimetre: 64 times as many, and steps a quarter as long.
    assert "warning     body 'plate' has 1 element through its walls of 2 mm" in result.output
    assert "it does not resist bending" in result.output
    assert "cells = [240, 240, 4], spacing = 0.0005 (4 through the wall: 230,400 elements" in (
        result.output)


@pytest.mark.parametrize(("layers", "more", "words"), [
    (3, "", "3 elements through walls of 6 mm, which bend at 0.52 of their stiffness (0.76 with "
     "surface_correction = true); bending needs 3 or 4: cells = [80, 80, 4], spacing = 0.0015"),
    (4, "", "4 elements through walls of 8 mm, which bend at 0.62 of their stiffness (0.96 with "
     "surface_correction = true)\n"),
    (4, "surface_correction = true\n", "8 mm, which bend at 0.96 of their stiffness\n"),
    (4, "horizon = 2.0\n", "8 mm, which bend at 0.79 of their stiffness (1.04 with ")])
def test_check_says_how_walls_of_few_cells_bend(told, layers: int, more: str, words: str) -> None:
    result = told(*pane(layers, more))
    assert result.exit_code == 0 and "all well" in result.output, result.output
    assert words in result.output


def test_of_chunks_and_of_what_never_breaks_nothing_is_told(told) -> None:
    never = ('name = "plate"\nmaterial', 'name = "plate"\nwhole = true\nmaterial')
    for changes in ((("cells = [6, 6, 2]", "cells = [6, 6, 4]"),), (*pane(1), never)):
        result = told(*changes)
        assert result.exit_code == 0 and "through" not in result.output, result.output


def test_a_wall_thinner_than_a_cell_is_warned_of_with_numbers(told) -> None:
    result = told(("cells = [6, 6, 2]\nspacing = 2e-3",
                   "box = [0.1, 0.1, 1e-3]\nshape = 'voronoi'\nelements = 200"))
    assert result.exit_code == 0, result.output
    found = re.search(r"has about 0\.\d+ elements through its walls of 1 mm, which is thinner than "
                      r"an element \((\d\.\d+) mm\).*use elements = (\d+)", result.output)
    assert found, result.output
    size = (0.1 * 0.1 * 1e-3 / 200) ** (1 / 3)
    assert float(found[1]) == pytest.approx(1e3 * size, rel=0.01)
    assert float(found[2]) == pytest.approx(200 * (4 * size / 1e-3) ** 3, rel=0.05)


def test_strength_needs_stiffness(told) -> None:
    result = told(("[materials.glass]\n", "[materials.glass]\nstrength = 50e6\n"))
    assert result.exit_code == 2
    assert "pane.toml: materials.glass.bulk_modulus: missing; with strength = 5e+07 Pa" in (
        result.output)


def test_strength_beyond_stiffness_is_refused(told) -> None:
    result = told(("[materials.glass]\n",
                   "[materials.glass]\nstrength = 50e6\nbulk_modulus = 35.0\n"))
    assert result.exit_code == 2
    assert "materials.glass.strength: found 5e+07 Pa, which whole matter of bulk_modulus = 35 Pa " \
        "reaches at a stretch of 9.52e+05" in result.output


def test_limits_below_round_off_are_refused_and_the_way_out_is_one(told) -> None:
    result = told(("[materials.glass]\n", "[materials.glass]\nfracture_energy = 1e-9\n"))
    assert result.exit_code == 2
    found = re.search(
        r"materials\.glass\.fracture_energy: found 1e-09 J/m\^2, with which body 'plate' breaks at "
        r"a stretch of (\S+); .* stretches below (\S+) mean nothing; it must be (\S+) J/m\^2",
        result.output)
    assert found, result.output
    limit, least, energy = map(float, found.groups())
    # s0 = sqrt(5 G / (9 K delta)), K 32.81 GPa, delta 6 mm; displacements are multiples of
    # 4 delta / 2^31 at the best.
    assert limit == pytest.approx((5 * 1e-9 / (9 * 32.81e9 * 6e-3)) ** 0.5, rel=0.05)
    assert 6.0 * 4 * 3 / 2**31 < least < 1e-6
    again = told(("[materials.glass]\n", f"[materials.glass]\nfracture_energy = {1.05 * energy}\n"))
    assert again.exit_code == 0, again.output


def test_a_strain_limit_below_round_off_is_refused(told) -> None:
    result = told(("[materials.glass]\n", "[materials.glass]\nstrain_limit = 1e-9\n"))
    assert result.exit_code == 2
    assert "materials.glass.strain_limit: found 1e-09, with which body 'plate' breaks" in (
        result.output)
