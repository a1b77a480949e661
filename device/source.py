"""Kernel source: find it, flatten its includes, read its signatures and structs.

Standard library only: the build runs this file before anything is installed. The flat text
(every project include inlined once, with ``#line``) is what is hashed, compiled for either
processor and named in compiler errors.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
KERNEL_FOLDERS = ("device", "geometry", "sim", "raytrace", "bench")

#: C type of a value or of what a pointer points to -> numpy dtype name.
DTYPES = {
    "int": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64",
    "uint16": "uint16", "uint8": "uint8", "float": "float32", "double": "float64", "bool": "bool",
}
#: Their sizes, which are also their alignments on both processors [bytes].
SIZES = {
    "int": 4, "uint32": 4, "int64": 8, "uint64": 8, "uint16": 2, "uint8": 1, "float": 4,
    "double": 8, "bool": 1,
}
POINTER_SIZE = 8

#: The one file that may include what does not belong to the project.
HEADER = "device/device.cuh"

_INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|(.*))')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"\bKERNEL\s+void\s+(\w+)\s*\(")
_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{([^{}]*)\}\s*;")
_DECLARATION = re.compile(r"(?:(const|INOUT|OUT) )?(\w+) (\*)?([A-Za-z_]\w*)", re.ASCII)
_ROLES = {"const": "in", "INOUT": "inout", "OUT": "out", None: "value"}


class SourceError(Exception):
    """A kernel file does not follow the rules that :mod:`vfx.device` relies on."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel or a field of a struct: ``role`` is value, in, inout or out."""

    name: str
    ctype: str
    role: str
    struct: Struct | None = None    # of a value whose type is a struct

    @property
    def dtype(self) -> str:
        """Name of the numpy dtype that it takes."""
        return DTYPES[self.ctype]

    @property
    def size(self) -> int:
        """Its size [bytes]."""
        if self.role != "value":
            return POINTER_SIZE
        return SIZES[self.ctype] if self.struct is None else self.struct.size

    @property
    def alignment(self) -> int:
        """What its address is a multiple of [bytes]."""
        return self.size if self.struct is None else self.struct.alignment


@dataclass(frozen=True)
class Struct:
    """A plain struct that kernels take by value; it lies in memory as C++ says."""

    name: str
    fields: tuple[Parameter, ...]

    @property
    def alignment(self) -> int:
        """What its address is a multiple of [bytes]."""
        return max(field.alignment for field in self.fields)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each field begins [bytes]."""
        offsets, end = [], 0
        for field in self.fields:
            offsets.append(-(-end // field.alignment) * field.alignment)
            end = offsets[-1] + field.size
        return tuple(offsets)

    @property
    def size(self) -> int:
        """Its size, with what fills it up [bytes]."""
        end = self.offsets[-1] + self.fields[-1].size
        return -(-end // self.alignment) * self.alignment


@dataclass(frozen=True)
class Signature:
    """Name and parameters of a kernel, as its source says; ``lanes`` threads an item."""

    name: str
    parameters: tuple[Parameter, ...]
    lanes: int


def kernel_files(root: Path = ROOT) -> list[str]:
    """Return every ``.cu`` file below the kernel folders, relative to ``root``."""
    names = sorted(
        path.relative_to(root).as_posix()
        for folder in KERNEL_FOLDERS for path in (root / folder).rglob("*.cu"))
    by_symbol: dict[str, str] = {}
    for name in names:
        other = by_symbol.setdefault(file_symbol(name), name)
        if other != name:
            raise SourceError(f"{name} and {other} have the same name in the library; "
                              "rename one of them")
    return names


def file_symbol(name: str) -> str:
    """Return a kernel file's name in the library: ``sim_matter_step`` of ``sim/matter/step.cu``."""
    return name.removesuffix(".cu").replace("/", "_")


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
    structs = _Structs(bare)
    matches = list(_KERNEL.finditer(bare))
    found: dict[str, Signature] = {}
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        kernel = match.group(1)
        inside, _, rest = bare[match.end(): following and following.start()].partition(")")
        parameters = tuple(structs.read(f"kernel {kernel}", "parameter", piece)
                           for piece in inside.split(","))
        count = parameters[0]
        if (count.role != "value" or count.struct is not None
                or not count.dtype.startswith(("int", "uint"))):
            raise SourceError(f"kernel {kernel}: its first parameter must be the item count, "
                              f"an integer, not {count.name}")
        if kernel in found:
            raise SourceError(f"kernel {kernel}: defined twice")
        found[kernel] = Signature(kernel, parameters, 8 if "FOR_EACH_GROUP" in rest else 1)
    return found


def read_struct(text: str, name: str) -> Struct:
    """Read a struct of a source text."""
    structs = _Structs(_COMMENT.sub(" ", text))
    found = structs.find(name)
    if found is None:
        near = difflib.get_close_matches(name, structs.bodies, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SourceError(f"no plain struct {name}{hint}")
    return found


def layout_checks(kernels: Iterable[Signature]) -> str:
    """Return C++ text that does not compile where a struct lies otherwise than is said here."""
    lines: list[str] = []
    waiting = [p.struct for kernel in kernels for p in kernel.parameters if p.struct]
    for struct in waiting:
        waiting += [field.struct for field in struct.fields if field.struct]
        lines.append(f"static_assert(sizeof({struct.name}) == {struct.size}, \"size\");")
        lines += [f"static_assert(__builtin_offsetof({struct.name}, {field.name}) == {offset}, "
                  f"\"{struct.name}.{field.name}\");"
                  for field, offset in zip(struct.fields, struct.offsets, strict=True)]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


class _Structs:
    """The structs of a text without comments; only those that kernels take need be plain."""

    def __init__(self, bare: str) -> None:
        self.bodies = {match.group(1): match.group(2) for match in _STRUCT.finditer(bare)}
        self._known: dict[str, Struct] = {}

    def find(self, name: str) -> Struct | None:
        """Return a struct, or None where the text has no such plain struct."""
        if name not in self._known and name in self.bodies:
            pieces = []
            for declaration in self.bodies[name].split(";")[:-1]:
                first, *others = declaration.split(",")
                pieces.append(first)
                kind = re.match(r"\s*(?:(?:const|INOUT|OUT)\s+)?\w+", first)
                pieces += [f"{kind.group() if kind else ''} {other}" for other in others]
            fields = tuple(self.read(f"struct {name}", "field", piece) for piece in pieces)
            if not fields:
                raise SourceError(f"struct {name}: has no fields")
            self._known[name] = Struct(name, fields)
        return self._known.get(name)

    def read(self, where: str, what: str, piece: str) -> Parameter:
        """Read the declaration of a parameter or a field."""
        words = re.sub(r"\s*\*\s*", " *", " ".join(piece.split()))
        match = _DECLARATION.fullmatch(words)
        qualifier, ctype, pointer, name = match.groups() if match else (None, "", None, "")
        struct = None if ctype in DTYPES else self.find(ctype)
        if (ctype not in DTYPES and struct is None) or (struct and pointer):
            raise SourceError(f"{where}: cannot read {what} {piece.strip()!r}; it takes values of "
                              f"and pointers to {', '.join(DTYPES)}, and plain structs by value")
        role = _ROLES[qualifier]
        if (pointer is None) != (role == "value"):
            raise SourceError(f"{where}: {what} {name}: a pointer must be const, INOUT or OUT, "
                              "a value none of them")
        return Parameter(name, ctype, role, struct)
