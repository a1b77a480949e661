"""Shot files and meshes to start from: what comes with the package."""

from __future__ import annotations

from pathlib import Path

from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.shot.shot_file import is_plain_word
from vfx.pipeline.shot.validate import nearest
from vfx.pipeline.work.cache import publish, storage_errors

FOLDER = Path(__file__).parents[2] / "shots"


def list_templates() -> list[str]:
    """Return the names of the shot files that can be started from."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def write_asset(name: str, path: Path) -> None:
    """Write a mesh that the package makes as an OBJ; an existing file is never replaced."""
    from vfx.geometry.assets.catalog import ASSETS, make_asset, write_obj

    if name not in ASSETS:
        near = nearest(name, ASSETS)
        advice = f"did you mean '{near}'?" if near else f"there are {', '.join(ASSETS)}"
        raise ShotError(f"asset {name}: there is none of that name; {advice}")
    if path.suffix.lower() != ".obj":
        raise ShotError(f"{path}: assets are written as OBJ; name it {path.stem or name}.obj")
    if path.exists():
        raise ShotError(f"{path}: exists already and is not replaced; choose another name")
    publish(path, lambda temporary: write_obj(temporary, make_asset(name)))


def write_new_shot(name: str, template: str) -> Path:
    """Write a copy of a template as ``<name>.toml``; an existing file is never replaced."""
    names = list_templates()
    if not names:
        raise MissingInput(f"{FOLDER}: the shot files of the package are missing; reinstall it")
    if template not in names:
        near = nearest(template, names)
        advice = f"did you mean '{near}'?" if near else f"there are {', '.join(names)}"
        raise ShotError(f"--from {template}: no such shot to start from; {advice}")
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if not is_plain_word(path.stem):
        raise ShotError(f"{path}: a shot's name is a plain word of letters, digits, _ and -")
    text = (FOLDER / f"{template}.toml").read_text(encoding="utf-8")
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise ShotError(f"{path}: exists already and is not replaced; "
                            "choose another name") from None
    return path
