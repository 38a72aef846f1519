"""Training from a script: `train`, and a custom loop."""

import signal
import threading
from datetime import datetime
from pathlib import Path

import pytest

from keisei.config.config_errors import ConfigError
from keisei.config.files import load_config
from keisei.runs.checkpoint import checkpoint_steps
from keisei.runs.run_directory import RunDirectory
from keisei.training import RunResult, Trainer, TrainingLoopManager, train
from keisei.training.listener import SilentListener, Update
from keisei.training.metrics import read_metrics
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.ledger import ConservationError, Ledger

QUICK = [
    "training.parallel.enabled=false",
    "training.total_timesteps=512",
    "training.steps_per_epoch=256",
    "training.minibatch_size=64",
    "env.random_plies=150",
    "env.max_moves=160",
    "evaluation.every=0",
    "evaluation.final_games=0",
    "run.console=off",
    "run.threads=1",
]


def test_train_returns_what_came_of_it_and_goes_on(tmp_path: Path) -> None:
    config = load_config("tiny", [*QUICK, f"run.directory={tmp_path}", "run.name=first"])
    results: list[RunResult] = []
    # In a thread, where Python allows no signal handlers.
    thread = threading.Thread(target=lambda: results.append(train(config)))
    thread.start()
    thread.join(120)
    (first,) = results
    run = tmp_path / "first"
    assert (first.exit_code, first.directory, first.steps, first.updates) == (0, run, 512, 2)
    assert first.message.startswith("trained on 512 moves of ")
    rows = read_metrics(run / "metrics.jsonl")
    assert first.metrics["loss/total"] == rows[-1]["loss/total"]
    assert first.games == sum(row["games/finished"] for row in rows) > 0
    assert (first.best, first.workers) == (None, {})
    assert first.seconds > 0

    handler = signal.getsignal(signal.SIGINT)
    workers = ["training.parallel.enabled=true", "training.parallel.num_workers=2"]
    second = train(resume=run, overrides=[*workers, "training.total_timesteps=1024"])
    assert signal.getsignal(signal.SIGINT) is handler
    assert (second.exit_code, second.directory, second.steps, second.updates) == (0, run, 1024, 4)
    assert second.games > first.games
    assert second.workers["steps"]["trained"] == 512
    assert [one["state"] for one in second.workers["worker_stats"]] == ["stopped", "stopped"]
    assert checkpoint_steps(run / "checkpoints")[0] == 1024

    log = (run / "train.log").read_text(encoding="utf-8").splitlines()
    assert [line.split("  ", 1)[1] for line in log if "trained on" in line] == [
        first.message,
        "workers: 512 moves generated = 512 trained on + 0 in flight + 0 discarded",
        second.message,
    ]
    with pytest.raises(ConfigError, match="both a config and a run to resume are given"):
        train(config, resume=run)


def test_an_unexpected_exception_is_in_the_log_and_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall_over(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Trainer, "perform_update", fall_over)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        train(load_config("tiny", [*QUICK, f"run.directory={tmp_path}", "run.name=bug"]))
    log = (tmp_path / "bug" / "train.log").read_text(encoding="utf-8")
    assert "  Traceback (most recent call last):\n" in log
    assert log.endswith("ZeroDivisionError: a bug\n")
    assert not checkpoint_steps(tmp_path / "bug" / "checkpoints")


class Counting(SilentListener):
    """A listener that keeps every update."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.closed = False

    def update(self, update: Update) -> None:
        self.updates.append(update)

    def close(self) -> None:
        self.closed = True


def test_a_loop_needs_a_trainer_only_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluated = ["evaluation.every=256", "evaluation.final_games=2"]  # impossible without a directory
    listener = Counting()
    loop = TrainingLoopManager(Trainer(load_config("tiny", [*QUICK, *evaluated])), listeners=[listener])
    assert loop.last_update is None
    loop.run()
    assert loop.trainer.steps == 512
    assert [update.step for update in listener.updates] == [256, 512]
    assert listener.updates[-1] is loop.last_update
    assert listener.closed
    for update in listener.updates:
        assert len(update.finished) == update.metrics["games/finished"] > 0
        assert len(update.saved_games) == 1
        assert update.workers == ()
    assert not list(tmp_path.iterdir())


class Full(SilentListener):
    """A listener whose disk is full from its second update on."""

    def __init__(self) -> None:
        self.updates = 0

    def update(self, update: Update) -> None:  # noqa: ARG002
        self.updates += 1
        self.sync()

    def sync(self) -> None:
        if self.updates > 1:
            raise OSError("no room")


def test_a_listener_that_fails_ends_a_run_after_its_checkpoint(tmp_path: Path) -> None:
    config = load_config("tiny", [*QUICK, f"run.directory={tmp_path}"])
    with RunDirectory.create(config, config_text="", command=[], now=datetime.now()) as directory:
        with pytest.raises(OSError, match="no room"):
            TrainingLoopManager(Trainer(config), directory=directory, listeners=[Full()]).run()
        assert checkpoint_steps(directory.checkpoints) == [512]


@pytest.mark.parallel
def test_no_worker_is_left_if_the_counts_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = ["training.parallel.enabled=true", "training.parallel.num_workers=1"]
    config = load_config("tiny", [*QUICK, *workers])
    trainer = Trainer(config)
    manager = ParallelManager(config, trainer.agent)
    count = Ledger.trained
    monkeypatch.setattr(Ledger, "trained", lambda ledger, steps: count(ledger, steps - 1))
    with pytest.raises(ConservationError):
        TrainingLoopManager(trainer, manager).run()
    assert not manager.is_running
    assert [worker.pid for worker in manager.workers if worker.pid is not None] == []
