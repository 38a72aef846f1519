"""The directory of a run: made once, locked by one process, found again."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from checkpoint_samples import files_no_longer_than, tiny

from keisei.config.config_errors import ConfigError
from keisei.config.schema import AppConfig, RunConfig
from keisei.runs.checkpoint import save_checkpoint
from keisei.runs.durable import write_durably
from keisei.runs.provenance import git_state
from keisei.runs.run_directory import RunDirectory, RunDirectoryError

NOW = datetime(2025, 11, 16, 14, 5, 9, tzinfo=UTC)
COMMAND = ["keisei", "train", "run.seed=5"]


def begin(parent: Path, name: str | None = None, needed_bytes: int = 0) -> RunDirectory:
    config = AppConfig(run=RunConfig(directory=str(parent), name=name, seed=5))
    return RunDirectory.create(
        config, config_text="run:\n  seed: 5\n", command=COMMAND, now=NOW, needed_bytes=needed_bytes
    )


def resume(path: Path) -> RunDirectory:
    run = RunDirectory.open(path)
    command = ["keisei", "train", "--resume", "latest"]
    run.note_resumption(config_text="run:\n  seed: 6\n", command=command, now=NOW)
    return run


# Beginning


def test_a_new_run_has_its_config_and_says_where_it_comes_from(tmp_path: Path) -> None:
    with begin(tmp_path / "deep" / "runs") as run:
        assert run.path == tmp_path / "deep" / "runs" / "2025-11-16_14-05-09"
        assert run.config_file.read_text() == "run:\n  seed: 5\n"
        assert (run.path / "lock").read_text() == f"{os.getpid()}\n"
        assert run.checkpoints.is_dir()
        assert run.plots.is_dir()
        assert run.metrics_file == run.path / "metrics.jsonl"
        assert run.tensorboard == run.path / "tensorboard"
        described = json.loads(run.run_file.read_bytes())
    assert (described["seed"], described["command"], described["resumed"]) == (5, COMMAND, [])
    assert datetime.fromisoformat(described["time"]) == NOW
    assert described["versions"].keys() == {"python", "keisei", "torch", "numpy"}
    assert described["versions"]["python"] == platform.python_version()
    assert described["cores"] == os.cpu_count()
    assert {"platform", "git", "pid"} <= described.keys()
    assert not [name for name in os.listdir(run.path) if name.startswith(".tmp-")]


def test_runs_of_the_same_second_are_numbered(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        with begin(tmp_path) as run:
            names.append(run.path.name)
    assert names == ["2025-11-16_14-05-09", "2025-11-16_14-05-09-2", "2025-11-16_14-05-09-3"]


def test_a_directory_that_holds_a_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    with begin(tmp_path, "fast") as run:
        save_checkpoint(run.checkpoints, tiny())
    before = sorted(path for path in run.path.rglob("*"))
    with pytest.raises(RunDirectoryError) as refusal:
        begin(tmp_path, "fast")
    assert str(refusal.value) == (
        f"{tmp_path}/fast already holds a run; resume it with --resume latest or choose another run.name"
    )
    assert sorted(path for path in run.path.rglob("*")) == before
    assert json.loads(run.run_file.read_bytes())["resumed"] == []


def test_a_run_without_a_checkpoint_is_not_said_to_be_continued(tmp_path: Path) -> None:
    begin(tmp_path, "fast").close()
    with pytest.raises(
        RunDirectoryError, match=r"fast holds a run without a checkpoint; remove it or choose"
    ):
        begin(tmp_path, "fast")


def test_a_directory_with_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").touch()
    with pytest.raises(
        RunDirectoryError, match=r"photos holds something other than a run; remove it or choose"
    ):
        begin(tmp_path, "photos")
    assert os.listdir(tmp_path / "photos") == ["cat.png"]


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "lock").write_text("123456789012\n")  # left by a process that was killed at once
    (tmp_path / "fast" / ".tmp-config.yaml-0").touch()
    with begin(tmp_path, "fast") as run:
        assert (run.path / "lock").read_text() == f"{os.getpid()}\n"
        assert set(os.listdir(run.path)) == {"lock", "config.yaml", "run.json", "checkpoints", "plots"}


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "/abs", ".hidden", "nul\0"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    config = AppConfig(run=RunConfig(directory=str(tmp_path / "runs")))
    config.run.name = name  # after loading, which would reject it too
    with pytest.raises(ConfigError, match=r"name"):
        RunDirectory.create(config, config_text="", command=COMMAND, now=NOW)
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for parent, words in [
        (tmp_path / "file", "it is a file, expected a directory"),
        (tmp_path / "file" / "runs", "Not a directory"),
        (Path("/proc/keisei"), "No such file or directory"),
        (Path("/proc"), "No such file or directory"),
    ]:
        with pytest.raises(RunDirectoryError) as refusal:
            begin(parent)
        assert str(refusal.value).startswith(f"cannot start a run in {parent}: {words}")


def test_a_disk_without_room_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"it needs 1,152,921,504,606\.8 MB of disk, [\d,.]+ MB are"):
        begin(tmp_path / "deep" / "runs", needed_bytes=1 << 60)
    assert os.listdir(tmp_path) == []


def test_a_beginning_that_fails_leaves_no_half_run(tmp_path: Path) -> None:
    with files_no_longer_than(100), pytest.raises(RunDirectoryError) as refusal:  # run.json is longer
        begin(tmp_path / "runs", "fast")
    file = tmp_path / "runs" / "fast" / "run.json"
    assert str(refusal.value) == f"cannot start a run in {file.parents[1]}: File too large ({file})"
    assert os.listdir(tmp_path) == []


def test_a_run_that_has_saved_nothing_can_be_removed_and_no_other(tmp_path: Path) -> None:
    with begin(tmp_path / "runs", "fast") as run:
        run.log_file.write_text("it begins")
        run.remove_if_unsaved()
    assert os.listdir(tmp_path) == []
    with begin(tmp_path, "fast") as run:
        save_checkpoint(run.checkpoints, tiny(100))
        run.remove_if_unsaved()
    assert (tmp_path / "fast" / "run.json").is_file()


# Continuing


def test_each_resumption_is_appended(tmp_path: Path) -> None:
    begin(tmp_path, "fast").close()
    first = json.loads((tmp_path / "fast" / "run.json").read_bytes())
    for number in (1, 2):
        with resume(tmp_path / "fast") as run:
            described = json.loads(run.run_file.read_bytes())
        assert {**described, "resumed": []} == first
        assert [entry["command"][-1] for entry in described["resumed"]] == ["latest"] * number
        assert described["resumed"][-1].keys() == first.keys() - {"seed", "resumed"}
    assert run.config_file.read_text() == "run:\n  seed: 6\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"resumed": 1}', "\x00"])
def test_a_damaged_description_is_named(tmp_path: Path, text: str) -> None:
    begin(tmp_path, "fast").close()
    (tmp_path / "fast" / "run.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=r"fast/run.json (is|does) not "):
        resume(tmp_path / "fast")
    assert (tmp_path / "fast" / "run.json").read_text() == text


def test_what_is_no_run_is_not_continued(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"is not a run: it has no run.json"):
        resume(tmp_path)
    assert os.listdir(tmp_path) == []


# The lock

HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_run_directory import *
with begin(Path(sys.argv[2])) as run:
    print(run.path, flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_the_pid_of_the_first_until_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, Path(__file__).parent, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        path = Path(first.stdout.readline().strip())
        before = (path / "run.json").read_bytes()
        with pytest.raises(RunDirectoryError) as refusal:
            resume(path)
        assert str(refusal.value) == f"run {path} is in use by process {first.pid}; wait or stop it"
        with pytest.raises(RunDirectoryError) as refusal:
            begin(tmp_path, path.name)
        assert str(refusal.value) == f"run {path} is in use by process {first.pid}; wait or stop it"
        assert (path / "run.json").read_bytes() == before
        first.send_signal(signal.SIGSTOP)  # silent, but alive
        with pytest.raises(RunDirectoryError, match=f"process {first.pid};"):
            resume(path)
        first.kill()
        first.wait()
        with resume(path):
            assert (path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_closed_run_is_free_even_if_a_child_has_inherited_it(tmp_path: Path) -> None:
    run = begin(tmp_path)
    with pytest.raises(RunDirectoryError, match=f"in use by process {os.getpid()};"):
        resume(run.path)
    assert run._lock is not None
    with subprocess.Popen(["sleep", "60"], pass_fds=[run._lock]) as child:
        run.close()
        run.close()
        resume(run.path).close()
        child.kill()


# Small files, and the commit


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    write_durably(tmp_path / "file", b"old")
    write_durably(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_durably(tmp_path / "folder", b"new")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def git(tree: Path, *arguments: str) -> str:
    # Without this machine's git settings, and with an author for the commits.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tree),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(
        ["git", *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_of_the_source_tree_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git_state(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    assert git_state(tmp_path) is None  # nothing was committed
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "module.py").touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "inside" / "module.py").write_text("changed")
    assert git_state(tmp_path) == {"commit": commit, "dirty": True}
    assert git_state(tmp_path / "inside") is None  # like a package inside some other checkout
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert git_state(tmp_path) == {"commit": commit, "dirty": True}
    monkeypatch.setenv("PATH", "")
    assert git_state(tmp_path) is None
