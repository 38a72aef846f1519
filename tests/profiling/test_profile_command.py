"""`keisei profile` as a user runs it: real trainings, real workers, real files."""

import json
import os
import pstats
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keisei.cli import main
from keisei.config.files import load_config
from keisei.core.learning_agent import NotFiniteError
from keisei.profiling.attach import look_at
from keisei.profiling.measurements import Profile, ProfileError, read_profile
from keisei.profiling.passes import run_pass
from keisei.profiling.profile import settings_for
from keisei.profiling.stacks import is_py_spy_allowed
from keisei.runs.checkpoint import CheckpointError
from keisei.training.parallel.communication import Failure
from keisei.training.parallel.supervisor import WorkerError

ROOT = Path(__file__).parents[2]
KEISEI = str(Path(sys.executable).with_name("keisei"))
MOVES = ["--config", "tiny", "--timesteps", "2048"]
MORE_MOVES = ["--config", "tiny", "--timesteps", "8192"]  # long enough to meet each worker at work


def run(*command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the profile of a training with two workers in `two`."""
    folder = tmp_path_factory.mktemp("profiles")
    parallel = ["--mode", "parallel", "--workers", "2", "--out", "two"]
    done = run(KEISEI, "profile", *MORE_MOVES, *parallel, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Where the time goes: parallel, 2 workers, ")
    assert done.stdout.endswith(f"\n{Path('two') / 'report.md'}\n")
    assert "pass 3 of 3, functions: 8,192 moves" in done.stderr
    return folder


@pytest.fixture(scope="module")
def two(folder: Path) -> Profile:
    return read_profile(folder / "two")


@pytest.mark.parallel
def test_every_process_has_its_phases_in_wall_and_cpu_seconds(two: Profile) -> None:
    learner, *workers = two.processes
    assert [process.name for process in two.processes] == ["learner", "worker 0", "worker 1"]
    assert len({process.pid for process in two.processes}) == 3
    assert {"collect", "update", "encode", "synchronize", "other"} <= set(learner.wall)
    for worker in workers:
        assert {"env", "inference", "sampling", "transport", "wait"} <= set(worker.wall)
        assert set(worker.wall) == set(worker.cpu)
        assert worker.cpu["inference"] > worker.cpu["wait"]
        assert worker.wall["wait"] > worker.cpu["wait"]
    assert learner.cpu["update"] > learner.cpu["collect"]


@pytest.mark.parallel
def test_phases_add_up_to_the_measured_time_which_leaves_out_the_first_update(two: Profile) -> None:
    assert (two.moves, two.updates, two.skipped) == (7680, 15, 1)
    # On a busy machine the process may have to wait for a core between two phases.
    assert sum(two.processes[0].wall.values()) == pytest.approx(two.seconds, rel=2e-2)
    assert sum(two.timeline.values()) == pytest.approx(two.seconds, rel=2e-2)
    assert "evaluation" not in two.timeline
    assert two.start_seconds > 0


@pytest.mark.parallel
def test_functions_of_every_process_and_of_all_are_there_for_snakeviz(folder: Path, two: Profile) -> None:
    stats = {
        name: pstats.Stats(str(folder / "two" / "functions" / f"{name}.prof"))
        for name in ("learner", "worker_000", "worker_001", "merged")
    }

    def calls(name: str, function: str) -> int:
        rows = stats[name].stats.items()  # type: ignore[attr-defined]
        return sum(row[1] for (_, _, found), row in rows if found == function)

    assert calls("learner", "perform_update") == calls("merged", "perform_update") == 16
    assert calls("learner", "rollout") == 0
    assert calls("merged", "rollout") == calls("worker_000", "rollout") + calls("worker_001", "rollout") == 32
    assert two.functions.keys() == {"learner", "workers together"}
    stacks = "native_stacks" if is_py_spy_allowed() else "python_stacks"
    assert two.speeds.keys() == {"phases", "functions", stacks}


@pytest.mark.parallel
def test_the_flame_graph_shows_the_learner_and_every_worker(folder: Path) -> None:
    svg = (folder / "two" / "flame.svg").read_text()
    names = {group.get("data-n", "") for group in ET.fromstring(svg).iter()}
    assert {"learner", "worker 0", "worker 1"} <= names
    assert any(name.startswith("LearningAgent.learn (keisei") for name in names)
    assert any(name.startswith("SelfPlay.rollout (keisei") for name in names)
    if is_py_spy_allowed():
        assert any("libtorch" in name for name in names)


@pytest.mark.parallel
def test_memory_of_every_process_is_there_over_time(two: Profile) -> None:
    assert {memory.name for memory in two.memory} == {"learner", "worker 0", "worker 1"}
    for memory in two.memory:
        assert len(memory.samples) >= (2 if memory.name == "learner" else 1)
        assert all(10_000_000 < size < 10_000_000_000 for _, size in memory.samples)


@pytest.mark.parallel
def test_the_script_profiles_serially_compares_and_records_kernels(folder: Path) -> None:
    script = str(ROOT / "scripts" / "profile_training.py")
    done = run(
        *(
            sys.executable,
            script,
            "--mode",
            "serial",
            *MOVES,
            "--out",
            "one",
            "--against",
            "two",
            "--kernels",
        ),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    report = (folder / "one" / "report.md").read_text()
    assert "## Against the profile of 20" in report
    assert "- Not the same mode: earlier parallel, 2 workers, now serial, 0 workers" in report
    one = read_profile(folder / "one")
    assert {"env", "inference", "sampling", "encode", "update"} <= set(one.timeline)
    assert "collect" not in one.timeline
    assert [process.name for process in one.processes] == ["learner"]
    assert "aten::" in (folder / "one" / "kernels" / "learner.kernels.txt").read_text()
    assert (folder / "one" / "kernels" / "learner.trace.json.gz").stat().st_size > 1000


@pytest.mark.parallel
def test_without_any_permission_every_process_samples_its_own_python_stacks(tmp_path: Path) -> None:
    # Large enough for a worker to be met while it plays.
    large = load_config("tiny", ["model.blocks=4", "model.channels=64"])
    config = settings_for(large, "parallel", 1, 1024, evaluation=False)
    found = run_pass(config, "python_stacks", tmp_path / "stacks")
    assert found.stacks.keys() == {"learner", "worker 0"}
    assert any("SelfPlay.rollout (keisei/core/self_play.py)" in stack for stack in found.stacks["worker 0"])
    assert any(
        "LearningAgent.learn (keisei/core/learning_agent.py)" in stack for stack in found.stacks["learner"]
    )
    innermost = {stack.rpartition(";")[2].partition(" (")[0] for stack in found.stacks["worker 0"]}
    assert not innermost & {"WorkerEnd.receive", "wait"}


def test_evaluation_is_played_only_if_asked_for(tmp_path: Path) -> None:
    done = run(
        *(KEISEI, "profile", "--config", "tiny", "--timesteps", "1024", "--evaluation", "--out", "p"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert {"evaluation", "checkpoint"} <= set(read_profile(tmp_path / "p").timeline)
    assert (tmp_path / "p" / "run" / "checkpoints").is_dir()


@pytest.fixture
def training(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a training that has made some updates, and end it afterwards."""
    long = ["training.total_timesteps=100000000", "evaluation.every=0", "run.name=long", "run.console=off"]
    with subprocess.Popen([KEISEI, "train", "--config", "tiny", *long], cwd=tmp_path) as process:
        try:
            metrics, deadline = tmp_path / "runs" / "long" / "metrics.jsonl", time.monotonic() + 120
            while not (metrics.exists() and len(metrics.read_bytes().splitlines()) > 3):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield process
        finally:
            process.kill()


def test_a_training_that_runs_is_looked_at_from_outside_and_goes_on(
    tmp_path: Path, training: "subprocess.Popen[bytes]"
) -> None:
    pid = str(training.pid)
    done = run(KEISEI, "profile", "--pid", pid, "--seconds", "8", "--out", "live", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert training.poll() is None
    live = read_profile(tmp_path / "live")
    assert {"env", "inference", "update"} <= set(live.timeline)
    assert live.updates >= 1  # on a busy machine too
    assert live.processes[0].pid == training.pid
    assert "CPU seconds" in (tmp_path / "live" / "report.md").read_text()
    if is_py_spy_allowed():
        assert "LearningAgent.learn (keisei" in (tmp_path / "live" / "stacks.txt").read_text()
    refused = run(KEISEI, "profile", "--pid", pid, "--out", "live", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == "keisei: live exists already; give a new folder with --out\n"


def test_without_py_spy_a_running_training_is_watched_all_the_same(
    tmp_path: Path, training: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "nothing"))
    told: list[str] = []
    live, stacks = look_at(training.pid, 6, tmp_path / "live", command=["test"], tell=told.append)
    assert stacks == {}
    assert "No flame graph: py-spy is not installed: pip install py-spy" in live.notes
    assert len(live.memory[0].samples) >= 2
    assert told[0].endswith("for 6 s")


def test_updates_from_before_the_look_are_not_counted(
    tmp_path: Path, training: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "nothing"))
    training.send_signal(signal.SIGSTOP)  # as slow as a training can be
    expected = r"long finished fewer than two updates in 0.5 s; watch longer: --seconds 2$"
    with pytest.raises(ProfileError, match=expected):
        look_at(training.pid, 0.5, tmp_path / "live", command=["test"], tell=lambda _: None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pid", "1", "--workers", "2"], "--pid looks at a training as it is"),
        (["--seconds", "3"], "--seconds is for --pid"),
        (["--pid", str(2**22 + 1)], "there is no process 4194305"),
        (["--pid", str(os.getpid())], "is not a training"),
        (["--mode", "serial", "--workers", "2"], "--workers 2 needs --mode parallel"),
        (["--against", "missing"], "missing cannot be read as a profile"),
        (["--workers", "0"], "--workers"),
        (["--mode", "both"], "--mode"),
        (["model.chanels=3"], "model.chanels"),
        (
            ["training.total_timesteps=8192"],
            "training.total_timesteps does not apply to a profile; use --timesteps 8192",
        ),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(KEISEI, "profile", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("keisei: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


MINIBATCH: Any = None
WORKER_FAILS = WorkerError(Failure("ValueError: no board", "Traceback of the worker"))


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (NotFiniteError("loss/total nan", MINIBATCH), ["loss/total nan"]),
        (OSError(28, "No space left on device"), ["[Errno 28] No space left on device"]),
        (CheckpointError("checkpoint 512 is damaged"), ["checkpoint 512 is damaged"]),
        (WORKER_FAILS, ["workers fail on startup: ValueError: no board", "Traceback of the worker"]),
    ],
)
def test_a_training_that_fails_exits_as_train_does_and_leaves_nothing(
    error: Exception,
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object, __: object, folder: Path, **___: object) -> None:
        folder.mkdir()
        raise error

    monkeypatch.setattr("keisei.profiling.profile.run_pass", fail)
    monkeypatch.setattr("sys.argv", ["keisei", "profile", *MOVES, "--out", str(tmp_path / "new" / "out")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.splitlines()[-1] == f"keisei: pass 1 of 3, phases: {lines[0]}; nothing is kept"
    assert all(line in said for line in lines)
    assert ("Traceback" in said) == isinstance(error, WorkerError)
    assert list(tmp_path.iterdir()) == []


def test_after_ctrl_c_the_same_command_can_be_given_again(tmp_path: Path) -> None:
    command = [KEISEI, "profile", "--config", "tiny", "--timesteps", "1000000", "--out", "out"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A shell may have set Ctrl-C to be ignored; a terminal does not.
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "pass 1 of 3, phases: 1,000,000 moves\n"
        deadline = time.monotonic() + 60
        while not (tmp_path / "out" / "phases").is_dir():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    done = run(KEISEI, "profile", *MOVES, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "keisei: out exists already; give a new folder with --out\n"
    assert (tmp_path / "out" / "mine").exists()


@pytest.mark.parallel
def test_the_report_is_plain_json(folder: Path) -> None:
    data = json.loads((folder / "two" / "report.json").read_text())
    assert data["format"] == 1
    assert data["provenance"]["command"][1] == "profile"
