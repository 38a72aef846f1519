"""A tiny run through the public functions, serial and with two workers: train, resume, evaluate."""

import json
from pathlib import Path

import pytest

from keisei.config.files import load_config
from keisei.evaluation.evaluate import MatchSettings, evaluate
from keisei.evaluation.matches.match_conditions import MatchConditions
from keisei.runs.checkpoint import newest_checkpoint
from keisei.training import run
from keisei.training.metrics import read_metrics

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]

SERIAL = ["training.parallel.enabled=false"]
PARALLEL = [
    "training.parallel.enabled=true",
    "training.parallel.num_workers=2",
    "training.parallel.episodes_per_worker=8",
]
SHORT = ["evaluation.every=0", "evaluation.final_games=0", "run.console=off", "run.name=smoke"]


@pytest.mark.parametrize("who_plays", [SERIAL, PARALLEL], ids=["serial", "2 workers"])
def test_a_run_trains_goes_on_and_is_evaluated(
    who_plays: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config("tiny", [*SHORT, *who_plays, "training.total_timesteps=1024"])
    assert run.begin_run(config, ["test"]).exit_code == 0
    assert run.train(resume="latest", overrides=["training.total_timesteps=2048"]).exit_code == 0

    directory = tmp_path / "runs" / "smoke"
    lines = read_metrics(directory / "metrics.jsonl")
    assert [line["step"] for line in lines] == [512, 1024, 1536, 2048]
    assert all(line["update/minibatches"] == 8 for line in lines)  # each move twice
    # Counted from the start of each process.
    trained = [line.get("parallel/steps_trained") for line in lines]
    assert trained == ([512, 1024, 512, 1024] if who_plays is PARALLEL else [None] * 4)
    newest, damaged = newest_checkpoint(directory / "checkpoints")
    assert (newest.step, damaged) == (2048, [])

    said: list[str] = []
    settings = MatchSettings(MatchConditions(max_moves=40))
    report = evaluate(["runs/smoke"], ["random"], 2, tmp_path / "evaluation", settings, said.append)
    (match,) = json.loads(report.read_text(encoding="utf-8"))["matches"]
    assert match["wins"] + match["draws"] + match["losses"] == 2
    assert said
