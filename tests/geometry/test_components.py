"""Components are found in one place, and numbered by their first member."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import vfx
from vfx.geometry.handoff.components import components


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11))))
def test_components_are_what_merging_pair_by_pair_leaves(n, pairs):
    pairs = [(a % n, b % n) for a, b in pairs]
    group = list(range(n))
    for a, b in pairs:
        group = [group[b] if g == group[a] else g for g in group]
    order = list(dict.fromkeys(group))
    count, label = components(n, np.array(pairs, np.int64).reshape(-1, 2))
    assert count == len(order) and label.dtype == np.int32
    assert label.tolist() == [order.index(g) for g in group]


def test_nobody_else_looks_for_components():
    users = [path for package in ("geometry", "sim", "raytrace", "pipeline", "bench")
             for path in (Path(vfx.__path__[0]) / package).rglob("*.py")
             if "connected_components" in path.read_text(encoding="utf-8")]
    assert [path.name for path in users] == ["components.py"]
