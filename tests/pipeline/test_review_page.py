"""The review page in a real browser, from disk, with the network off."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from small_plate import plate_shot

from vfx.pipeline.cli.commands import main
from vfx.pipeline.show.pass_colors import pass_pixels
from vfx.raytrace.film.passes import CHANNELS

SHOT = """\
# </script><script>document.title = "escaped"</script>
""" + plate_shot("1001-1005", steps=150, resolution=(96, 54), side=12)
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    shot = folder / "plate.toml"
    shot.write_text(SHOT)
    for words in (["run", "--device", "cpu"], ["review"]):
        result = CliRunner().invoke(main, [words[0], str(shot), "--work", str(folder / "work"),
                                           *words[1:]])
        assert result.exit_code == 0, result.output
    return folder / "work/review/plate.html"


@pytest.fixture
def browser() -> Iterator[Any]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    playwright = None
    try:
        from playwright.sync_api import sync_playwright as playwright
    except ImportError:
        program = None
    if program is None or playwright is None:
        reason = "no Chromium with Playwright; pip install playwright, apt install chromium"
        if os.environ.get("VFX_REQUIRE_BROWSER") == "1":
            pytest.fail(f"VFX_REQUIRE_BROWSER=1, but there is {reason}")
        pytest.skip(reason)
    with playwright() as tools:
        opened = tools.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_the_page_works_from_disk_without_a_network(page_file: Path, browser: Any) -> None:
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    page = context.new_page()
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text)
            if message.type == "error" else None)
    page.goto(page_file.as_uri())
    assert page.title() == "plate", "nothing in the shot file is run"
    assert [url for url in requests if not url.startswith("data:")] == [page_file.as_uri()]

    # The scrubber: each place shows its own frame, and moves the cursors of the plots.
    def state() -> tuple[str, str, str]:
        return (page.text_content("#frame"), page.get_attribute("#picture", "src"),
                page.get_attribute("svg .cursor", "x1"))

    seen = []
    for number in range(5):
        page.evaluate("""n => { const s = document.getElementById("scrub"); s.value = n;
                                s.dispatchEvent(new Event("input")); }""", number)
        seen.append(state())
        assert re.fullmatch(rf"frame {1001 + number}, (1 piece|\d+ pieces)", seen[-1][0])
        assert page.evaluate("document.getElementById('picture').decode().then(() => "
                             "document.getElementById('picture').naturalWidth)") == 96
    assert len({image for _, image, _ in seen}) == 5
    places = [float(x) for _, _, x in seen]
    assert places == sorted(places) and len(set(places)) == 5
    handle = page.locator("#scrub")
    box = handle.bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
    assert state() == seen[0], "a click at its left end goes to the first frame"

    # Keys, playing, and the contact sheet.
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    assert state() == seen[1]
    page.keyboard.press("End")
    assert state() == seen[4]
    page.locator("#sheet figure").nth(2).click()
    assert state() == seen[2]
    page.click("#play")
    page.wait_for_function("document.getElementById('frame').textContent.indexOf('1003') < 0")
    page.click("#play")
    assert page.text_content("#play") == "Play"

    # What else must be there.
    assert page.locator("#sheet figure").count() == 5
    names = page.locator("#passes b").all_text_contents()
    assert set(names) == {*CHANNELS, "CryptoFragment", "CryptoMaterial"}
    captions = page.locator("#passes figcaption").all_text_contents()
    assert all(len(caption) > len(name) + 8 for caption, name in zip(captions, names, strict=True))
    assert [name for caption, name in zip(captions, names, strict=True)
            if "all black here" in caption] == ["refraction"], "nothing is of glass"
    titles = page.locator(".plot h3").all_text_contents()
    assert [title.split("[")[0].split(",")[0].strip()[:6] for title in titles] == [
        "Energy", "Unbrok", "Pieces", "Size o"]
    assert page.locator(".plot path").count() >= 4
    assert "</script>" in page.text_content("#file")
    assert page.locator("#timings tr").count() == 7, "a row for each stage, below the head"
    # The ball of this plate begins near it, so that it breaks in a few steps.
    warning, = page.locator("#warnings li").all_text_contents()
    assert "projectiles[1] begins with its centre" in warning
    assert not page.locator("#earlier").is_visible()
    pixels = np.asarray(Image.open(io.BytesIO(page.screenshot())))
    assert pixels.std() > 10.0
    assert errors == []


def test_the_page_tells_what_is_wrong(page_file: Path, tmp_path: Path, browser: Any) -> None:
    shutil.copytree(page_file.parents[1], tmp_path / "work")
    shot = tmp_path / "plate.toml"
    shot.write_text(SHOT)
    (tmp_path / "work/render/plate.1002.exr").unlink()
    path = tmp_path / "work/render/plate.1004.exr"
    path.write_bytes(path.read_bytes()[:-20])
    with open(tmp_path / "work/logs/sim.log", "a") as log:
        log.write("then stopped by SIGTERM\nwarning: it was near\n")
    timings = tmp_path / "work/logs/timings.jsonl"
    begun = next(line for line in timings.read_text().splitlines() if '"sim"' in line)
    with open(timings, "a") as log:                  # a run that was killed
        log.write(begun.replace('"process": ', '"process": 9') + "\n")
    result = CliRunner().invoke(main, ["review", str(shot), "--work", str(tmp_path / "work")])
    assert result.exit_code == 0, result.output
    page = browser.new_page()
    page.goto((tmp_path / "work/review/plate.html").as_uri())
    warnings = page.locator("#warnings li").all_text_contents()
    assert "render: frame 1002 missing" in warnings
    assert "render: frame 1004 damaged" in warnings
    assert "sim.log: warning: it was near" in warnings
    assert (f"comp: frames 1002,1004 not checked as rendered now; run vfx stage comp {shot} "
            f"--work {tmp_path / 'work'}") in warnings
    past = page.locator("#past li").all_text_contents()
    assert past == ["sim.log: then stopped by SIGTERM"], "what is over is no warning"
    assert page.locator("#sheet figure").count() == 3
    assert "1 and 1 without an end" in page.locator("#timings tr").nth(2).text_content()


@pytest.mark.parametrize("width", [360, 420, 1200])
def test_the_page_fits_its_window(page_file: Path, browser: Any, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(page_file.as_uri())
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    lines = page.evaluate("""[...document.querySelectorAll("#timings td:first-child")].map(cell => {
        const range = document.createRange(); range.selectNodeContents(cell);
        return range.getClientRects().length; })""")
    assert set(lines) == {1}, "no name is broken"


def test_frames_that_are_left_out_take_their_time(
    page_file: Path, tmp_path: Path, browser: Any
) -> None:
    shot = tmp_path / "plate.toml"
    shot.write_text(SHOT)
    shutil.copytree(page_file.parents[1], tmp_path / "work")
    assert CliRunner().invoke(main, ["review", str(shot), "--work", str(tmp_path / "work"),
                                     "--frames", "1001,1005"]).exit_code == 0
    page = browser.new_page()
    page.add_init_script("window.waits = []; const later = window.setTimeout; "
                         "window.setTimeout = (f, t) => { waits.push(t); return later(f, t); };")
    page.goto((tmp_path / "work/review/plate.html").as_uri())
    page.click("#play")
    page.wait_for_function("waits.length >= 2")
    first, second = page.evaluate("waits.slice(0, 2)")
    assert (first, second) == (pytest.approx(4000 / 24), pytest.approx(1000 / 24))


def test_a_review_before_render_says_what_to_run(tmp_path: Path) -> None:
    shot = tmp_path / "plate.toml"
    shot.write_text(SHOT)
    result = CliRunner().invoke(main, ["review", str(shot), "--work", str(tmp_path / "work")])
    assert result.exit_code == 3
    assert f"vfx run {shot} --frames 1001-1005 --work {tmp_path / 'work'}" in result.output


def test_every_kind_of_pass_becomes_a_picture() -> None:
    ramp = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
    piece = np.round(4 * ramp)
    layers = {layer: dict.fromkeys(names, ramp) for layer, names in CHANNELS.items()}
    layers["fragment"] = {"fragment.id": piece}
    layers["damage"] = {"damage.Y": ramp, "fragment.id": piece}
    for matte in ("CryptoFragment", "CryptoMaterial"):
        layers[matte] = {f"{matte}00.{name}": np.abs(ramp) for name in "RGBA"}
    for layer, channels in layers.items():
        pixels = pass_pixels(layer, channels, "acescg")
        assert pixels.shape == (3, 4, 3) and pixels.dtype == np.uint8, layer
        assert pixels.std() > 0.0, layer
    near, far, none = pass_pixels("depth", {"depth.Z": np.array([[1.0, 2.0, 1e10]])},
                                  "acescg")[0, :, 0]
    assert near > far > none, "near is bright"


def test_the_first_piece_has_a_colour_of_its_own() -> None:
    colors = pass_pixels("fragment", {"fragment.id": np.array([[-1.0, 0.0, 1.0, 2.0]])},
                         "acescg")[0].astype(int)
    assert (colors[0] == 0).all(), "no piece is black"
    assert len({tuple(color) for color in colors}) == 4
    assert (np.ptp(colors[1:], axis=1) > 50).all(), "no piece is grey"


def test_positions_are_shown_by_the_box_of_the_pieces() -> None:
    x = np.linspace(-5.0, 5.0, 1001)[None]
    on = np.abs(x) <= 1.0
    channels = {"P.X": x, "P.Y": 0.0 * x, "P.Z": -x, "fragment.id": np.where(on, 3.0, -1.0)}
    red, _, blue = np.moveaxis(pass_pixels("P", channels, "acescg").astype(int), -1, 0)
    assert (np.diff(red[on]) > 0).mean() > 0.9 and (np.diff(red) >= 0).all()
    assert (red[x < -1.0] == 0).all() and (red[x > 1.0] == 255).all()
    assert np.abs(red + blue - 255).max() <= 1
    del channels["fragment.id"]
    assert pass_pixels("P", channels, "acescg")[0, [0, -1], 0].tolist() == [0, 255]
    nothing = {name: pixels * 0.0 for name, pixels in channels.items()}
    assert not pass_pixels("P", nothing | {"fragment.id": -1.0 - 0.0 * x}, "acescg").any()
