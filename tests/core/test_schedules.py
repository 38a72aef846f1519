"""Schedules: where they start, where they end, and how they fall."""

from typing import Literal, get_args

import pytest

from keisei.core.schedules import scheduled

Kind = Literal["constant", "linear", "cosine"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("constant", [8, 8, 8, 8, 8]),
        ("linear", [8, 6.5, 5, 3.5, 2]),
        # 2 + 6 * (1 + cos(pi * progress)) / 2
        ("cosine", [8, 2 + 3 * (1 + 0.5**0.5), 5, 2 + 3 * (1 - 0.5**0.5), 2]),
    ],
)
def test_they_fall_from_the_start_to_the_floor(kind: Kind, values: list[float]) -> None:
    for quarter, expected in enumerate(values):
        assert scheduled(8, kind, 0.25, quarter / 4) == pytest.approx(expected)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_before_the_beginning_and_after_the_end_nothing_changes(kind: Kind) -> None:
    assert scheduled(0.3, kind, 0.1, -1) == scheduled(0.3, kind, 0.1, 0) == pytest.approx(0.3)
    assert scheduled(0.3, kind, 0.1, 7) == scheduled(0.3, kind, 0.1, 1)


def test_a_floor_of_nothing_is_nothing() -> None:
    assert scheduled(0.3, "linear", 0.0, 1.0) == scheduled(0.3, "cosine", 0.0, 1.0) == 0
