"""Images: pictures of every kind in every role, and cameras from USD, hostile in every way.

Textures of floor and bodies, weakening, environments. ``check`` has to answer each; what it
accepts must render.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from .case import QUICK, Case
from .child import start
from .mutate import spoil
from .plate import write_sky

#: What a file may be, and of which kinds it then mostly is.
_ROLES = {"floor": (".png", ".jpg", ".exr"), "surface": (".png", ".jpg", ".exr"),
          "weakening": (".png", ".exr"), "environment": (".exr", ".hdr"),
          "camera": (".usda", ".usdc")}


def prepare(ground: Path) -> dict[str, bytes]:
    """Write good pictures and cameras; return their bytes by file name."""
    folder = ground / "good-images"
    folder.mkdir()
    outcome = start([], folder=folder, writable=[folder],
                    command=lambda: _write_all(folder)).wait()
    if outcome.code:
        raise SystemExit(f"the good pictures could not be written: {outcome.output}")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def play(case: Case, good: dict[str, bytes]) -> None:
    """Check a shot with one hostile picture or camera; render a frame if it is accepted."""
    random = case.random
    role = list(_ROLES)[case.number % len(_ROLES)]
    name = random.choice([name for name in good if Path(name).suffix in _ROLES[role]
                          or random.random() < 0.05])
    data = good[name]
    suffix = Path(name).suffix
    if random.random() < 0.8:
        structured = _STRUCTURED.get(suffix)
        if structured is not None and random.random() < 0.5:
            data = structured(random, data)
        else:
            data = spoil(random, data, is_text=suffix in (".usda", ".hdr"))
    if random.random() < 0.1:
        suffix = random.choice([".png", ".jpg", ".exr", ".hdr", ".tif", "", ".PNG", ".usdz"])
    file = f"file{suffix}"
    case.tell(f"{role}: {name}, as {file}")
    write_sky(case.shot.parent / "sky.exr")
    (case.shot.parent / "box.obj").write_text(_BOX)
    (case.shot.parent / file).write_bytes(data)
    case.shot.write_text(_shot(role, file))
    words = (case.shot.name, "--work", case.work)
    outcome = case.vfx("check", *words, allowed={0, 2, 3}, writes=False)
    case.tally["refused" if outcome.code else "accepted"] += 1
    if outcome.code == 0 and random.random() < 0.5:
        case.tally["run"] += 1
        case.vfx("run", *words, *QUICK, allowed={0})


def _shot(role: str, file: str) -> str:
    camera = f'[camera]\nusd = "{file}"' if role == "camera" else ""
    floor = f'[floor_look]\ntexture = "{file}"' if role == "floor" else ""
    surface = f'[materials.clay.surface]\ntexture = "{file}"' if role == "surface" else ""
    # Only a mesh can have a texture; to check one takes longer.
    body = ('mesh = "box.obj"\nshape = "grid"\nelements = 27\nheight = 0.05' if role == "surface"
            else "cells = [3, 3, 2]\nspacing = 0.01")
    weakening = (f'[[weakening]]\nimage = "{file}"\nimage_origin = [-0.05, 0.05, 0.0]'
                 if role == "weakening" else "")
    return f"""\
