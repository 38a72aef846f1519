"""Numbers, times, curves and bars as text."""

import math

import pytest

from keisei.training.number_text import (
    bar,
    data_size,
    duration,
    elo,
    number,
    percent,
    quantity,
    short_count,
    sparkline,
    whole,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (65, "1:05"), (59.6, "1:00"), (3723, "1:02:03"), (math.nan, "–"), (math.inf, "–")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (-0.00761, "-0.0076"),
        (0.00012, "1.2e-04"),
        (3.1882, "3.188"),
        (-123.45, "-123.5"),
        (12345.6, "12,346"),
        (12345678.0, "1.2e+07"),
        (math.nan, "–"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text
    assert len(text) <= 8


def test_ratings_have_an_interval_or_the_one_bound_that_is_known() -> None:
    assert elo(812.4, 750, 874) == "Elo 812 (750 to 874)"
    assert elo(math.inf, 750, math.inf) == "Elo above 750"
    assert elo(-math.inf, -math.inf, 9.2) == "Elo below 9"
    assert elo(math.nan, -math.inf, math.inf) == "Elo unknown"


def test_shares_and_quantities() -> None:
    assert (percent(0.744), percent(1.0), percent(math.nan)) == ("74 %", "100 %", "–")
    assert (quantity(1887.4), quantity(9.87), quantity(math.nan)) == ("1,887", "9.9", "–")


def test_counts_are_whole() -> None:
    assert (whole(0.0), whole(3.0), whole(1234567.0), whole(math.nan)) == ("0", "3", "1,234,567", "–")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (9999, "9,999"),
        (10_000, "10.0k"),
        (99_949, "99.9k"),
        (99_950, "100k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (412_345_678, "412M"),
        (7e14, "700T"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_large_counts_are_short(value: float, text: str) -> None:
    assert short_count(value) == text
    assert len(text) <= 5


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (345_678, "346 kB"),
        (1_234_567, "1.2 MB"),
        (412_000_000, "412 MB"),
        (8e9, "8.0 GB"),
        (3e15, "3000 TB"),
        (math.nan, "–"),
    ],
)
def test_sizes_have_a_unit(size: float, text: str) -> None:
    assert data_size(size) == text


def test_a_sparkline_reaches_from_the_least_to_the_greatest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == ["▁▂▃▄▅▆▇█"]
    assert sparkline([5.0, 5.0], 8) == ["▄▄"]
    assert sparkline([0.0, 0.0, math.nan], 8, rows=2) == ["   ", "▁▁ "]
    assert sparkline([0.0, math.nan, 1.0, math.inf], 8) == ["▁ █ "]
    assert sparkline([], 8) == [""]
    assert sparkline([1.0, 2.0], 0) == [""]


def test_a_taller_sparkline_has_finer_steps() -> None:
    assert sparkline([0, 7, 8, 15], 4, rows=2) == ["  ▁█", "▁███"]


def test_more_values_than_columns_are_averaged() -> None:
    assert sparkline([0, 2, 6, 8, math.nan, 15], 3) == ["▁▄█"]
    assert sparkline([math.nan] * 6, 3) == ["   "]


def test_a_bar_is_exact_to_an_eighth() -> None:
    assert bar(0.5, 4) == "██"
    assert bar(1 / 32 * 9, 4) == "█▏"
    assert (bar(0.0, 4), bar(-1.0, 4), bar(7.0, 4), bar(0.5, 0)) == ("", "", "████", "")
