"""Laws of settings: what a rule allows, and what a person is told otherwise."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.schema import REQUIRED, Rule, rule_of, section, setting

numbers = st.one_of(st.integers(-10**6, 10**6), st.floats(allow_nan=False, allow_infinity=False))


@given(numbers, st.floats(-1e3, 1e3))
def test_above_excludes_its_bound(value, bound):
    assert (Rule("", above=bound).complaint(value) is None) == (value > bound)
    assert Rule("", above=bound).complaint(bound) is not None


@given(numbers, st.floats(-1e3, 1e3), st.floats(0, 1e3))
def test_at_least_and_at_most_include_their_bounds(value, low, width):
    rule = Rule("", at_least=low, at_most=low + width)
    assert (rule.complaint(value) is None) == (low <= value <= low + width)
    assert rule.complaint(low) is None
    assert rule.complaint(low + width) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_never_allowed(value):
    assert Rule("").complaint(value) == "must be a finite number"
    assert Rule("", at_least=0.0).complaint((1.0, value, 2.0)) == "must be a finite number"


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=4), st.floats(-5, 5))
def test_a_vector_is_allowed_if_each_component_is(values, bound):
    rule = Rule("", at_least=bound)
    assert (rule.complaint(tuple(values)) is None) == all(
        rule.complaint(value) is None for value in values)


def test_words_must_be_among_the_choices():
    rule = Rule("", choices=("grid", "voronoi"))
    assert rule.complaint("grid") is None
    assert rule.complaint("gird") == "must be one of grid, voronoi"


def test_text_and_booleans_have_no_range():
    rule = Rule("", above=5.0)
    assert rule.complaint("glass") is None
    assert rule.complaint(True) is None
    assert rule.complaint(False) is None


def test_complaints_name_the_bound_and_its_unit():
    rule = Rule("Edge of a cube.", unit="m", above=0.0, at_most=0.5)
    assert rule.complaint(-1.0) == "must be above 0 m"
    assert rule.complaint(0.75) == "must be at most 0.5 m"
    assert Rule("", at_least=1).complaint(0) == "must be at least 1"


def test_a_setting_carries_its_rule_and_default():
    @dataclasses.dataclass(frozen=True)
    class Camera:
        fov: float = setting(40.0, "Field of view.", unit="degrees", above=0.0)
        name: str = setting(REQUIRED, "Name.")
        tags: list[str] = section(list, "Marks.")

    fov, name, tags = dataclasses.fields(Camera)
    assert rule_of(fov) == Rule("Field of view.", unit="degrees", above=0.0)
    assert rule_of(tags).doc == "Marks."
    assert name.default is dataclasses.MISSING
    assert Camera(name="front") == Camera(name="front", fov=40.0, tags=[])
    with pytest.raises(TypeError):
        Camera()


def test_every_key_of_a_body_is_explained_and_its_default_allowed():
    for field in dataclasses.fields(Body):
        assert rule_of(field).doc.endswith(".")
        # A default of zeros stands for a key that is not given.
        if field.default is not dataclasses.MISSING and np.any(field.default):
            assert rule_of(field).complaint(field.default) is None


def test_a_body_refuses_zero_cubes_and_negative_spacing():
    rules = {field.name: rule_of(field) for field in dataclasses.fields(Body)}
    assert rules["cells"].complaint((3, 0, 2)) == "must be at least 1"
    assert rules["cells"].complaint((1, 1, 1)) is None
    assert rules["spacing"].complaint(-1e-3) == "must be at least 1e-9 m"