[shot]
frames = "1001-1002"
[time]
steps_per_frame = 3
[[bodies]]
name = "box"
material = "clay"
{body}
center = [0.0, 0.07, 0.0]
[materials.clay]
{surface}
[sim]
timestep = "auto"
{floor}
{camera}
{weakening}
[light]
environment = "{file if role == 'environment' else 'sky.exr'}"
[render]
resolution = [8, 6]
samples = 1
"""


#: A box with uv.
_BOX = """\
v 0 0 0\nv 0 0 1\nv 0 1 0\nv 0 1 1\nv 1 0 0\nv 1 0 1\nv 1 1 0\nv 1 1 1
vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1
f 1/1 2/2 4/3 3/4\nf 5/1 7/2 8/3 6/4\nf 1/1 5/2 6/3 2/4
f 3/1 4/2 8/3 7/4\nf 1/1 3/2 7/3 5/4\nf 2/1 6/2 8/3 4/4
"""


def _other_png(random: Random, data: bytes) -> bytes:
    """Change a chunk of a PNG and let its checksum be right again."""
    chunks, place = [], 8
    while place + 12 <= len(data):
        (length,) = struct.unpack(">I", data[place:place + 4])
        chunks.append([data[place + 4:place + 8], data[place + 8:place + 8 + length]])
        place += 12 + length
    chunk = random.choice(chunks)
    way = random.randrange(5)
    if way == 0 and chunk[1]:
        chunk[1] = spoil(random, chunk[1])
    elif way == 1:
        width, height = (random.choice([0, 1, 3, 16385, 2**31 - 1, 2**32 - 1]) for _ in range(2))
        chunks[0][1] = struct.pack(">II", width, height) + chunks[0][1][8:]
    elif way == 2:
        chunks[0][1] = chunks[0][1][:8] + bytes(random.choice([0, 1, 2, 3, 4, 6, 8, 16, 99])
                                                for _ in range(5))
    elif way == 3:
        chunks.insert(random.randrange(len(chunks)), [
            random.choice([b"iCCP", b"tRNS", b"gAMA", b"zTXt", b"eXIf", b"PLTE", b"acTL", b"IDAT"]),
            random.choice([b"", b"x\0\0" + zlib.compress(b"\0" * 10**7), random.randbytes(50)])])
    else:
        random.shuffle(chunks)
    return data[:8] + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks)


def _other_exr(random: Random, data: bytes) -> bytes:
    """Change an attribute of an EXR's header, most of which are boxes and numbers."""
    places = [match.end() for match in re.finditer(rb"[a-zA-Z]+\0[a-zA-Z0-9]+\0", data[:2000])]
    if not places:
        return spoil(random, data)
    place = random.choice(places)
    size = int.from_bytes(data[place:place + 4], "little")
    value = place if random.random() < 0.2 else place + 4 + 4 * random.randrange(
        max(1, min(size, 64) // 4))
    number = random.choice([struct.pack("<i", n) for n in (0, 1, -1, 2, 65536, 2**31 - 1, -2**31)]
                           + [struct.pack("<f", x) for x in (0.0, -1.0, 1e38, float("nan"))])
    return data[:value] + number + data[value + 4:]


def _other_pixels(random: Random, data: bytes) -> bytes:
    """Write numbers that are none into the pixels of an EXR that is not compressed."""
    place = random.randrange(len(data) * 3 // 4, len(data) - 4)
    return data[:place] + struct.pack("<f", random.choice(
        [np.nan, np.inf, -np.inf, -1.0, 1e38, 3e38, 1e-45])) + data[place + 4:]


def _other_hdr(random: Random, data: bytes) -> bytes:
    """Change the size that a Radiance picture gives itself, or its lines."""
    size = random.choice([
        b"-Y 4 +X 8", b"+Y 4 +X 8", b"-Y 0 +X 8", b"-Y 99999 +X 99999", b"-Y -4 +X 8", b"+X 8 -Y 4",
        b"-Y 4 +X", b"-Y 4.5 +X 8", b"-Y 4 +X 8 +Z 3", b"-Y " + b"9" * 400 + b" +X 8"])
    return re.sub(rb"-Y \d+ \+X \d+", size, data)


_STRUCTURED: dict[str, Callable[[Random, bytes], bytes]] = {
    ".png": _other_png, ".hdr": _other_hdr,
    ".exr": lambda random, data: (_other_exr if random.random() < 0.6 else _other_pixels)(
        random, data)}


def _write_all(folder: Path) -> None:
    """Write good pictures of every kind; runs in a process of its own."""
    from PIL import Image

    random = np.random.default_rng(1)
    byte = random.integers(0, 256, (8, 16, 4), dtype=np.uint8)
    byte[..., 3] = 255
    pictures = {
        "L": Image.fromarray(byte[..., 0]), "RGB": Image.fromarray(byte[..., :3]),
        "RGBA": Image.fromarray(byte), "LA": Image.fromarray(byte).convert("LA"),
        "P": Image.fromarray(byte[..., :3]).quantize(16), "1": Image.fromarray(byte).convert("1"),
        "I16": Image.fromarray(byte[..., 0].astype(np.uint16) * 257),
        "CMYK": Image.fromarray(byte[..., :3]).convert("CMYK")}
    for mode, image in pictures.items():
        for suffix in ("png", "jpg", "tif"):
            data = io.BytesIO()
            try:
                image.save(data, {"jpg": "JPEG", "tif": "TIFF"}.get(suffix, "PNG"))
            except OSError:
                continue
            (folder / f"{mode}.{suffix}").write_bytes(data.getvalue())
    pictures["RGB"].save(folder / "progressive.jpg", progressive=True, quality=30)
    _write_exr(folder, byte.astype(np.float32) / 255.0)
    _write_hdr(folder, byte)
    _write_cameras(folder)


def _write_exr(folder: Path, pixels: np.ndarray) -> None:
    import OpenEXR

    for compression in ("NO", "ZIPS", "ZIP", "PIZ", "RLE", "PXR24", "B44", "DWAA"):
        header = {"compression": getattr(OpenEXR, f"{compression}_COMPRESSION"),
                  "type": OpenEXR.scanlineimage}
        kind = np.float16 if compression in ("PIZ", "B44") else np.float32
        OpenEXR.File(header, {"RGB": np.ascontiguousarray(pixels[..., :3], kind)}).write(
            str(folder / f"{compression}.exr"))
    OpenEXR.File({"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}, {
        "Y": np.ascontiguousarray(pixels[..., 0])}).write(str(folder / "grey.exr"))
    part = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    rgb = {"RGB": np.ascontiguousarray(pixels[..., :3])}
    OpenEXR.File([OpenEXR.Part(dict(part), rgb, name=name) for name in "ab"]).write(
        str(folder / "parts.exr"))


def _write_hdr(folder: Path, byte: np.ndarray) -> None:
    head = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 8 +X 16\n"
    (folder / "flat.hdr").write_bytes(head + byte.tobytes())
    rows = b"".join(
        b"\x02\x02\x00\x10" + b"".join(b"\x90" + bytes([row[0, k]]) for k in range(4))
        for row in byte)
    (folder / "packed.hdr").write_bytes(head + rows)


_CAMERA = """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Y"
    timeCodesPerSecond = 24
    startTimeCode = 1001
    endTimeCode = 1002
)
def Xform "rig" {
    matrix4d xformOp:transform = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 5, 0, 1))
    uniform token[] xformOpOrder = ["xformOp:transform"]
    def Camera "cam" {
        float focalLength = 35
        float focalLength.timeSamples = { 1001: 35, 1002: 50 }
        float horizontalAperture = 24.576
        float verticalAperture = 18.672
        float fStop = 4
        float focusDistance = 100
        float2 clippingRange = (1, 10000)
        double3 xformOp:translate.timeSamples = { 1001: (0, 7, 40), 1002: (1, 7, 40) }
        float3 xformOp:rotateXYZ = (-10, 5, 0)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]
    }
}
"""


def _write_cameras(folder: Path) -> None:
    second = _CAMERA.replace('"cam"', '"other"').split("def Xform", 1)[1]
    texts = {"one": _CAMERA, "two": _CAMERA + "def Xform" + second.replace('"rig"', '"rig2"'),
             "none": "#usda 1.0\ndef Xform \"rig\" {}\n"}
    for name, text in texts.items():
        (folder / f"{name}.usda").write_text(text)
    try:
        from pxr import Sdf
    except ImportError:
        return
    Sdf.Layer.FindOrOpen(str(folder / "one.usda")).Export(str(folder / "one.usdc"))
