"""Learners joined by torch.distributed: the run of one process to the bit; nobody waits for a lost rank."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sessions import PATIENCE, members
from training_runs import KEISEI, SEARCHING, SMALL, keisei, last, the_run

from keisei.runs.checkpoint import Checkpoint
from keisei.runs.find import run_started_by
from keisei.training.ranks import ALONE

pytestmark = pytest.mark.parallel

TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
WORKER = ["training.parallel.enabled=true", "training.parallel.episodes_per_worker=8"]
BEGIN = ["--config", "tiny", *SMALL, *WORKER, "evaluation.every=0", "evaluation.final_games=0"]
ONE_EACH = [*BEGIN, "training.parallel.num_workers=1", "training.learners=1"]
NOBODY = ["training.ranks.address=127.0.0.1:9", "training.ranks.world_size=2"]
Process = subprocess.Popen[str]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def started(name: str, command: list[str], cwd: Path, **more: str) -> Iterator[Process]:
    """Start a command in its own session, with its output in a file; at the end none of it may be left."""
    with (cwd / f"{name}.txt").open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, **more},
        )
        try:
            yield process
            process.wait(PATIENCE)
            deadline = time.monotonic() + 30
            while members(process.pid) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert not members(process.pid), f"processes of {name} are left"
        finally:
            for pid in members(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait(PATIENCE)


@contextmanager
def ranks(cwd: Path, *arguments: str, count: int = 2, timeout: float = 200.0) -> Iterator[list[Process]]:
    """Start ranks that meet at an address of the config."""
    meet = [f"training.ranks.address=127.0.0.1:{free_port()}", f"training.ranks.world_size={count}"]
    meet += [f"training.ranks.timeout={timeout}"]
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                started(
                    f"rank{rank}",
                    [KEISEI, "train", *arguments, *meet, f"training.ranks.rank={rank}"],
                    cwd,
                )
            )
            for rank in range(count)
        ]


def text(cwd: Path, name: str) -> str:
    return (cwd / f"{name}.txt").read_text(encoding="utf-8")


def wait_for(words: str, process: Process, cwd: Path, name: str = "rank0", times: int = 1) -> None:
    deadline = time.monotonic() + PATIENCE
    while text(cwd, name).count(words) < times:
        assert process.poll() is None, text(cwd, name)
        assert time.monotonic() < deadline, f"{name} does not say {words!r}: {text(cwd, name)}"
        time.sleep(0.01)


def parts(checkpoint: Checkpoint) -> dict[str, bytes]:
    """Everything that the training goes on from, without the config, which says how it was divided."""
    found = {
        f"{group}.{name}": tensor.numpy().tobytes()
        for group, tensors in checkpoint.tensors.items()
        for name, tensor in tensors.items()
    }
    state = {name: value for name, value in checkpoint.state.items() if name != "config"}
    return {**found, **checkpoint.blobs, "state": repr(sorted(state.items())).encode()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """One process with two workers that learn in two shares, like two ranks with one worker each."""
    cwd = tmp_path_factory.mktemp("one")
    two = ["training.parallel.num_workers=2", "training.learners=2"]
    done = keisei("train", *BEGIN, *two, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return parts(last(the_run(cwd)))


def test_two_ranks_train_as_one_process_does(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    with ranks(tmp_path, *ONE_EACH) as processes:
        assert [process.wait(PATIENCE) for process in processes] == [0, 0], text(tmp_path, "rank0")
    assert parts(last(the_run(tmp_path))) == undisturbed
    assert "rank" not in text(tmp_path, "rank1")
    assert re.search(r"workers: 3,072 moves generated = 3,072 trained on", text(tmp_path, "rank0"))


def test_torchrun_with_two_nodes_trains_as_one_process_does(
    undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    meet = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1"]
    meet += ["--master-port", str(free_port())]
    quiet = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(
                started(
                    f"node{node}",
                    [TORCHRUN, *meet, "--node-rank", str(node), "--no-python", KEISEI, "train", *ONE_EACH],
                    tmp_path,
                    **quiet,
                )
            )
            for node in range(2)
        ]
        assert [node.wait(PATIENCE) for node in nodes] == [0, 0], text(tmp_path, "node0")
    assert parts(last(the_run(tmp_path))) == undisturbed


def test_three_ranks_without_workers_train_and_resume_as_one_rank(tmp_path: Path) -> None:
    serial = ["--config", "tiny", *SMALL, *SEARCHING, "training.games=4", "training.total_timesteps=1024"]
    serial += ["evaluation.every=0", "evaluation.final_games=0"]
    with ranks(tmp_path, *serial, "run.name=three", count=3) as processes:
        assert [process.wait(PATIENCE) for process in processes] == [0, 0, 0], text(tmp_path, "rank0")
    first = last(tmp_path / "runs" / "three")
    assert set(first.blobs) == {"games_0", "games_1", "games_2"}
    assert len(first.tensors["window"]["actions"]) == 700  # moves of all ranks
    done = keisei("train", "--resume", "three", "training.total_timesteps=2048", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the saved games do not match the configured number of games" in done.stdout
    assert last(tmp_path / "runs" / "three").step >= 2048


@pytest.mark.parametrize(("killed", "how"), [(1, signal.SIGKILL), (1, signal.SIGTERM), (0, signal.SIGTERM)])
def test_a_rank_that_ends_ends_all_and_the_run_goes_on_exactly(
    killed: int, how: signal.Signals, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    with ranks(tmp_path, *ONE_EACH) as processes:
        wait_for("moves/s", processes[0], tmp_path)
        processes[killed].send_signal(how)
        codes = [process.wait(PATIENCE) for process in processes]
    said = [text(tmp_path, f"rank{rank}") for rank in range(2)]
    assert codes[killed] == (-how if how == signal.SIGKILL else 128 + how)
    assert codes[1 - killed] == 1
    assert "another rank has ended or is silent" in said[1 - killed]
    assert "Traceback" not in said[0] + said[1]
    assert "resume with: keisei train --resume runs/" in said[0]
    assert 0 < last(the_run(tmp_path)).step < 6144
    with ranks(tmp_path, "--resume", "latest") as processes:
        assert [process.wait(PATIENCE) for process in processes] == [0, 0], text(tmp_path, "rank0")
    assert parts(last(the_run(tmp_path))) == undisturbed


def test_the_others_end_when_the_first_rank_is_killed(tmp_path: Path) -> None:
    with ranks(tmp_path, *ONE_EACH) as processes:
        wait_for("moves/s", processes[0], tmp_path)
        processes[0].kill()
        assert processes[1].wait(PATIENCE) == 1
    assert "keisei: rank 1: another rank has ended or is silent" in text(tmp_path, "rank1")
    assert "Traceback" not in text(tmp_path, "rank1")


def test_a_silent_rank_is_not_waited_for_longer_than_the_timeout(tmp_path: Path) -> None:
    with ranks(tmp_path, *ONE_EACH, timeout=20.0) as processes:  # more than a busy machine takes
        wait_for("moves/s", processes[0], tmp_path)
        processes[1].send_signal(signal.SIGSTOP)
        assert processes[0].wait(PATIENCE) == 1
        processes[1].kill()
    assert "another rank has ended or is silent" in text(tmp_path, "rank0")
    assert "the run is saved, resume with" in text(tmp_path, "rank0")


def test_torchrun_restarts_lost_ranks_and_the_run_goes_on_exactly(
    undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    command = [TORCHRUN, "--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--no-python"]
    with started(
        "torchrun", [*command, KEISEI, "train", *ONE_EACH], tmp_path, OMP_NUM_THREADS="1"
    ) as process:
        wait_for("seed 1", process, tmp_path, "torchrun")
        second = subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()[1]
        os.kill(int(second), signal.SIGKILL)
        assert process.wait(PATIENCE) == 0, text(tmp_path, "torchrun")
    assert text(tmp_path, "torchrun").count("seed 1") == 2, "it was started twice"
    assert parts(last(the_run(tmp_path))) == undisturbed


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (["training.ranks.world_size=2"], "world_size 2 needs an address where ranks meet"),
        (
            ["training.ranks.address=127.0.0.1:1", "training.ranks.rank=1"],
            "rank 1 must be below world_size 1",
        ),
        (["training.ranks.address=nowhere"], "training.ranks.address: given nowhere"),
        (["training.ranks.address=127.0.0.1:65536"], "has a port above 65535"),
        (
            ["training.ranks.address=host.invalid:9", "training.ranks.world_size=2"],
            "training.ranks: rank 0 of 2 cannot join: ",
        ),
        (
            [*NOBODY, "training.ranks.rank=1", "training.ranks.timeout=1"],
            "training.ranks: rank 1 of 2 cannot join: ",
        ),
    ],
)
def test_ranks_that_cannot_meet_are_one_line(settings: list[str], error: str, tmp_path: Path) -> None:
    done = keisei("train", "--config", "tiny", *settings, cwd=tmp_path)
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("keisei: ")
    assert error in line
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_first_rank_that_cannot_begin_ends_the_others_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "runs" / "taken").mkdir(parents=True)
    (tmp_path / "runs" / "taken" / "run.json").write_text("{}", encoding="utf-8")
    with ranks(tmp_path, *ONE_EACH, "run.name=taken") as processes:
        assert [process.wait(PATIENCE) for process in processes] == [2, 1]
    for rank in range(2):
        assert text(tmp_path, f"rank{rank}").splitlines()[-1].startswith("keisei: ")
        assert "Traceback" not in text(tmp_path, f"rank{rank}")


def test_a_restart_goes_on_with_its_own_run_only(tmp_path: Path) -> None:
    for name, parent, steps in (("a", 7, "0"), ("b", 8, "0"), ("c", 7, "")):
        run = tmp_path / name
        (run / "checkpoints").mkdir(parents=True)
        (run / "run.json").write_text(json.dumps({"parent": parent, "resumed": []}), encoding="utf-8")
        if steps:
            checkpoint = run / "checkpoints" / "step_000000000000"
            checkpoint.mkdir()
            (checkpoint / "manifest.json").touch()
    assert run_started_by(tmp_path, 7) == tmp_path / "a", "c has no checkpoint"
    assert run_started_by(tmp_path, 8) == tmp_path / "b"
    assert run_started_by(tmp_path, 9) is None
    (tmp_path / "a" / "run.json").write_text('{"resumed": [{"parent": 9}]}', encoding="utf-8")
    assert run_started_by(tmp_path, 9) == tmp_path / "a"


def test_alone_there_is_nobody_to_ask() -> None:
    assert (ALONE.rank, ALONE.world_size) == (0, 1)
    with ALONE as ranks_:
        assert ranks_ is ALONE
