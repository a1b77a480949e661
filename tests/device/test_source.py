"""Laws of reading kernel source: signatures and flattening."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfx.device.bind import struct_dtype
from vfx.device.source import (
    DTYPES,
    HEADER,
    KERNEL_FOLDERS,
    ROOT,
    Parameter,
    SourceError,
    Struct,
    flatten,
    kernel_files,
    read_struct,
    signatures,
    text_hash,
)

#: Beyond, nobody can tell the arguments of a launch apart; a struct counts as one.
MOST_PARAMETERS = 16
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,11}", fullmatch=True).filter(
    lambda name: name not in DTYPES and name != "const")
QUALIFIERS = {"in": "const ", "inout": "INOUT ", "out": "OUT ", "value": ""}
SPACES = st.sampled_from([" ", "  ", "\n    ", "\t", " /* a, b) */ ", " // a, b (c)\n "])


@st.composite
def parameters(draw: st.DrawFn) -> list[Parameter]:
    """A legal parameter list: the count, then anything."""
    names = draw(st.lists(NAMES, min_size=1, max_size=8, unique=True))
    count = Parameter(names[0], draw(st.sampled_from(["int", "int64", "uint32"])), "value")
    return [count] + [
        Parameter(name, draw(st.sampled_from(sorted(DTYPES))), draw(st.sampled_from(
            sorted(QUALIFIERS)))) for name in names[1:]]


def write(draw: st.DrawFn, listed: list[Parameter]) -> str:
    """The parameters as C++ text, with spaces and comments anywhere they may stand."""
    pieces = []
    for p in listed:
        star = "" if p.role == "value" else draw(st.sampled_from([" *", "* ", " * ", "*\n"]))
        pieces.append(f"{draw(SPACES)}{QUALIFIERS[p.role]}{p.ctype}"
                      f"{star or draw(SPACES)}{p.name}{draw(SPACES)}")
    return ",".join(pieces)


@given(st.data())
def test_signature_is_read_back_as_written(data: st.DataObject) -> None:
    listed = data.draw(parameters())
    body = data.draw(st.sampled_from(["FOR_EACH(i, n) {}", "FOR_EACH_GROUP(g, n, 16) {}"]))
    text = (f"// KERNEL void commented(int n)\nKERNEL void law({write(data.draw, listed)})\n"
            f"{{ {body} }}\nKERNEL void other(int n) {{ FOR_EACH(i, n) {{}} }}\n")
    found = signatures(text)
    assert list(found) == ["law", "other"]
    assert list(found["law"].parameters) == listed
    assert found["law"].lanes == (8 if "GROUP" in body else 1)
    assert found["other"].lanes == 1


@given(st.data())
def test_malformed_parameter_is_refused_with_the_kernel_named(data: st.DataObject) -> None:
    good = data.draw(parameters())
    name = data.draw(NAMES)
    bad = data.draw(st.sampled_from([
        "", "int", f"int{name}", f"unsigned {name}", f"size_t {name}", f"long {name}",
        f"float *{name}", f"const float {name}", f"OUT int {name}", f"INOUT double {name}",
        f"float **{name}", f"const float *const {name}", f"float &{name}", f"float {name}[3]",
        f"const OUT float *{name}", f"int {name} = 0", f"int 3{name}", f"Vec3 {name}",
        f"const void *{name}", f"int n {name}"]))
    at = data.draw(st.integers(0, len(good)))
    pieces = [write(data.draw, [p]) for p in good]
    text = f"KERNEL void law({','.join([*pieces[:at], bad, *pieces[at:]])}) {{}}"
    with pytest.raises(SourceError, match="kernel law"):
        signatures(text)


def write_struct(draw: st.DrawFn, name: str, fields: list[Parameter]) -> str:
    """A struct as C++ text; neighbours of one type may share a declaration."""
    lines: list[str] = []
    for before, field in zip([None, *fields], fields, strict=False):
        star = "" if field.role == "value" else "*"
        if before and (before.ctype, before.role) == (field.ctype, field.role) and draw(
                st.booleans()):
            lines[-1] += f",{draw(SPACES)}{star}{field.name}"
        else:
            lines.append(draw(SPACES) + QUALIFIERS[field.role]
                         + f"{field.ctype}{draw(SPACES)}{star}{field.name}")
    return f"struct {name}{draw(SPACES)}{{{''.join(f'{line};' for line in lines)}\n}};\n"


@given(st.data())
def test_struct_is_read_back_as_written(data: st.DataObject) -> None:
    """Also one inside another, and only as far as kernels take it."""
    inner = Struct("Inner", tuple(data.draw(parameters())))
    outer = Struct("Outer", (*data.draw(parameters()), Parameter("_in", "Inner", "value", inner)))
    text = ("struct Odd { int many[3]; };\n" + write_struct(data.draw, "Inner", list(inner.fields))
            + write_struct(data.draw, "Outer", list(outer.fields))
            + "KERNEL void law(int n, Outer given, const float *x) {}\n")
    given_ = signatures(text)["law"].parameters[1]
    assert given_ == Parameter("given", "Outer", "value", outer)
    assert read_struct(text, "Inner") == inner


@given(st.data())
def test_struct_lies_in_memory_as_in_c(data: st.DataObject) -> None:
    """As ctypes, which asks nobody, lays it out."""
    kinds = {"int": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64,
             "uint64": ctypes.c_uint64, "uint16": ctypes.c_uint16, "uint8": ctypes.c_uint8,
             "float": ctypes.c_float, "double": ctypes.c_double, "bool": ctypes.c_bool}

    def made(struct: Struct) -> type[ctypes.Structure]:
        fields = [(f.name, ctypes.c_void_p if f.role != "value" else
                   made(f.struct) if f.struct else kinds[f.ctype]) for f in struct.fields]
        return type(struct.name, (ctypes.Structure,), {"_fields_": fields})

    inner = Struct("Inner", tuple(data.draw(parameters())))
    outer = Struct("Outer", (*data.draw(parameters()), Parameter("_in", "Inner", "value", inner),
                             Parameter("_end", "uint8", "value")))
    expected = made(outer)
    dtype = struct_dtype(outer)
    assert outer.size == dtype.itemsize == ctypes.sizeof(expected)
    assert [getattr(expected, f.name).offset for f in outer.fields] == list(outer.offsets)
    assert [dtype.fields[f.name][1] for f in outer.fields] == list(outer.offsets)


@pytest.mark.parametrize(("field", "reason"), [
    ("float many[3]", "cannot read field 'float many"), ("float *x", "a pointer must be const"),
    ("OUT int x", "a value none of them"), ("Other x", "cannot read field 'Other x'"),
    ("const Inner *x", "cannot read field"), ("float &x", "cannot read field")])
def test_struct_that_is_not_plain_is_refused_where_a_kernel_takes_it(
        field: str, reason: str) -> None:
    text = f"struct Inner {{ int a; }};\nstruct Outer {{ int a; {field}; }};\n"
    assert signatures(f"{text}KERNEL void law(int n, Inner i) {{}}")
    with pytest.raises(SourceError, match=f"struct Outer: .*{reason}"):
        signatures(f"{text}KERNEL void law(int n, Outer o) {{}}")


def test_unknown_struct_says_which_was_meant() -> None:
    with pytest.raises(SourceError, match="no plain struct Scenne; did you mean Scene"):
        read_struct("struct Scene { int a; };", "Scenne")


@pytest.mark.parametrize("first", ["const float *x", "float x", "double n", "OUT int *n",
                                   "Inner i"])
def test_first_parameter_must_be_the_item_count(first: str) -> None:
    with pytest.raises(SourceError, match="kernel law: its first parameter"):
        signatures(f"struct Inner {{ int n; }}; KERNEL void law({first}, int m) {{}}")


def test_kernel_defined_twice_is_refused() -> None:
    with pytest.raises(SourceError, match="law: defined twice"):
        signatures("KERNEL void law(int n) {}\nKERNEL void law(int n, int m) {}")


def places(flat: str) -> dict[str, tuple[str, int]]:
    """Where ``#line`` says that each line of a flat text stands."""
    found: dict[str, tuple[str, int]] = {}
    file, number = "", 0
    for line in flat.split("\n"):
        match = re.fullmatch(r'#line (\d+) "(.+)"', line)
        if match:
            file, number = match.group(2), int(match.group(1))
            continue
        assert line == "" or line not in found, f"{line!r} was inlined twice"
        found[line] = (file, number)
        number += 1
    return found


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=6, max_size=6), st.data())
def test_every_include_is_inlined_once_with_its_own_lines(
        tmp_path_factory: pytest.TempPathFactory, graph: list[list[int]],
        data: st.DataObject) -> None:
    """Any graph of includes, cycles among them."""
    root = tmp_path_factory.mktemp("kernels")
    (root / "sim").mkdir()
    written: dict[str, tuple[str, int]] = {}
    for file, included in enumerate(graph):
        lines: list[str] = []
        for target in included:
            for _ in range(data.draw(st.integers(0, 2))):
                lines.append(f"int line_{file}_{len(lines)};")
            lines.append(f'#include "sim/file{target}.cuh"')
        lines.append(f"int line_{file}_{len(lines)};")
        (root / f"sim/file{file}.cuh").write_text("\n".join(lines) + "\n")
        written |= {line: (f"sim/file{file}.cuh", number)
                    for number, line in enumerate(lines, start=1) if line.startswith("int")}
    reached, stack = set(), [0]
    while stack:
        file = stack.pop()
        if file not in reached:
            reached.add(file)
            stack += graph[file]
    flat = places(flatten("sim/file0.cuh", root))
    assert {line: place for line, place in flat.items() if line} == {
        line: place for line, place in written.items() if int(line.split("_")[1]) in reached}


