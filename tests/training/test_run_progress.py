"""Progress: rates, shares and histories of the last updates, worked out by hand."""

import math

import pytest
from fake_run import FACTS, fake_workers

from keisei.training.run_progress import HISTORY, WINDOW, Evaluation, GameCounts, Progress, RatedStep

GAMES = {"games/finished": 4.0, "games/black_wins": 2.0, "games/white_wins": 1.0, "games/draws": 1.0}


def progress(*updates: dict[str, float], seconds: float = 2.0, step: int = 1024) -> Progress:
    now = [0.0]
    told = Progress(FACTS, lambda: now[0])
    for index, metrics in enumerate(updates, start=1):
        now[0] += seconds
        told.update(index * step, metrics)
    return told


def test_before_the_first_update_nothing_is_known() -> None:
    told = progress()
    assert told.history("loss/policy") == []
    assert told.game_counts().finished == 0
    assert set(told.phases().values()) == {0.0}
    for value in (
        told.last("loss/policy"),
        told.length(),
        told.remaining_seconds(),
        told.game_counts().share(0),
    ):
        assert math.isnan(value)


def test_the_time_to_go_follows_the_pace_of_the_last_updates() -> None:
    total = FACTS.total_steps
    told = progress({}, {}, seconds=3.0)
    assert told.remaining_seconds() == pytest.approx(3.0 * (total - 2048) / 1024)
    assert told.fraction() == 2048 / total
    assert told.elapsed_seconds() == 6.0
    now = [0.0]
    slow_at_first = Progress(FACTS, lambda: now[0])
    for index in range(1, WINDOW + 3):
        now[0] += 100.0 if index <= 2 else 1.0
        slow_at_first.update(index * 1024, {})
    assert slow_at_first.remaining_seconds() == pytest.approx((total - (WINDOW + 2) * 1024) / 1024)
    now[0] += 5.0
    assert slow_at_first.remaining_seconds() == pytest.approx((total - (WINDOW + 2) * 1024) / 1024 - 5)
    now[0] += 1e6
    assert slow_at_first.remaining_seconds() == 0.0


def test_a_finished_run_has_no_time_to_go() -> None:
    told = progress({}, {}, step=FACTS.total_steps)
    assert (told.fraction(), told.remaining_seconds()) == (1.0, 0.0)


def test_results_are_those_of_the_window() -> None:
    old = {"games/finished": 50.0, "games/draws": 50.0, "games/by_repetition": 50.0}
    told = progress(old, *[GAMES | {"games/by_checkmate": 3.0}] * WINDOW)
    counts = told.game_counts()
    assert (counts.black_wins, counts.white_wins, counts.draws) == (2 * WINDOW, WINDOW, WINDOW)
    assert (counts.reasons["checkmate"], counts.reasons["repetition"]) == (3 * WINDOW, 0)
    assert counts.share(counts.draws) == 0.25
    assert told.draw_rates() == [1.0] + [0.25] * WINDOW


def test_lengths_weigh_by_games_and_pass_over_updates_without_one() -> None:
    told = progress(
        {"games/finished": 1.0, "games/length": 100.0},
        {"games/finished": 0.0},
        {"games/finished": 3.0, "games/length": 200.0},
    )
    assert told.length() == 175.0
    assert math.isnan(told.draw_rates()[1])
    assert math.isnan(told.history("games/length")[1])


def test_phases_are_shares_of_their_sum() -> None:
    told = progress({"time/env": 1.0, "time/update": 2.0}, {"time/update": 1.0, "time/other": math.nan})
    shares = told.phases()
    assert (shares["env"], shares["update"], shares["other"]) == (0.25, 0.75, 0.0)


def test_the_phases_of_workers_are_told_only_where_they_occur() -> None:
    alone = progress({"time/env": 1.0, "time/update": 2.0})
    assert not {"collect", "synchronize"} & alone.phases().keys()
    assert not {"collect", "synchronize"} & progress().phases().keys()
    told = progress({"time/collect": 1.0, "time/synchronize": 0.5, "time/update": 2.5})
    shares = told.phases()
    assert (shares["collect"], shares["synchronize"], shares["update"]) == (0.25, 0.125, 0.625)
    assert shares["env"] == 0.0


def test_the_workers_are_those_of_the_last_update() -> None:
    told = progress({})
    assert told.workers == ()
    workers = fake_workers(1, 3)
    told.update(2048, {}, workers)
    assert told.workers == tuple(workers)
    workers.clear()
    assert len(told.workers) == 3
    told.update(3072, {})
    assert told.workers == ()


def test_the_evaluations_of_each_opponent_are_kept() -> None:
    told = progress(
        {"evaluation/random_score": 0.5, "evaluation/random_draws": 0.4, "evaluation/random_length": 90.0},
        {"evaluation/random_score": 0.6},
        {},
        {"evaluation/random_score": 0.7, "evaluation/greedy_score": 0.1},
    )
    assert [match.score for match in told.evaluations["random"]] == [0.5, 0.6, 0.7]
    assert [match.step for match in told.evaluations["random"]] == [1024, 2048, 4096]
    assert [match.score for match in told.evaluations["greedy"]] == [0.1]
    first = progress(
        {"evaluation/random_score": 0.5, "evaluation/random_draws": 0.4, "evaluation/random_length": 9.0}
    )
    assert first.evaluations["random"] == [Evaluation(1024, 0.5, 0.4, 9.0)]


def test_the_ratings_are_kept_with_their_intervals() -> None:
    rated = {"evaluation/rating": 10.0, "evaluation/rating_low": -5.0, "evaluation/rating_high": 25.0}
    lost = {
        "evaluation/rating": -math.inf,
        "evaluation/rating_low": -math.inf,
        "evaluation/rating_high": 90.0,
    }
    told = progress(lost, {}, rated)
    assert told.ratings == [RatedStep(1024, -math.inf, -math.inf, 90.0), RatedStep(3072, 10.0, -5.0, 25.0)]


def test_update_says_whether_there_was_an_evaluation() -> None:
    told = progress()
    assert not told.update(1024, GAMES)
    assert told.update(2048, {"evaluation/greedy_score": 0.0})


def test_the_history_is_bounded() -> None:
    told = progress(*({"loss/policy": float(index)} for index in range(HISTORY + 5)))
    assert told.history("loss/policy") == [float(index) for index in range(5, HISTORY + 5)]


def test_all_games_are_wins_or_draws() -> None:
    assert GameCounts(3, 2, 1, {}).finished == 6
