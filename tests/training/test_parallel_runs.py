"""Runs with worker processes: the same bit for bit whichever is killed when, with nothing left behind."""

import dataclasses
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sessions import (
    PATIENCE,
    TRAPPED,
    errors,
    fork_server_of,
    learner,
    members,
    output,
    train,
    wait_for,
    workers_of,
)
from training_runs import KEISEI, SMALL, assert_same, last, the_run

from keisei.config.files import load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.runs.checkpoint import Checkpoint
from keisei.shogi.vector import VectorGames
from keisei.training.metrics import explanation, read_metrics

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]  # whole runs, maybe on a busy machine

PARALLEL = ["training.parallel.enabled=true", "training.parallel.num_workers=2"]
# Everything in a run within seconds, played by two workers with eight games each.
BEGIN = ["--config", "tiny", *SMALL, *PARALLEL, "training.parallel.episodes_per_worker=8"]
BEGIN += ["run.keep_checkpoints=100"]
# No evaluation, which saves three seconds.
SHORT = ["--config", "tiny", *PARALLEL, "evaluation.every=0", "evaluation.final_games=0", "run.console=plain"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run of BEGIN."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert train(*BEGIN, cwd=folder) == 0, errors(folder)
    assert errors(folder) == ""
    return the_run(folder)


def metrics(run: Path) -> list[dict[str, float]]:
    """What a run recorded, without what depends on speed and on who was killed."""
    machine = ("time/", "speed/", "parallel/", "worker_")
    return [
        {name: value for name, value in line.items() if not name.startswith(machine)}
        for line in read_metrics(run / "metrics.jsonl")
    ]


def assert_as_undisturbed(run: Path, undisturbed: Path) -> None:
    assert metrics(run) == metrics(undisturbed)
    assert_same(last(run), last(undisturbed))


def without_config(checkpoint: Checkpoint) -> Checkpoint:
    state: dict[str, Any] = {name: value for name, value in checkpoint.state.items() if name != "config"}
    return dataclasses.replace(checkpoint, state=state)


def test_a_short_run_plays_learns_records_and_leaves_nothing(tmp_path: Path) -> None:
    assert train(*SHORT, "training.total_timesteps=100", "run.name=short", cwd=tmp_path) == 0, errors(
        tmp_path
    )
    run = tmp_path / "runs" / "short"
    (line,) = read_metrics(run / "metrics.jsonl")
    assert line["step"] == line["parallel/steps_trained"] == 128  # 100 in 2 workers' 16 games, rounded up
    gone = (
        line["parallel/steps_trained"] + line["parallel/steps_in_flight"] + line["parallel/steps_discarded"]
    )
    assert line["parallel/steps_generated"] == gone
    assert (line["worker_0/steps"], line["worker_1/steps"]) == (64, 64)
    assert line["parallel/weights_version"] == 1
    assert all(explanation(name) for name in line if name != "step")
    assert "workers: 128 moves generated = 128 trained on + 0 in flight + 0 discarded" in output(tmp_path)
    assert errors(tmp_path) == ""
    untrained = PPOAgent(load_config(run / "config.yaml"), "cpu").network.state_dict()
    learned = last(run).tensors["weights"]
    assert any((learned[name] != untrained[name]).any() for name in learned)


def test_the_same_seed_gives_the_same_metrics_and_weights(undisturbed: Path, tmp_path: Path) -> None:
    assert train(*BEGIN, cwd=tmp_path) == 0, errors(tmp_path)
    assert_as_undisturbed(the_run(tmp_path), undisturbed)
    recorded = metrics(undisturbed)
    assert [line["step"] for line in recorded] == [*range(256, 6144 + 1, 256)]
    assert any(line["games/late_starts"] for line in recorded)


def test_one_worker_plays_what_the_learner_would_have_played_itself(tmp_path: Path) -> None:
    games = ["training.games=16", "training.parallel.episodes_per_worker=16"]
    one = [*BEGIN, *games, "training.parallel.num_workers=1", "run.name=one"]
    assert train(*one, cwd=tmp_path) == 0, errors(tmp_path)
    serial = [*BEGIN, *games, "training.parallel.enabled=false", "run.name=serial"]
    assert train(*serial, cwd=tmp_path) == 0, errors(tmp_path)
    assert metrics(tmp_path / "runs" / "one") == metrics(tmp_path / "runs" / "serial")
    assert_same(
        without_config(last(tmp_path / "runs" / "one")), without_config(last(tmp_path / "runs" / "serial"))
    )


def test_workers_and_their_fork_server_killed_at_random_moments_change_nothing(
    undisturbed: Path, tmp_path: Path
) -> None:
    moments, kills = random.Random(1), 0
    with learner("train", *BEGIN, cwd=tmp_path) as process:
        wait_for("moves/s", process, tmp_path)
        hit = set(workers_of(process))
        os.kill(fork_server_of(process), signal.SIGKILL)  # and with it all workers, once
        # A worker is given up after 5 restarts; then the other one plays more.
        while process.poll() is None and kills < 4:
            victims = [pid for pid in workers_of(process) if pid not in hit]
            if len(victims) == 2:
                victim = moments.choice(victims)
                os.kill(victim, signal.SIGKILL)
                hit.add(victim)
                kills += 1
                time.sleep(moments.uniform(0.3, 0.6))
            time.sleep(0.01)
    assert process.returncode == 0, errors(tmp_path)
    assert kills >= 3
    told = output(tmp_path).count("died (SIGKILL, probably out of memory)")
    assert kills - 1 <= told <= kills  # the last one may have come after the run was over
    assert output(tmp_path).count("died (exit code 255) in game") == 2
    assert_as_undisturbed(the_run(tmp_path), undisturbed)


def test_a_learner_killed_in_any_phase_leaves_nobody_and_goes_on_exactly(
    undisturbed: Path, tmp_path: Path
) -> None:
    # After each of them at least one more checkpoint is there: 512 moves are two epochs, with four gradient
    # steps, two segments and one broadcast each, and 7 to 9 files.
    traps = [("collect", 7), ("update", 14), ("broadcast", 5), ("checkpoint", 20), ("stopped worker", 7)]
    arguments, step = BEGIN, 0
    for kind, number in traps:
        code = train(*arguments, cwd=tmp_path, command=[*TRAPPED, kind, str(number)])
        assert code == -signal.SIGKILL, (kind, output(tmp_path), errors(tmp_path))
        assert last(the_run(tmp_path)).step > step, kind
        step = last(the_run(tmp_path)).step
        arguments = ["--resume", "latest"]
    assert train(*arguments, cwd=tmp_path) == 0, errors(tmp_path)
    assert_as_undisturbed(the_run(tmp_path), undisturbed)


def test_a_learner_killed_at_random_moments_leaves_nobody_and_goes_on_exactly(
    undisturbed: Path, tmp_path: Path
) -> None:
    moments, arguments = random.Random(2), BEGIN
    for _ in range(3):
        with learner("train", *arguments, cwd=tmp_path) as process:
            wait_for("seed 1", process, tmp_path)  # its first line, before there are workers
            time.sleep(moments.uniform(0.0, 3.5))
            process.kill()
        if any(tmp_path.glob("runs/*/checkpoints/step_*")):
            arguments = ["--resume", "latest"]
            if last(the_run(tmp_path)).step == last(undisturbed).step:  # it was faster
                break
        else:
            shutil.rmtree(tmp_path / "runs")
    assert train(*arguments, cwd=tmp_path) == 0, errors(tmp_path)
    assert_as_undisturbed(the_run(tmp_path), undisturbed)


def test_signals_leave_a_run_that_goes_on_exactly(undisturbed: Path, tmp_path: Path) -> None:
    arguments = BEGIN
    for signum, send, started in [
        (signal.SIGINT, os.killpg, False),
        (signal.SIGINT, os.killpg, True),
        (signal.SIGTERM, os.kill, True),
        (signal.SIGHUP, os.killpg, True),
    ]:
        with learner("train", *arguments, cwd=tmp_path) as process:
            wait_for("moves/s" if started else "seed 1", process, tmp_path)
            if not started:
                while len(members(process.pid)) < 3:  # the fork server is running, and about to load torch
                    assert process.poll() is None, errors(tmp_path)
                    time.sleep(0.01)
                time.sleep(0.3)
            send(process.pid, signum)
            assert process.wait(PATIENCE) == 128 + signum, (output(tmp_path), errors(tmp_path))
        assert f"stopped by {signum.name}; resume with: keisei train --resume" in output(tmp_path)
        assert "Traceback" not in output(tmp_path) + errors(tmp_path)
        assert "died" not in output(tmp_path)
        assert last(the_run(tmp_path)).step < 6144
        assert re.search(r"workers: .* = .* trained on \+ 0 in flight", output(tmp_path))
        arguments = ["--resume", "latest"]
    assert train(*arguments, cwd=tmp_path) == 0, errors(tmp_path)
    assert_as_undisturbed(the_run(tmp_path), undisturbed)


def test_a_second_signal_leaves_at_once_and_nobody_behind(tmp_path: Path) -> None:
    with learner("train", *BEGIN, cwd=tmp_path) as process:
        wait_for("moves/s", process, tmp_path)
        process.send_signal(signal.SIGSTOP)  # so that both arrive before it has done anything
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        assert process.wait(PATIENCE) in (130, 143)
    assert "a second signal exits at once" in output(tmp_path)
    assert "workers: " not in output(tmp_path)
    assert "Traceback" not in errors(tmp_path)


def numbers(checkpoint: Checkpoint) -> list[int]:
    """The numbers of the games in progress."""
    return sorted(
        number for blob in checkpoint.blobs.values() for number in VectorGames.restore(blob).numbers
    )


def test_who_plays_can_change_and_no_game_has_a_number_twice(undisturbed: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "copy"
    shutil.copytree(undisturbed, run)
    steps, highest = 6144, numbers(last(run))[-1]
    for change, games in [
        ("training.parallel.num_workers=3", 24),
        ("training.parallel.enabled=false", 16),
        ("training.parallel.enabled=true", 24),
    ]:
        steps += 1024
        more = [change, "evaluation.final_games=0", f"training.total_timesteps={steps}"]
        assert train("--resume", "latest", *more, cwd=tmp_path) == 0, errors(tmp_path)
        said = output(tmp_path)
        assert f"changed: {change.split('=')[0]}: " in said
        assert (
            said.count("the saved games do not match the configured number of games; starting new ones") == 1
        )
        assert last(run).step >= steps
        now = numbers(last(run))
        assert len(now) == len(set(now)) == games
        assert now[0] > highest
        highest = now[-1]
    assert [line["step"] for line in metrics(run)] == sorted({line["step"] for line in metrics(run)})


def in_a_small_room(size: str) -> list[str]:
    """Return a prefix that runs a command with only this much /dev/shm."""
    room = f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", room, "sh"]


def can_mount() -> bool:
    try:
        return (
            subprocess.run([*in_a_small_room("1m"), "true"], capture_output=True, timeout=60).returncode == 0
        )
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_mount(), reason="this machine lets nobody mount a file system")
def test_a_small_dev_shm_does_not_matter(tmp_path: Path) -> None:
    # Four segments of 0.25 MB per worker, far more than the 64 KB available.
    large = ["model.channels=32", "training.steps_per_epoch=4096", "training.total_timesteps=4096"]
    code = train(*SHORT, *large, cwd=tmp_path, command=[*in_a_small_room("64k"), KEISEI])
    assert code == 0, errors(tmp_path)
    assert "workers: 4,096 moves generated = 4,096 trained on" in output(tmp_path)
    assert read_metrics(the_run(tmp_path) / "metrics.jsonl")[0]["parallel/active_workers"] == 2


def no_files_larger_than(size: int) -> list[str]:
    """Return a prefix that limits a command's file size, and so its shared memory too."""
    code = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    code += "; os.environ.pop('COVERAGE_PROCESS_CONFIG', None)"  # its data would not fit either
    return [sys.executable, "-c", f"{code}; os.execv(sys.argv[1], sys.argv[1:])"]


def test_without_memory_for_the_weights_the_run_ends_with_a_line_that_says_so(tmp_path: Path) -> None:
    code = train(*SHORT, cwd=tmp_path, command=[*no_files_larger_than(30_000), KEISEI])
    assert code == 2
    (line,) = errors(tmp_path).splitlines()
    assert re.search(r"cannot allocate [\d,]+ bytes of shared memory: File too large", line)


def test_without_memory_for_segments_the_learner_plays_itself_and_says_so(tmp_path: Path) -> None:
    # Neither gradients nor a window of moves in a checkpoint would fit.
    alone = ["run.keep_checkpoints=1", "training.learners=1", "training.algorithm=ppo"]
    code = train(*SHORT, *alone, cwd=tmp_path, command=[*no_files_larger_than(60_000), KEISEI])
    assert code == 0, errors(tmp_path)
    said = output(tmp_path)
    assert re.search(
        r"worker 1 cannot be started \(.* bytes of shared memory: File too large\); restart", said
    )
    assert "no workers left: the learner plays serially" in said
    assert metrics(the_run(tmp_path))[-1]["step"] == 2048


def test_workers_that_cannot_start_end_the_run_with_their_exception(tmp_path: Path) -> None:
    code = train(*SHORT, cwd=tmp_path, command=[*TRAPPED, "failing workers", "0"])
    assert code == 1
    complaint = errors(tmp_path)
    assert "in the worker:" in complaint
    assert 'raise ZeroDivisionError("this worker cannot play")' in complaint
    assert "keisei: workers fail on startup: ZeroDivisionError: this worker cannot play" in complaint
    assert "the run is saved, resume with: keisei train --resume" in complaint
    assert last(the_run(tmp_path)).step == 0
    log = (the_run(tmp_path) / "train.log").read_text(encoding="utf-8")
    assert "Traceback (most recent call last):" in log
    assert 'raise ZeroDivisionError("this worker cannot play")' in log
    assert "  workers fail on startup: ZeroDivisionError: this worker cannot play; the run is saved" in log
    assert train("--resume", "latest", cwd=tmp_path) == 0, errors(tmp_path)
    assert last(the_run(tmp_path)).step == 2048
