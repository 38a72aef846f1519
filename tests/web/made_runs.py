"""Runs as a training leaves them, without training: metrics, log, settings, games, results, a checkpoint."""

import json
from datetime import datetime
from pathlib import Path

from fake_run import fake_metrics

from keisei.config.files import load_config, to_yaml
from keisei.evaluation.matches.results_store import ResultsStore
from keisei.evaluation.matches.results_store import StoredGame as StoredResult
from keisei.runs.checkpoint_format import MANIFEST, manifest_of
from keisei.runs.find import SHIPPED_PATH
from keisei.runs.kept_games import kept_game_path
from keisei.shogi import GameRecord, Outcome, Reason, ShogiGame, write_csa_games, write_kif
from keisei.training.listener import RunFacts

STEPS = 4096  # of an update
UPDATES = 50
CONDITIONS = "4 random moves, 512 moves at most"
MATE_IN_SEVEN = ["7g7f", "6a7b", "8h3c+", "4a4b", "3c4b", "5a6a", "G*5b"]


def line(update: int, step: int = STEPS) -> str:
    """Return an update's line in the metrics."""
    return json.dumps({"step": step * update, **fake_metrics(update)}) + "\n"


def game(seed: int, plies: int = 60) -> ShogiGame:
    """Return a game of random moves."""
    from random import Random

    choose, played = Random(seed), ShogiGame(max_moves=None)
    while len(played.history) < plies and (moves := played.legal_moves()):
        played.push(choose.choice(moves))
    return played


def made_run(path: Path, *, updates: int = UPDATES, games: int = 6) -> Path:
    """Make a run's directory; games: of each kind."""
    (path / "games").mkdir(parents=True)
    (path / "evaluation" / "games").mkdir(parents=True)
    config = load_config("tiny", [f"run.name={path.name}", f"training.total_timesteps={STEPS * 100}"])
    (path / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    described = {"seed": 7, "time": "2026-05-01T12:00:00+00:00", "resumed": []}
    (path / "run.json").write_text(json.dumps(described), encoding="utf-8")
    (path / "metrics.jsonl").write_text("".join(map(line, range(1, updates + 1))), encoding="utf-8")
    facts = RunFacts(f"runs/{path.name}", STEPS * 100, 0, 84_321, "cpu, 2 threads, float32", 7)
    notices = [str(facts), "worker 1 died (SIGKILL) in game 412; restarted", "40,960 moves: greedy 55 %"]
    stamp = f"{datetime(2026, 5, 1, 12, 0, 0):%Y-%m-%d %H:%M:%S}"
    (path / "train.log").write_text("".join(f"{stamp}  {text}\n" for text in notices), encoding="utf-8")
    own = f"{path.name}@{STEPS * updates}"
    shipped_checkpoint(path, STEPS * updates)
    for number in range(games):
        played = game(number, 59 + number % 2)
        outcome = Outcome(played.turn.opponent, Reason.RESIGNATION)
        kept = GameRecord(tuple(played.history), black=own, white=own, outcome=outcome)
        kept_game_path(path / "games", STEPS * (number + 1), number).write_text(write_kif(kept), "utf-8")
    mated = ShogiGame()
    for move in MATE_IN_SEVEN:
        mated.push(move)
    records = [GameRecord.from_game(mated, black=own, white="greedy")]
    records += [
        GameRecord(
            tuple(game(100 + number, 20).history),
            black="greedy",
            white=own,
            outcome=Outcome(None, Reason.MAXIMUM_LENGTH),
        )
        for number in range(games - 1)
    ]
    csa = path / "evaluation" / "games" / f"{path.name}_vs_greedy-01234567.csa"
    csa.write_text(write_csa_games(records), encoding="utf-8")
    with ResultsStore.open(path / "evaluation" / "results.sqlite") as results:
        for name, step in ((own, STEPS * updates), ("greedy", None), ("random", None)):
            results.add_player(name, name, step)
        results.add(_results(own, "greedy", (12, 6, 2)) + _results("greedy", "random", (17, 2, 1)))
    return path


def shipped_checkpoint(run: Path, step: int) -> Path:
    """Give a run the network that comes with Keisei, as a checkpoint at a step."""
    path = run / "checkpoints" / f"step_{step:012}"
    path.mkdir(parents=True)
    files = {name: (SHIPPED_PATH / name).read_bytes() for name in ("state.json", "weights.safetensors")}
    for name, data in {**files, MANIFEST: manifest_of(step, files)}.items():
        (path / name).write_bytes(data)
    return path


def _results(one: str, other: str, counts: tuple[int, int, int]) -> list[StoredResult]:
    winners = [0] * counts[0] + [1] * counts[1] + [None] * counts[2]
    return [
        StoredResult(one, other, CONDITIONS, 7, pair, winner, "checkmate", 80)
        for pair, winner in enumerate(winners)
    ]
