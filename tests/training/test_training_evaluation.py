"""Evaluation during training: it changes nothing else, rates, keeps to its time, and survives a kill."""

import json
import math
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]
from training_runs import last, metrics, start, the_run, train

from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.ppo_agent import PPOAgent
from keisei.core.self_play import SelfPlay
from keisei.evaluation import AlphaBetaPlayer, MatchConditions
from keisei.evaluation.matches.results_store import ResultsStore
from keisei.evaluation.matches.tournament import Tournament
from keisei.evaluation.players.player_specs import checkpoint_player, make_player
from keisei.runs.checkpoint import best_checkpoint, checkpoint_path, load_checkpoint, save_checkpoint
from keisei.training.listener import SilentListener
from keisei.training.plot import plot_rating
from keisei.training.trainer import Trainer
from keisei.training.training_evaluation import TrainingEvaluator

# Three updates, an evaluation after each.
TRAINING = ["training.total_timesteps=768", "training.steps_per_epoch=256", "run.keep_checkpoints=100"]
TRAINING += ["run.checkpoint_every=256", "run.console=plain", "training.learning_rate=0.01"]
EVALUATION = ["evaluation.every=256", "evaluation.games=10", "evaluation.final_games=12"]
EVALUATION += ["evaluation.max_moves=60", "evaluation.seconds=0"]
EVALUATION += ["evaluation.opponents=[random,greedy,alphabeta-1,best]", "run.name=first"]
NONE = ["evaluation.every=0", "evaluation.final_games=0"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    train(folder, [*TRAINING, *EVALUATION, "run.loggers=[tensorboard]"])
    return the_run(folder)


def said(folder: Path) -> str:
    return (folder / "out.txt").read_text(encoding="utf-8")


def contest_of(run: Path) -> Tournament:
    return Tournament(run / "evaluation", MatchConditions(4, 60, "27"), 1)


def test_training_is_the_same_to_the_bit_without_evaluation(evaluated: Path, tmp_path: Path) -> None:
    train(tmp_path, [*TRAINING, *NONE])
    alone = the_run(tmp_path)
    assert not (alone / "evaluation").exists()
    for step in (256, 512, 768):
        one, other = (
            load_checkpoint(checkpoint_path(run / "checkpoints", step)) for run in (evaluated, alone)
        )
        assert one.blobs == other.blobs
        for group in ("weights", "optimizer"):
            assert one.tensors[group].keys() == other.tensors[group].keys()
            for name, tensor in one.tensors[group].items():
                assert tensor.numpy().tobytes() == other.tensors[group][name].numpy().tobytes(), name
    rows = [
        {name: value for name, value in row.items() if not name.startswith("evaluation/")}
        for row in metrics(evaluated)
    ]
    assert rows == metrics(alone)


def test_each_evaluation_has_scores_and_a_rating(evaluated: Path) -> None:
    rows = metrics(evaluated)
    assert [row["step"] for row in rows] == [256, 512, 768]
    for row in rows:
        for opponent in ("random", "greedy", "alphabeta-1"):
            assert 0 <= row[f"evaluation/{opponent}_score"] <= 1
            assert 0 <= row[f"evaluation/{opponent}_draws"] <= 1
            assert 0 < row[f"evaluation/{opponent}_length"] <= 60
        assert {"evaluation/rating", "evaluation/rating_low", "evaluation/rating_high"} <= row.keys()
    assert [("evaluation/best_score" in row) for row in rows] == [False, True, True]
    picture = plot_rating(evaluated)
    assert picture is not None
    assert picture.read_bytes().startswith(PNG)


def test_a_match_is_told_once_and_logged_in_full(evaluated: Path) -> None:
    lines = said(evaluated.parents[1]).splitlines()
    (line,) = (line for line in lines if "alphabeta-1" in line and "evaluation at 256: " in line)
    assert re.search(
        r"evaluation at 256: Elo \S+ \(\S+ to \S+\); random .*; greedy .*; alphabeta-1 \d+ %", line
    )
    assert not [line for line in lines if " vs " in line or "  ! " in line]
    log = (evaluated / "train.log").read_text(encoding="utf-8")
    assert log.count("  256 moves: first@256 vs alphabeta-1: ") == 1


def test_the_rating_is_that_of_the_games_so_far(evaluated: Path) -> None:
    rows = metrics(evaluated)
    with contest_of(evaluated) as tournament:
        identities = {one.step: one.identity for one in tournament.results.players().values()}
        for row in rows:
            ratings = tournament.ratings(up_to=int(row["step"]))
            assert ratings is not None
            rating = ratings[identities[int(row["step"])]]
            told = [row[f"evaluation/rating{end}"] for end in ("", "_low", "_high")]
            assert told == [value if math.isfinite(value) else None for value in rating_bounds(rating)]
        games = tournament.results.games()
    # Three opponents, the best from the second time on, 10 games and at the end 12; and the link matches.
    with_networks = [game for game in games if "network" in game.black + game.white]
    assert len(with_networks) == 10 * (3 + 4) + 12 * 4
    assert len(games) - len(with_networks) == 2 * 10


def rating_bounds(rating: object) -> list[float]:
    return [getattr(rating, name) for name in ("elo", "low", "high")]


def test_the_best_checkpoint_is_the_one_with_the_highest_lower_end(evaluated: Path) -> None:
    best: int | None = None
    low = -math.inf
    with contest_of(evaluated) as tournament:
        identities = {one.step: one.identity for one in tournament.results.players().values() if one.step}
        for step in (256, 512, 768):
            ratings = tournament.ratings(up_to=step)
            assert ratings is not None
            if best is None or ratings[identities[step]].low > ratings[identities[best]].low:
                best, low = step, ratings[identities[step]].low
        # Each best network has played against its successor.
        players = {*tournament.results.players()}
    assert players >= {*identities.values()}
    marked = best_checkpoint(evaluated / "checkpoints")
    assert marked == (best, max(low, -10_000.0))
    assert f"the best evaluation was at {best:,}" in said(evaluated.parents[1])


def test_the_weights_that_played_are_those_of_the_checkpoint(evaluated: Path) -> None:
    with ResultsStore.open(evaluated / "evaluation" / "results.sqlite") as results:
        stored = {one.step: one.identity for one in results.players().values() if one.step is not None}
    for step in (256, 512, 768):
        path = checkpoint_path(evaluated / "checkpoints", step)
        assert checkpoint_player(path, seed=1).identity == stored[step]


def test_ratings_are_in_tensorboard(evaluated: Path) -> None:
    events = EventAccumulator(str(evaluated / "tensorboard"))
    events.Reload()
    for name in ("evaluation/rating_low", "evaluation/rating_high", "evaluation/rating"):
        points = {point.step: point.value for point in events.Scalars(name)}
        assert [*points] == [256, 512, 768]
        for row in metrics(evaluated):
            if row[name] is not None:
                assert points[int(row["step"])] == pytest.approx(row[name], rel=1e-6)


def wait_for_games(run: Path, step: int, wanted: int) -> None:
    """Wait until this many games of the network at this step are stored."""
    end = time.monotonic() + 60
    query = "SELECT COUNT(*) FROM games, players WHERE identity IN (black, white) AND step = ?"
    while time.monotonic() < end:
        with closing(sqlite3.connect(run / "evaluation" / "results.sqlite")) as connection:
            try:
                if connection.execute(query, (step,)).fetchone()[0] >= wanted:
                    return
            except sqlite3.OperationalError:  # it has no tables yet, or is being written
                pass
        time.sleep(0.002)
    raise AssertionError(f"no {wanted} games of step {step}")


def killed_twice(tmp_path: Path) -> Path | None:
    """Train with a kill in the middle of two evaluations; return the run, or None if a kill was too late."""
    tmp_path.mkdir()
    process = start(tmp_path, resume=False, overrides=[*TRAINING, *EVALUATION])
    run = tmp_path / "runs" / "first"
    while not (run / "evaluation").exists():
        assert process.exitcode is None
        time.sleep(0.002)
    for step, wanted in ((512, 6), (768, 14)):
        wait_for_games(run, step, wanted)
        process.kill()
        process.join(10)
        if metrics(run) and metrics(run)[-1]["step"] >= step:
            return None
        process = start(tmp_path, resume=True, overrides=[])
    process.join(60)
    assert process.exitcode == 0
    return run


def test_killed_in_the_middle_of_evaluations_it_rates_as_if_undisturbed(
    evaluated: Path, tmp_path: Path
) -> None:
    tries = (killed_twice(tmp_path / str(number)) for number in range(5))
    run = next((run for run in tries if run is not None), None)
    assert run is not None, "every kill came after the evaluation"
    assert metrics(run) == metrics(evaluated)
    assert best_checkpoint(run / "checkpoints") == best_checkpoint(evaluated / "checkpoints")
    with contest_of(run) as one, contest_of(evaluated) as other:
        assert one.results.games() == other.results.games()


def test_without_opponents_nothing_is_rated(tmp_path: Path) -> None:
    train(tmp_path, [*TRAINING[1:], "training.total_timesteps=256", *EVALUATION, "evaluation.opponents=[]"])
    run = the_run(tmp_path)
    assert not [name for row in metrics(run) for name in row if name.startswith("evaluation/")]
    assert best_checkpoint(run / "checkpoints") is None
    assert last(run).step == 256


class Told(SilentListener):
    """Keeps the matches and the notices."""

    def __init__(self) -> None:
        self.matches: list[str] = []
        self.notices: list[str] = []

    def match(self, text: str) -> None:
        self.matches.append(text)

    def notice(self, text: str) -> None:
        self.notices.append(text)


class Measured:
    """An evaluator for a run that is not trained, and what it reports."""

    def __init__(self, run: Path, *overrides: str) -> None:
        self.run = run
        self.config: AppConfig = load_config("tiny", ["evaluation.max_moves=60", *overrides])
        self.agent = PPOAgent(self.config, torch.device("cpu"))
        self.told = Told()
        self.meter = TrainingEvaluator(
            self.config, run, run / "checkpoints", self.told, should_stop=lambda: False
        )

    def save(self, step: int) -> None:
        trainer = Trainer(self.config, torch.device("cpu"))
        trainer.agent.load_tensors(self.agent.tensors())
        trainer.steps = step
        (self.run / "checkpoints").mkdir(parents=True, exist_ok=True)
        save_checkpoint(
            self.run / "checkpoints",
            trainer.snapshot([SelfPlay.begin(self.config.env, games=16, seed=1).save()]),
        )

    def learn(self) -> None:
        with torch.no_grad():
            for weights in self.agent.network.parameters():
                weights.add_(0.01)


def test_the_time_is_kept_and_that_is_told(tmp_path: Path) -> None:
    measured = Measured(
        tmp_path,
        "evaluation.opponents=[random,alphabeta-4]",
        "evaluation.seconds=0.05",
        "evaluation.games=1000",
    )
    found = measured.meter.measure(measured.agent, 256, 1000, None)
    assert len(measured.told.matches) == 2
    for opponent, line in zip(("random", "alphabeta-4"), measured.told.notices, strict=True):
        assert f" of 1000 games against {opponent}; evaluation.seconds allows 0.025 s for them" in line
    with contest_of(tmp_path) as tournament:
        games = tournament.results.games()
    assert len(games) < 1000  # the link matches would be as many, and take minutes
    assert found.rating is None or found.metrics["evaluation/rating"] == found.rating.elo


def test_a_run_with_hardly_any_time_for_evaluations_goes_on(tmp_path: Path) -> None:
    changes = ["evaluation.seconds=0.000001", "evaluation.games=1000", "evaluation.final_games=1000"]
    train(tmp_path, [*TRAINING[1:], "training.total_timesteps=512", *EVALUATION, *changes])
    assert last(the_run(tmp_path)).step == 512
    assert "  ! 256 moves: 0 of 1000 games against random; evaluation.seconds allows " in said(tmp_path)


def test_results_that_cannot_be_kept_do_not_end_the_training(tmp_path: Path) -> None:
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "results.sqlite").write_bytes(b"no database " * 100)
    measured = Measured(tmp_path)
    found = measured.meter.measure(measured.agent, 256, 2, None)
    assert (found.metrics, found.rating, found.best_low) == ({}, None, -math.inf)
    (line,) = measured.told.notices
    assert line.startswith("256 moves: the evaluation failed, training continues: cannot use ")


