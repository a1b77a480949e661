"""Cryptomattes name what covers a pixel, and another's reader finds it again."""

from __future__ import annotations

import dataclasses
import itertools
import json

import mmh3
import numpy as np
import OpenImageIO
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfx.device import open_device
from vfx.raytrace.camera.camera import CameraRays, camera_view, frame_header
from vfx.raytrace.film.cryptomatte import matte_channels, matte_id, murmur3
from vfx.raytrace.film.exr import write_exr
from vfx.raytrace.film.film import data_passes, tile_chunks
from vfx.raytrace.light.lights import sky_on_device
from vfx.raytrace.props import Prop
from vfx.raytrace.render import frame_scene, render_picture
from vfx.raytrace.scene import Surroundings
from vfx.raytrace.settings import Camera, Film, Finish, FloorLook, Light

WHITE = np.ones((16, 32, 3), np.float32)
CAMERA = Camera(position=(0.9, 0.8, 1.4), target=(0.0, 0.1, 0.0))


@given(st.text())
def test_hash_is_murmurhash3(name):
    assert murmur3(name.encode()) == mmh3.hash(name.encode(), 0, signed=False)


@given(st.text(max_size=12))
def test_ids_are_plain_numbers(name):
    value = np.array([matte_id(name)], np.uint32).view(np.float32)[0]
    assert np.isfinite(value) and abs(value) >= np.finfo(np.float32).tiny


def test_slots_of_a_name_add_up_and_the_largest_comes_first():
    which = np.array([[[0, 1, 0, 2]], [[2, 0, 0, 0]]])
    coverage = np.array([[[0.25, 0.375, 0.25, 0.125]], [[1.0, 0.0, 0.0, 0.0]]])
    made = matte_channels("Crypto", ["a", "b", "c"], which, coverage, 2)
    ids = [np.array([matte_id(name)], np.uint32).view(np.float32)[0] for name in "abc"]
    assert list(made) == ["Crypto00.R", "Crypto00.G", "Crypto00.B", "Crypto00.A"]
    assert [made[name][0, 0] for name in made] == [ids[0], 0.5, ids[1], 0.375]
    assert [made[name][1, 0] for name in made] == [ids[2], 1.0, 0.0, 0.0]


@pytest.fixture
def scene(make_solid, make_pieces, floor_plane):
    solid = make_solid((8, 8, 4), spacing=0.08, center=(0.0, 0.3, 0.0))
    pieces = make_pieces(solid, pieces=30, spread=0.02, turn=0.2)
    pieces.projectile_position = np.array([[0.3, 0.5, 0.3]])
    pieces.projectile_radius = np.array([0.1])
    return solid, pieces, floor_plane()


def ball(number, place):
    return Prop(f"collider_{number}", Finish(), np.array([[0.0, *place]]), radius=0.08)


PROPS = [ball(2, (-0.35, 0.5, 0.3)), ball(5, (0.25, 0.2, 0.35))]


def box_film(width, height, samples):
    return Film(resolution=(width, height), samples=samples, filter="box", filter_radius=0.5)


def id_picture(device, scene, factor, width, height):
    """Piece and material of the centres of a picture ``factor`` times as fine."""
    solid, pieces, floor = scene
    fine = box_film(width * factor, height * factor, 1)
    view = camera_view(CAMERA, fine)
    from vfx.geometry.handoff.faces import all_faces

    around = Surroundings(Light(), (), {}, floor, FloorLook(), None, props=PROPS)
    frame = frame_scene(device, solid, all_faces(solid), pieces, around,
                        sky_on_device(device, WHITE), fine, CAMERA, view)
    rays = CameraRays(device, view, fine, origin=frame.origin, index_mask=0)
    values = data_passes(device, height * factor, width * factor)
    for tiles, _, _ in tile_chunks(np.arange(rays.window.n_tiles, dtype=np.int32), 0, 0):
        frame.describe(rays.centers(tiles), values)
    return device.to_host(values["identity"])


