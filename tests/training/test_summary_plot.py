"""The summary of a run: its scores and Elo come from its stored games, with their intervals."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from keisei.config.files import load_config, to_yaml
from keisei.evaluation.matches.match_conditions import conditions_of
from keisei.evaluation.matches.match_result import score_interval
from keisei.evaluation.matches.results_store import StoredGame
from keisei.evaluation.matches.tournament import Tournament
from keisei.training.metrics import MetricsError
from keisei.training.summary_plot import plot_summary, read_strength

COMMAND = Path(sys.executable).parent / "keisei"
BLACK, WHITE, DRAW = 0, 1, None


Match = tuple[int, str, Sequence[tuple[int | None, int | None]]]


def a_run(path: Path, matches: Sequence[Match]) -> Path:
    """A run whose network at a step played pairs: (winner as Black against the opponent, winner as White)."""
    path.mkdir()
    config = load_config("tiny")
    (path / "config.yaml").write_text(to_yaml(config))
    conditions, seed = conditions_of(config), config.run.seed
    with Tournament(path / "evaluation", conditions, seed) as tournament:
        add = tournament.results.add
        for step, opponent, pairs in matches:
            network = f"network {step}"
            tournament.results.add_player(network, f"first@{step}", step, {})
            tournament.results.add_player(opponent, opponent, None, {})
            for pair, (first, second) in enumerate(pairs):
                one = StoredGame(network, opponent, str(conditions), seed, pair, first, "checkmate", 50)
                add([one, one._replace(black=opponent, white=network, winner=second)])
            # What must not count: half a pair, and a pair of another seed.
            half = StoredGame(network, opponent, str(conditions), seed, 90, BLACK, "checkmate", 50)
            other = half._replace(seed=seed + 1, pair=91)
            add([half, other, other._replace(black=opponent, white=network)])
    return path


WON, LOST, SPLIT, DRAWN = (BLACK, WHITE), (WHITE, BLACK), (BLACK, BLACK), (DRAW, WHITE)
MATCHES: list[Match] = [
    (1024, "random", [WON, LOST, SPLIT]),
    (2048, "random", [WON, WON, DRAWN]),
    (1024, "greedy", [LOST, LOST]),
    (2048, "greedy", [LOST, SPLIT]),
]


def test_scores_are_those_of_whole_pairs_with_this_seed(tmp_path: Path) -> None:
    strength = read_strength(a_run(tmp_path / "first", MATCHES))
    assert list(strength.scores) == ["random", "greedy"]  # the weakest first
    assert [point[:2] for point in strength.scores["random"]] == [
        (1024, 0.5),
        (2048, pytest.approx((1 + 1 + 0.75) / 3)),
    ]
    assert [point[:2] for point in strength.scores["greedy"]] == [(1024, 0.0), (2048, 0.25)]
    assert strength.scores["random"][1][2:] == score_interval([0, 0, 0, 1, 2])
    assert [point.step for point in strength.elo] == [1024, 2048]
    first, second = strength.elo
    assert first.low < first.value < second.value < second.high
    assert strength.opponents["random"] == 0
    assert strength.opponents["greedy"] > second.value


def test_the_picture_names_opponents_and_is_the_same_each_time(tmp_path: Path) -> None:
    run = a_run(tmp_path / "first", MATCHES)
    written = plot_summary(run, tmp_path / "out" / "a.svg").read_text(encoding="utf-8")
    words = re.findall(r"<!-- (.*?) -->", written)
    for word in ("score against", "Elo of the network", "random", "greedy", "moves of self-play"):
        assert word in words, word
    assert plot_summary(run, tmp_path / "b.svg").read_text(encoding="utf-8") == written
    other = a_run(tmp_path / "other", [*MATCHES[:3], (2048, "greedy", [WON, SPLIT])])
    assert plot_summary(other, tmp_path / "c.svg").read_text(encoding="utf-8") != written


def test_a_network_that_won_every_game_has_a_score_but_no_elo(tmp_path: Path) -> None:
    run = a_run(tmp_path / "first", [(1024, "random", [WON, SPLIT]), (2048, "random", [WON, WON])])
    strength = read_strength(run)
    assert [point.value for point in strength.scores["random"]] == [0.75, 1.0]
    assert [point.step for point in strength.elo] == [1024]
    assert plot_summary(run, tmp_path / "first.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_draws_it_or_refuses_in_one_line(tmp_path: Path) -> None:
    run = a_run(tmp_path / "first", MATCHES)
    picture = tmp_path / "first.png"

    def keisei(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([COMMAND, "plot", *arguments], capture_output=True, text=True, timeout=60)

    done = keisei(run, "--summary", picture)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{picture}\n", "")
    done = keisei(run, run, "--summary", picture)
    assert done.returncode == 2
    assert done.stderr == "keisei: --summary draws one run: expected one RUN, and no --out\n"


def test_a_run_without_games_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        MetricsError, match=r"no evaluation games: expected a file evaluation/results\.sqlite"
    ):
        plot_summary(tmp_path, tmp_path / "none.png")
    empty = a_run(tmp_path / "empty", [])
    with pytest.raises(MetricsError, match=r"no evaluation games yet: expected some against random$"):
        plot_summary(empty, tmp_path / "none.png")
    run = a_run(tmp_path / "first", MATCHES)
    with pytest.raises(MetricsError, match=r"expected a name ending in \.png or \.svg$"):
        plot_summary(run, tmp_path / "none.gif")
    assert not list(tmp_path.glob("none*"))
