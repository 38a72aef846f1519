"""The picture of ratings: what is drawn, what is rejected, and that equal ratings give equal pictures."""

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from keisei.evaluation.ratings.rating_plot import RatedStep, plot_rating_curve

INF = math.inf
CURVES = {
    "default": [
        RatedStep(400_000, 400, 330, 480),
        RatedStep(0, -20, -80, 40),
        RatedStep(1_200_000, INF, 820, INF),
    ],
    "seed 2": [RatedStep(0, -INF, -INF, -20), RatedStep(300_000, 200, 150, INF)],
}
LINES = {"random": 0.0, "greedy": 410.0, "material": 412.0}


def words(svg: Path) -> list[str]:
    """Return the text in a picture: matplotlib leaves it in comments beside the outlines."""
    ET.parse(svg)
    return re.findall(r"<!-- (.*?) -->", svg.read_text(encoding="utf-8"))


def dashed(svg: Path) -> int:
    return len(re.findall(r"stroke-dasharray: [1-9]", svg.read_text()))


def markers(svg: Path) -> int:
    """Return how many marks the first run has: points, ends, arrows, and one in the legend."""
    return len(re.findall(r"<use [^>]*#1f77b4", svg.read_text()))


def test_runs_and_reference_players_are_drawn_with_their_names(tmp_path: Path) -> None:
    svg = plot_rating_curve(tmp_path / "out" / "rating.svg", CURVES, LINES | {"beyond": INF})
    written = words(svg)
    assert {"default", "seed 2", "random", "greedy", "material", "Elo", "moves", "400k"} <= set(written)
    assert "beyond" not in written
    assert "nothing yet" not in written
    assert dashed(svg) == 3


def test_intervals_without_an_end_are_arrows(tmp_path: Path) -> None:
    def drawn(low: float, high: float, elo: float = 200.0) -> int:
        steps = [RatedStep(0, 0, -100, 100), RatedStep(10, elo, low, high)]
        return markers(plot_rating_curve(tmp_path / "one.svg", {"run": steps}, {"beyond": INF}))

    whole = drawn(100, 300)
    assert whole == 7
    assert drawn(100, INF) == whole  # an arrow instead of an end
    assert drawn(100, INF, INF) == whole - 1  # and no point
    assert drawn(-INF, INF, math.nan) == whole - 3


def test_names_of_close_lines_are_apart(tmp_path: Path) -> None:
    text = plot_rating_curve(tmp_path / "lines.svg", CURVES, LINES).read_text()
    places = {}
    for name in LINES:
        match = re.search(rf"<!-- {name} -->.*?translate\(\S+ (\S+)\)", text, re.DOTALL)
        assert match
        places[name] = float(match[1])
    assert places["random"] > places["greedy"] > places["material"] + 8  # points; the text is 8 high


def test_nothing_yet(tmp_path: Path) -> None:
    empty: list[dict[str, list[RatedStep]]] = [{}, {"run": []}, {"run": [RatedStep(0, math.nan, -INF, INF)]}]
    for curves in empty:
        assert "nothing yet" in words(plot_rating_curve(tmp_path / "none.svg", curves, {}))
    assert "random" in words(plot_rating_curve(tmp_path / "none.svg", {}, {"random": 0.0}))


def test_a_single_rating_is_drawn(tmp_path: Path) -> None:
    svg = plot_rating_curve(tmp_path / "one.svg", {"run": [RatedStep(5, INF, 100, INF)]}, {})
    assert "run" in words(svg)


def test_equal_ratings_give_equal_pictures(tmp_path: Path) -> None:
    for suffix in (".svg", ".png", ".PNG"):
        first, second = (
            plot_rating_curve(tmp_path / f"{name}{suffix}", CURVES, LINES).read_bytes() for name in "ab"
        )
        assert first == second
    assert first.startswith(b"\x89PNG\r\n\x1a\n")
    assert (int.from_bytes(first[16:20], "big"), int.from_bytes(first[20:24], "big")) == (1080, 600)
    assert plot_rating_curve(tmp_path / "c.PNG", CURVES, {}).read_bytes() != first


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rating\.gif: expected a name that ends in \.png or \.svg$"):
        plot_rating_curve(tmp_path / "new" / "rating.gif", CURVES, LINES)
    assert not list(tmp_path.iterdir())