def test_coverage_agrees_with_a_supersampled_picture_of_ids(scene, tmp_path):
    """Read back by OpenImageIO, and compared with counts of ids on a grid of 16 x 16 a pixel."""
    device = open_device("cpu")
    solid, pieces, floor = scene
    width, height, factor = 64, 48, 16
    film = box_film(width, height, 256)
    made = render_picture(device, solid, pieces, CAMERA, Light(), {}, floor, FloorLook(), film,
                          WHITE, props=PROPS)
    path = tmp_path / "shot_crypto.1001.exr"
    header = {key: value for key, value in frame_header(CAMERA, film, 24, 1001).items()
              if key not in ("chromaticities", "colorInteropID")}
    write_exr(path, made.matte_channels, header | made.matte_header, exact=True)

    image = OpenImageIO.ImageInput.open(str(path))
    spec = image.spec()
    assert {str(kind) for kind in spec.channelformats} <= {"float"} and str(spec.format) == "float"
    assert spec.getattribute("compression") == "zips"
    assert spec.getattribute("chromaticities") is None
    pixels = np.asarray(image.read_image("float"))
    channel = {name: pixels[..., i] for i, name in enumerate(spec.channelnames)}
    keys = {attribute.name.split("/")[1]: attribute.value for attribute in spec.extra_attribs
            if attribute.name.startswith("cryptomatte/") and attribute.name.endswith("/name")}
    image.close()
    assert sorted(keys.values()) == ["CryptoFragment", "CryptoMaterial"]
    identity = id_picture(device, scene, factor, width, height)
    blocks = identity.reshape(height, factor, width, factor, 4)

    for key, layer in keys.items():
        assert spec.getattribute(f"cryptomatte/{key}/hash") == "MurmurHash3_32"
        assert spec.getattribute(f"cryptomatte/{key}/conversion") == "uint32_to_float32"
        manifest = json.loads(spec.getattribute(f"cryptomatte/{key}/manifest"))
        # Coverage of every name, as a program in comp adds it up: by the bits of the ids.
        found = {name: np.zeros((height, width)) for name in manifest}
        by_bits = {int(text, 16): name for name, text in manifest.items()}
        for level in range(3):
            for rank, cover in ("RG", "BA"):
                bits = channel[f"{layer}{level:02d}.{rank}"].view(np.uint32)
                for value in np.unique(bits[bits != 0]):
                    at = bits == value
                    found[by_bits[int(value)]][at] += channel[f"{layer}{level:02d}.{cover}"][at]
        assert by_bits.keys() == {mmh3_id(name) for name in manifest}
        row, piece = blocks[..., 2], blocks[..., 0]
        if layer == "CryptoFragment":
            expected = {f"{solid.body_name[0]}_{k:05d}": piece == k for k in pieces.id}
        else:
            expected = {"stone": row == 2, "stone_fracture": row == 3}
        expected |= {"floor": row == 0, "projectile": row == 1, "collider_2": row == 4,
                     "collider_5": row == 5}
        assert set(expected) == set(manifest)
        total = sum(found.values())
        assert (total <= 1.0 + 1e-5).all() and (total > 0.99).mean() > 0.99
        errors = [np.abs(found[name] - mask.mean(axis=(1, 3))) for name, mask in expected.items()]
        assert np.max(errors) < 0.06 and np.sqrt(np.mean(np.square(errors))) < 0.003
        assert sum((found[name] > 0.5).any() for name in expected) > (15 if "F" in layer else 3)


def mmh3_id(name):
    value = mmh3.hash(name.encode(), 0, signed=False)
    return value ^ (1 << 23) if (value >> 23) & 255 in (0, 255) else value


def test_ranks_are_sorted_and_the_same_in_every_frame(scene):
    device = open_device("cpu")
    solid, pieces, floor = scene
    for levels in (2, 5, 6):
        film = Film(resolution=(40, 30), samples=8, cryptomatte_levels=levels)
        made = render_picture(device, solid, pieces, CAMERA, Light(), {}, floor, FloorLook(),
                              film, WHITE).matte_channels
        cover = [made[f"CryptoFragment{level // 2:02d}.{'GA'[level % 2]}"]
                 for level in range(levels + levels % 2)]
        assert len(made) == 2 * 2 * (levels + levels % 2)
        assert all((a >= b).all() for a, b in itertools.pairwise(cover))


def test_more_pieces_than_a_pixel_remembers_lose_coverage_and_nothing_else(
        device, make_solid, make_pieces, floor_plane):
    """One pixel that sees 64 pieces: what it names is right, and no coverage is too large."""
    solid = make_solid((8, 8, 1), spacing=0.01)
    pieces = make_pieces(solid, pieces=64)
    camera = Camera(position=(0.0, 0.0, 10.0), target=(0.0, 0.0, 0.0), film_width=36.0,
                    focal_length=36.0 * 10.0 / 0.08)
    samples = 4096
    picture = render_picture(device, solid, pieces, camera, Light(), {},
                             floor_plane(enabled=False), FloorLook(),
                             dataclasses.replace(box_film(1, 1, samples), cryptomatte_levels=12),
                             WHITE)
    named = [(picture.matte_channels[f"CryptoFragment{k // 2:02d}.{'RB'[k % 2]}"][0, 0],
              picture.matte_channels[f"CryptoFragment{k // 2:02d}.{'GA'[k % 2]}"][0, 0])
             for k in range(12)]
    ids = {float(np.array([matte_id(name)], np.uint32).view(np.float32)[0])
           for name in json.loads(next(value for key, value in picture.matte_header.items()
                                       if key.endswith("manifest") and "_00" in value))}
    coverage = [share for _, share in named]
    assert all(float(number) in ids for number, _ in named)
    assert len({float(number) for number, _ in named}) == 12
    # Each piece covers a 64th of the pixel.
    assert np.allclose(coverage, 1 / 64, atol=4 * np.sqrt(1 / 64 / samples))
    assert coverage == sorted(coverage, reverse=True) and sum(coverage) < picture.channels["A"]
    assert all(np.isfinite(channel).all() for channel in picture.channels.values())
