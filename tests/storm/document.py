"""Shot files out of the schema: every table and key there is, with values of every sort.

Nothing here names a key that is to be tried: tables, types and ranges are read from the settings
themselves, so a new key is covered as soon as it exists. Only what makes a shot dear is named, so
that shots which are run stay small.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable
from random import Random
from typing import Any

from vfx.geometry.handoff.schema import Rule, rule_of
from vfx.pipeline.shot.shot_file import LISTS, SECTIONS, tables

Table = dict[str, Any]

#: Texts for keys that take any: words, files that are there (:func:`plate.write_files`), traps.
TEXTS = (
    "", "plate", "glass", "other", "sky.exr", "mesh.obj", "picture.png", "camera.usda", "studio",
    "clear_sky", "wood", "asset:vase", "asset:mug", "asset:", "asset:nothing", "missing.obj",
    "missing.exr", ".", "..", "/", "../plate.toml", "plate.toml", "/dev/null", "/dev/zero",
    "/dev/stdin", "/proc/self/mem", "~", "a b", "-", "--help", "ü", "e\u0301", "\u202e", "\n",
    "\0", "\x1b[31mred", "a" * 300, "a" * 5000, "a/" * 200, "$(touch /tmp/x)", "`id`", "%s%n",
    "{frame}", "file:///etc/passwd", "http://localhost/", "auto", "1001", "1001-1002", "1002-1001",
    "1001-99999999999999", "-5-5", "1001-1100x0", "1-100000", "nul", "CON", "1001,1003", "😀",
)
#: The most that a key may be in a shot that is run: beyond, it would only take long.
AFFORDABLE: dict[str, float] = {
    "cells": 4, "resolution": 16, "samples": 2, "min_samples": 2, "motion_steps": 2, "elements": 60,
    "steps_per_frame": 20, "overscan": 4, "paths": 20, "bounces": 4, "depth": 8, "layers": 3,
    "crop": 8, "transition_frames": 4, "time_scale": 1e-6,
}
#: Keys that follow from one another, and are left alone in shots that are run.
LEFT_ALONE = {"frames", "name", "mesh", "usd", "usd_camera", "denoise", "timestep", "time_scale",
              "time_keys", "place", "drop", "fall_speed",
              "material", "spacing", "cells", "box", "body"}

_WRONG: tuple[Any, ...] = (
    True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**40, 10**400, 0.0, -0.0, 0.5, -1.5, 1e308,
    -1e308, 5e-324, 1e-300, math.nan, math.inf, -math.inf, "", "text", "\0", "nan", [], [[]],
    [1, 2], [1.0, 2.0, 3.0], [1, "a", None], [math.nan] * 3, [1e308] * 3, [0.0] * 3, [True] * 3,
    [[1.0, 2.0, 3.0]], [[[0.0] * 3] * 2], {}, {"a": 1}, [{}], ["a"] * 3, [0] * 1000)


def base() -> Table:
    """Return a small shot that is valid; its sky costs nothing."""
    return {
        "shot": {"frames": "1001-1002"}, "time": {"steps_per_frame": 10},
        "bodies": [{"name": "plate", "material": "glass", "cells": [3, 3, 2], "spacing": 2e-3,
                    "center": [0.0, 0.07, 0.0]}],
        "materials": {"glass": {}},
        "projectiles": [{"position": [0.0, 0.07, 0.0135], "velocity": [0.0, 0.0, -60.0]}],
        "sim": {"bonds": {"timestep": "auto"}}, "light": {"environment": "sky.exr"},
        "render": {"resolution": [8, 6], "samples": 1},
    }


def document(random: Random, n_edits: int, value: Callable[[Random, str, Any, Rule], Any],
             left_alone: typing.Collection[str] = ()) -> Table:
    """Return the small shot with some of its keys set anew, any key of any table there is."""
    made = base()
    headings = list(tables())
    for _ in range(n_edits):
        heading = random.choice(headings)
        cls = tables()[heading]
        table = _table(random, made, heading, value)
        hints = typing.get_type_hints(cls)
        fields = [field for field in dataclasses.fields(cls) if field.name not in left_alone]
        for field in random.sample(fields, min(len(fields), random.choice([1, 1, 2, 4]))):
            table[field.name] = value(random, field.name, hints[field.name], rule_of(field))
    return made


def _table(random: Random, made: Table, heading: str,
           value: Callable[[Random, str, Any, Rule], Any]) -> Table:
    """Return the table of a heading like ``[[colliders]]``, an old one or a new one."""
    name = heading.strip("[]")
    if name in SECTIONS:
        return typing.cast(Table, made.setdefault(name, {}))
    if name.startswith("sim."):
        return typing.cast(Table, made.setdefault("sim", {}).setdefault(name[4:], {}))
    if name in LISTS:
        entries = made.setdefault(name, [])
        if not entries or (len(entries) < 4 and random.random() < 0.3):
            # What must be given, is.
            hints = typing.get_type_hints(LISTS[name])
            entries.append({
                field.name: "glass" if field.name == "material" else value(
                    random, field.name, hints[field.name], rule_of(field))
                for field in dataclasses.fields(LISTS[name])
                if field.default is dataclasses.MISSING})
        return typing.cast(Table, random.choice(entries))
    table = made.setdefault("materials", {}).setdefault("glass", {})
    part = name.rpartition(">")[2].strip(".")
    return typing.cast(Table, table.setdefault(part, {}) if part else table)


def valid(random: Random, key: str, hint: Any, rule: Rule) -> Any:
    """Return a value that the rule of a key allows."""
    return _of(random, hint, lambda kind: _allowed(random, kind, rule))


def affordable(random: Random, key: str, hint: Any, rule: Rule) -> Any:
    """Return a value that the rule of a key allows and that makes no shot dear."""
    if key not in AFFORDABLE:
        return valid(random, key, hint, rule)
    most = AFFORDABLE[key]
    return valid(random, key, hint, dataclasses.replace(rule, at_most=min(
        most, most if rule.at_most is None else rule.at_most)))


def edge(random: Random, key: str, hint: Any, rule: Rule) -> Any:
    """Return a value at the edge of what is allowed, or just beyond."""
    return _of(random, hint, lambda kind: _edge(random, kind, rule))


def wrong(random: Random, key: str, hint: Any, rule: Rule) -> Any:
    """Return a value of any sort."""
    return random.choice(_WRONG)


def mixed(random: Random, key: str, hint: Any, rule: Rule) -> Any:
    """Return a value that is mostly allowed."""
    return random.choices((valid, edge, wrong), (6, 3, 1))[0](random, key, hint, rule)


def _of(random: Random, hint: Any, single: Callable[[Any], Any]) -> Any:
    """Return a value of a type, tuples as lists of ``single`` values."""
    if typing.get_origin(hint) is tuple:
        kinds = typing.get_args(hint)
        if kinds[-1] is Ellipsis:
            kinds = kinds[:1] * random.choice([0, 1, 1, 2, 3, 4])
        if random.random() < 0.2 and kinds and kinds[0] in (int, float):
            return [single(kinds[0])] * len(kinds)
        return [_of(random, kind, single) for kind in kinds]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kind, words = typing.get_args(hint)
        return single(kind) if random.random() < 0.7 else random.choice(typing.get_args(words))
    return single(hint)


def _range(rule: Rule) -> tuple[float, float]:
    low = rule.at_least if rule.at_least is not None else rule.above
    return (-1e9 if low is None else low), (1e9 if rule.at_most is None else rule.at_most)


def _allowed(random: Random, kind: Any, rule: Rule) -> Any:
    if kind is bool:
        return random.random() < 0.5
    if kind is str:
        return random.choice(list(rule.choices)) if rule.choices else random.choice(TEXTS)
    low, high = _range(rule)
    number = random.choice([_log_uniform, Random.uniform, _everyday])(random, low, high)
    if kind is int:
        return min(max(round(number), math.ceil(low)), math.floor(high))
    if rule.above is not None and number <= rule.above:
        return min(high, 1e-3)
    return number


def _edge(random: Random, kind: Any, rule: Rule) -> Any:
    if kind in (bool, str):
        return _allowed(random, kind, rule)
    low, high = _range(rule)
    if kind is int:
        return random.choice([math.ceil(low), math.floor(high), math.ceil(low) + 1,
                              math.floor(high) - 1, math.ceil(low) - 1, math.floor(high) + 1])
    return random.choice([low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf),
                          math.nextafter(low, -math.inf), math.nextafter(high, math.inf), 0.0,
                          -0.0, 5e-324, 1e-30])


def _everyday(random: Random, low: float, high: float) -> float:
    """Return a number as people write it, within a range."""
    number = random.choice([0.0, 1.0, -1.0, 0.5, 0.01, -0.05, 2.0, 10.0, 100.0])
    return min(max(number, low), high)


def _log_uniform(random: Random, low: float, high: float) -> float:
    """Return a number of any magnitude within a range."""
    if low < 0.0 < high:
        return _log_uniform(random, 0.0, high) if random.random() < 0.5 else -_log_uniform(
            random, 0.0, -low)
    if low >= 0.0:
        least = max(low, 1e-6 * high)
        return min(max(least * (high / least) ** random.random(), low), high) if high > 0 else low
    return -_log_uniform(random, -high, -low)


def as_toml(made: Table) -> str:
    """Return a document as TOML."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in made.items()
             if not _is_table(value) and not _is_list_of_tables(value)]
    for key, value in made.items():
        if _is_table(value):
            lines += _section(_key(key), value)
        elif _is_list_of_tables(value):
            for entry in value:
                lines += [f"[[{_key(key)}]]", *_body(_key(key), entry)]
    return "\n".join(lines) + "\n"


def _section(name: str, table: Table) -> list[str]:
    return [f"[{name}]", *_body(name, table)]


def _body(name: str, table: Table) -> list[str]:
    plain = [f"{_key(key)} = {_value(value)}" for key, value in table.items()
             if not _is_table(value)]
    inner = [line for key, value in table.items() if _is_table(value)
             for line in _section(f"{name}.{_key(key)}", value)]
    return plain + inner


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    return key if key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key) \
        else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(_escaped(c) for c in value) + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return '"nothing"'


def _escaped(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    return f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c
