"""Finishes, area lights and textures of a shot: presets fill in, mistakes are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from chaotic_plate import SHOT
from PIL import Image

from vfx.pipeline.errors import ShotError
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.work.folder import Work
from vfx.raytrace.settings import Look, MaterialLook
from vfx.raytrace.surface.texture import load_texture

LOOK = "[materials.glass.look]"


def shot_with(folder: Path, finishes: str, rest: str = "") -> Path:
    """Write the shot with ``finishes`` in the place of its look."""
    before, _, after = SHOT.partition(LOOK)
    _, bracket, others = after.partition("\n[")
    path = folder / "a.toml"
    path.write_text(before + finishes + bracket + others + rest)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ShotError) as caught:
        load_shot(path)
    return str(caught.value)


def test_a_plain_look_stays_what_it_was(shot_file: Path) -> None:
    assert isinstance(load_shot(shot_file).looks["glass"], Look)


def test_surface_and_fracture_start_from_their_presets(tmp_path: Path) -> None:
    look = load_shot(shot_with(
        tmp_path, '[materials.glass.surface]\npreset = "glass"\nior = 1.7\n'
                  '[materials.glass.fracture]\nbump = 0.5\n')).looks["glass"]
    assert isinstance(look, MaterialLook)
    assert look.surface.kind == look.fracture.kind == "glass"
    assert look.surface.ior == look.fracture.ior == 1.7
    assert (look.surface.bump, look.fracture.bump) == (0.0, 0.5)


@pytest.mark.parametrize(("finishes", "said"), [
    ('[materials.glass.surface]\npreset = "glas"\n', "did you mean 'glass'"),
    ('[materials.glass.surface]\nkind = "glass"\nior = 0.5\n', "must be at least 1"),
    ('[materials.glass.fracture]\nbumb = 0.5\n', "did you mean 'bump'"),
    ('[materials.glass.look]\nspecular = 0.1\n[materials.glass.surface]\nkind = "ggx"\n',
     "keep either look or those two"),
])
def test_mistakes_in_finishes_are_named(tmp_path: Path, finishes: str, said: str) -> None:
    message = refusal(shot_with(tmp_path, finishes))
    assert said in message and "materials.glass" in message


def test_an_area_light_must_face_somewhere(tmp_path: Path) -> None:
    panel = "\n[[area_lights]]\nposition = [0, 1, 0]\ntarget = [0, 1, 0]\n"
    assert "area_lights[1].target" in refusal(shot_with(tmp_path, "", panel))
    panel = "\n[[area_lights]]\nposition = [0, 1, 0]\nsize = [0.2, 0.1]\n"
    assert load_shot(shot_with(tmp_path, "", panel)).area_lights[0].size == (0.2, 0.1)


def test_a_missing_texture_is_refused_by_name(tmp_path: Path) -> None:
    path = shot_with(tmp_path, "", '\n[floor_look]\ntexture = "boards.png"\n')
    with pytest.raises(ShotError, match=r"floor_look\.texture: found 'boards\.png'.*no such image"):
        Work(load_shot(path), tmp_path / "work").inputs.texture()


def test_textures_become_linear(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 3, 3), 188, np.uint8)).save(tmp_path / "grey.png")
    image = load_texture("grey.png", tmp_path)
    assert image is not None and image.shape == (2, 3, 3)
    assert image == pytest.approx(np.full((2, 3, 3), 0.5), abs=0.005)
    assert load_texture("wood", tmp_path) is None
    (tmp_path / "cut.png").write_bytes((tmp_path / "grey.png").read_bytes()[:40])
    with pytest.raises(ValueError, match="truncated, damaged"):
        load_texture("cut.png", tmp_path)
    with pytest.raises(ValueError, match=r"must be a \.png"):
        load_texture("a.toml", shot_with(tmp_path, "").parent)
