"""Kernel source: find it, flatten its includes, read its signatures.

Standard library only: the build runs this file before anything is installed. The flat text
(every project include inlined once, with ``#line``) is what is hashed, compiled for either
processor and named in compiler errors.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
KERNEL_FOLDERS = ("device", "geometry", "sim", "raytrace", "bench")

#: C type of a kernel parameter -> numpy dtype name.
DTYPES = {
    "int": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64",
    "uint16": "uint16", "uint8": "uint8", "float": "float32", "double": "float64",
}

#: The one file that may include what does not belong to the project.
HEADER = "device/device.cuh"

_INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|(.*))')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"\bKERNEL\s+void\s+(\w+)\s*\(")
_PARAMETER = re.compile(r"(?:(const|INOUT|OUT) )?(\w+) (\*)?([A-Za-z_]\w*)", re.ASCII)
_ROLES = {"const": "in", "INOUT": "inout", "OUT": "out", None: "value"}


class SourceError(Exception):
    """A kernel file does not follow the rules that :mod:`vfx.device` relies on."""


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: ``role`` is value, in, inout or out."""

    name: str
    ctype: str
    role: str

    @property
    def dtype(self) -> str:
        """Name of the numpy dtype that it takes."""
        return DTYPES[self.ctype]


@dataclass(frozen=True)
class Signature:
    """Name and parameters of a kernel, as its source says; ``lanes`` threads an item."""

    name: str
    parameters: tuple[Parameter, ...]
    lanes: int


def kernel_files(root: Path = ROOT) -> list[str]:
    """Return every ``.cu`` file below the kernel folders, relative to ``root``."""
    return sorted(
        path.relative_to(root).as_posix()
        for folder in KERNEL_FOLDERS for path in (root / folder).glob("*.cu"))


def flatten(name: str, root: Path = ROOT) -> str:
    """Return the text of ``name`` with every project include inlined once."""
    return _flatten(name, root, seen=set(), asked_by=f"below {root}")


def _flatten(name: str, root: Path, seen: set[str], asked_by: str) -> str:
    seen.add(name)
    path = root / name
    if ".." in PurePosixPath(name).parts or not path.is_file():
        raise SourceError(f"{name}: no such kernel file, asked for {asked_by}")
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        include = _INCLUDE.match(line)
        if include is None:
            lines.append(line)
            continue
        wanted, foreign = include.groups()
        if foreign is not None:
            if name != HEADER:
                raise SourceError(f"{name}:{number}: only project files may be included, "
                                  f"not {foreign.strip()}")
            lines.append(line)
            continue
        if wanted not in seen:
            lines.append(_flatten(wanted, root, seen, f"by {name}:{number}").rstrip("\n"))
        lines.append(f'#line {number + 1} "{name}"')
    return "\n".join(lines) + "\n"


def text_hash(text: str) -> str:
    """Return the hash by which a built library is matched with its source."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def signatures(text: str) -> dict[str, Signature]:
    """Read the signature of every kernel in a source text."""
    bare = _COMMENT.sub(" ", text)
    matches = list(_KERNEL.finditer(bare))
    found: dict[str, Signature] = {}
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        kernel = match.group(1)
        inside, _, rest = bare[match.end(): following and following.start()].partition(")")
        parameters = tuple(_parameter(kernel, piece) for piece in inside.split(","))
        count = parameters[0]
        if count.role != "value" or not count.dtype.startswith(("int", "uint")):
            raise SourceError(f"kernel {kernel}: its first parameter must be the item count, "
                              f"an integer, not {count.name}")
        if kernel in found:
            raise SourceError(f"kernel {kernel}: defined twice")
        found[kernel] = Signature(kernel, parameters, 8 if "FOR_EACH_GROUP" in rest else 1)
    return found


def _parameter(kernel: str, piece: str) -> Parameter:
    words = re.sub(r"\s*\*\s*", " *", " ".join(piece.split()))
    match = _PARAMETER.fullmatch(words)
    if match is None or match.group(2) not in DTYPES:
        raise SourceError(f"kernel {kernel}: cannot read parameter {piece.strip()!r}; it takes "
                          f"values of and pointers to {', '.join(DTYPES)}")
    qualifier, ctype, pointer, name = match.groups()
    role = _ROLES[qualifier]
    if (pointer is None) != (role == "value"):
        raise SourceError(f"kernel {kernel}: parameter {name}: a pointer must be const, INOUT "
                          "or OUT, a value none of them")
    return Parameter(name, ctype, role)
