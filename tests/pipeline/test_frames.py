"""Frame ranges: what is written is what is read, and nothing else gets through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfx.pipeline.errors import ShotError
from vfx.pipeline.shot.frames import format_frames, parse_parts, parse_span, select_frames


@given(st.sets(st.integers(0, 9_999_999), min_size=1, max_size=40))
def test_formatted_frames_read_back_the_same(frames: set[int]) -> None:
    assert select_frames(format_frames(frames), 0, 9_999_999) == sorted(frames)


@given(st.integers(0, 2000), st.integers(0, 500), st.integers(1, 50))
def test_steps_count_from_the_first(first: int, length: int, step: int) -> None:
    expected = list(range(first, first + length + 1, step))
    assert select_frames(f"{first}-{first + length}x{step}", 0, 10_000) == expected


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        parts = parse_parts(text)
    except ShotError as error:
        assert "frames" in str(error)
    else:
        assert all(len(part) >= 1 for part in parts)


@pytest.mark.parametrize("text, word", [
    ("1001:2", "x"), ("", "1001"), ("a", "1001"), ("1010-1001", "backwards"), ("5-9x0", "step"),
    ("1001-", "1001"), ("-5", "1001"), ("1,,2", "1001"), ("99999999", "highest"),
    ("1-1000000000", "highest frame number is 9999999, and a shot has at most 100000 frames"),
    ("9" * 5000, "highest"),
])
def test_malformed_ranges_say_how_to_write_them(text: str, word: str) -> None:
    with pytest.raises(ShotError, match=word):
        parse_parts(text)


def test_frames_outside_the_shot_are_refused() -> None:
    with pytest.raises(ShotError, match="1001-1048"):
        select_frames("1040-1060", 1001, 1048)
    with pytest.raises(ShotError, match=r"'1-1100x10': 1-991x10, 1051-1091x10 lie outside"):
        select_frames("1-1100x10", 1001, 1048)
    with pytest.raises(ShotError, match="': 1000 lies outside"):
        select_frames("1000-1003", 1001, 1048)
    assert select_frames("1048,1001-1003,1002", 1001, 1048) == [1001, 1002, 1003, 1048]


def test_a_shot_is_one_range() -> None:
    assert parse_span("1001-1048") == (1001, 1048)
    with pytest.raises(ShotError, match="at most 100000"):
        parse_span("1001-9999999")
    for text in ("1-10x2", "1-3,5"):
        with pytest.raises(ShotError, match="one range"):
            parse_span(text)