def test_the_best_is_known_by_its_weights_not_by_its_step(tmp_path: Path) -> None:
    """A search with the same network, or an abandoned branch of the run, has the same step."""

    class Impostor(AlphaBetaPlayer):
        def describe(self) -> dict[str, str]:
            return {"step": "256"}

    measured = Measured(tmp_path, "evaluation.opponents=[random]")
    measured.meter.measure(measured.agent, 256, 4, None)
    measured.save(256)
    with contest_of(tmp_path) as tournament:
        impostor = Impostor(2, seed=1)
        impostor.name = impostor.identity = "network-impostor"
        tournament.play(impostor, make_player("random", 1), 10)
        tournament.play(impostor, make_player("greedy", 1), 10)
        ratings = tournament.ratings()
        assert ratings is not None
        (own,) = (one.player for one in ratings.table if "temperature" in one.player)
        assert ratings["network-impostor"].low > ratings[own].low
    measured.learn()
    found = measured.meter.measure(measured.agent, 512, 4, (256, -1.0))
    with contest_of(tmp_path) as tournament:
        now = tournament.ratings()
    assert now is not None
    assert found.best_low == now[own].low
    # For one never rated under these conditions, the recorded score counts.
    assert measured.meter.measure(measured.agent, 512, 4, (768, 123.0)).best_low == 123.0


