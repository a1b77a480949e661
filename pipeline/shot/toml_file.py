"""Reads a TOML file as plain values, or says why it is none. Nothing in it is run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.shot.validate import cut, shown

_LARGEST_FILE = 10_000_000
#: More parts of a dotted key than any that is meant; reading them takes time with their square.
_MOST_PARTS = 64
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w.-])(?:{_PART}){{{_MOST_PARTS}}}")


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a file says; raise MissingInput or ShotError."""
    try:
        if not path.is_file():
            if path.exists():
                state = "is a folder" if path.is_dir() else "is no regular file"
                raise ShotError(f"{path}: {state}; give a shot file, like "
                                f"{path / 'shot.toml' if path.is_dir() else 'shot.toml'}")
            raise MissingInput(f"{path}: there is no such file; 'vfx new NAME --from glass' "
                               "writes one")
        if path.stat().st_size > _LARGEST_FILE:
            raise ShotError(f"{path}: too large for a shot file (over {_LARGEST_FILE} bytes)")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise MissingInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ShotError(f"{path}: is not UTF-8 text; a shot file is TOML") from None
    except ValueError:
        raise ShotError(f"{str(path)!r}: is no file name") from None
    if (key := _LONG_KEY.search(text)) is not None:
        raise ShotError(f"{path}:{text.count(chr(10), 0, key.start()) + 1}: a key of more than "
                        f"{_MOST_PARTS} parts, {shown(key[0])}; keys have a few, like "
                        "materials.glass.density")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ShotError(_syntax_sentence(path, str(error), text)) from None
    except RecursionError:
        raise ShotError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise ShotError(f"{path}: not valid TOML: {error}") from None


def _syntax_sentence(path: Path, message: str, text: str) -> str:
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match is None:
        reason, line = message.removesuffix(" (at end of document)"), text.count("\n") + 1
    else:
        reason, line = match[1], int(match[2])
    lines = text.splitlines()
    found = lines[line - 1].strip() if line <= len(lines) else ""
    return f"{path}:{line}: not valid TOML: {cut(reason, 200)}; the line reads {shown(found)}"
