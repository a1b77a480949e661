"""Make the pictures of docs/tutorial.md: python docs/tutorial_pictures.py WORK SHOT FRAME.

They are of a shot that is rendered and reviewed: its contact sheet, its review page at a frame,
and the part of that page with the passes. Needs Playwright and a Chromium.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).with_name("images")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 1280                     # of the browser's window


def main(work: Path, shot: str, frame: str) -> None:
    """Write the three pictures."""
    save(Image.open(work / f"review/{shot}.png"), "sheet", 1100)
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto((work / f"review/{shot}.html").absolute().as_uri())
        page.locator("#sheet figure", has_text=frame).click()
        page.wait_for_function("document.getElementById('picture').complete")
        page.mouse.move(0, 0)
        top = page.locator("h2", has_text="Stages").bounding_box()
        assert top is not None
        taken = page.screenshot(full_page=True, clip={
            "x": 0, "y": 0, "width": WIDTH, "height": top["y"] - 12})
        save(Image.open(io.BytesIO(taken)), "review", 720)
        save(Image.open(io.BytesIO(page.locator("#passes").screenshot())), "passes", 1080)
        browser.close()


def save(image: Image.Image, name: str, width: int) -> None:
    """Write a picture of the tutorial, not wider than ``width``."""
    image = image.convert("RGB")
    image.thumbnail((width, 4 * width), Image.Resampling.LANCZOS)
    path = IMAGES / f"tutorial-{name}.jpg"
    image.save(path, quality=85, optimize=True)
    print(f"wrote {path}, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