def test_missing_include_says_who_asked_for_it(tmp_path: Path) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim/a.cu").write_text('\n#include "sim/b.cuh"\n')
    with pytest.raises(SourceError, match=r"sim/b.cuh: no such kernel file, .* sim/a.cu:2"):
        flatten("sim/a.cu", tmp_path)
    with pytest.raises(SourceError, match=r"sim/c.cu: no such kernel file"):
        flatten("sim/c.cu", tmp_path)


@pytest.mark.parametrize("line", ["#include <math.h>", " # include <cuda.h>", "#include FILE"])
def test_only_project_files_may_be_included(tmp_path: Path, line: str) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim/a.cu").write_text(f"{line}\n")
    with pytest.raises(SourceError, match=r"sim/a.cu:1: only project files"):
        flatten("sim/a.cu", tmp_path)


def test_hash_changes_with_the_text() -> None:
    assert text_hash("a") == text_hash("a") != text_hash("a ")


@pytest.mark.parametrize("name", kernel_files())
def test_kernel_file_follows_the_rules(name: str) -> None:
    flat = flatten(name)
    assert flat.count(f'#line 1 "{HEADER}"') == 1, "a kernel file includes device.cuh"
    assert signatures(flat), "a kernel file has kernels"


@pytest.mark.parametrize("name", kernel_files())
def test_no_kernel_takes_more_than_a_reader_can_tell_apart(name: str) -> None:
    many = {kernel: len(signature.parameters)
            for kernel, signature in signatures(flatten(name)).items()
            if len(signature.parameters) > MOST_PARAMETERS}
    assert not many, f"{name}: put what belongs together into structs"