def test_a_rating_does_not_depend_on_what_came_later(tmp_path: Path) -> None:
    """As in a run that was killed and resumes from a checkpoint before its last evaluations."""
    measured = Measured(tmp_path, "evaluation.opponents=[random,greedy]")
    first = measured.meter.measure(measured.agent, 256, 4, None)
    weights = {name: tensor.clone() for name, tensor in measured.agent.network.state_dict().items()}
    measured.learn()
    later = measured.meter.measure(measured.agent, 512, 12, (256, 0.0))
    assert later.rating is not None
    measured.agent.network.load_state_dict(weights)
    assert measured.meter.measure(measured.agent, 256, 4, None) == first


def test_weights_that_have_not_changed_do_not_play_themselves(tmp_path: Path) -> None:
    measured = Measured(tmp_path, "evaluation.opponents=[random,best]")
    measured.save(256)
    found = measured.meter.measure(measured.agent, 512, 4, (256, 0.0))
    assert "evaluation/random_score" in found.metrics
    assert "evaluation/best_score" not in found.metrics
    assert found.rating is not None
    assert found.best_low == found.rating.low


def test_the_best_plays_as_often_as_the_others_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    measured = Measured(tmp_path, "evaluation.opponents=[random,best]")
    measured.save(256)
    measured.learn()
    found = measured.meter.measure(measured.agent, 512, 4, (256, 0.0))
    assert "evaluation/best_score" in found.metrics
    assert [line.split(" vs ")[1].split(":")[0] for line in measured.told.matches] == [
        "random",
        f"{tmp_path.name}@256",
    ]
    weights = checkpoint_path(tmp_path / "checkpoints", 256) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    measured.told.matches.clear()
    found = measured.meter.measure(measured.agent, 512, 4, (256, 0.0))
    assert "evaluation/best_score" not in found.metrics
    assert measured.told.notices[0].startswith("the best checkpoint cannot play: ")
    assert found.best_low == 0.0
    assert json.dumps(found.metrics)