def test_kernels_are_found_at_any_depth(tmp_path: Path) -> None:
    for name in ("sim/top.cu", "sim/bonds/forces.cu", "geometry/divide/cells/clip.cu",
                 "sim/bonds/laws.cuh", "elsewhere/no.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert kernel_files(tmp_path) == [
        "geometry/divide/cells/clip.cu", "sim/bonds/forces.cu", "sim/top.cu"]


def test_kernel_files_of_one_name_in_the_library_are_refused(tmp_path: Path) -> None:
    for name in ("sim/bonds/forces.cu", "sim/bonds_forces.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(SourceError, match=r"sim/bonds.forces.cu and sim/bonds.forces.cu have"):
        kernel_files(tmp_path)


def test_no_kernel_file_lies_where_the_build_does_not_look() -> None:
    packages = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    found = sorted(path.relative_to(ROOT).as_posix()
                   for folder in packages for path in folder.rglob("*.cu"))
    assert found == kernel_files()


def test_only_the_header_knows_the_processor() -> None:
    files = [path for folder in KERNEL_FOLDERS for path in (ROOT / folder).rglob("*.cu*")]
    told = re.compile(r"__CUDA|__global__|__device__|__host__|threadIdx|#\s*pragma(?! unroll\b)"
                      r"|_Pragma|__SSE|__AVX|\btemplate\b|\bstd::")
    knowing = {path.relative_to(ROOT).as_posix() for path in files
               if told.search(path.read_text(encoding="utf-8"))}
    assert knowing == {HEADER}


def test_kernel_names_are_the_projects_own() -> None:
    """The host library links all kernels together: two files may not share a name."""
    names = [name for file in kernel_files() for name in signatures(flatten(file))]
    assert len(names) == len(set(names))
