"""Full disks, read-only disks and kills: what was saved stays, and the error names the path."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import IO

import pytest
import torch
from checkpoint_samples import assert_same, files_no_longer_than, tiny

from keisei.runs import checkpoint as checkpoints
from keisei.runs.checkpoint import (
    Checkpoint,
    CheckpointError,
    best_checkpoint,
    newest_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)


def can_mount() -> bool:
    """Return whether a test can mount its own small file system on this machine."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except FileNotFoundError:
        return False


def on_a_disk(options: str, place: Path, code: str) -> str:
    """Run code in a separate process with its own file system at `place`, and return its output."""
    place.mkdir()
    program = f"""
import os, subprocess, sys, torch
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from checkpoint_samples import tiny
from keisei.runs.checkpoint import *
place = Path({str(place)!r})
subprocess.run(["mount", "-t", "tmpfs", "-o", {options!r}, "none", place], check=True)
def attempt(checkpoint):
    try:
        save_checkpoint(place, checkpoint)
    except CheckpointError as error:
        print(error)
{textwrap.dedent(code)}
print(sorted(os.listdir(place)), newest_checkpoint(place)[0].step)
"""
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_mount = pytest.mark.skipif(not can_mount(), reason="this machine lets nobody mount a file system")


@needs_mount
def test_a_disk_without_room_is_seen_before_anything_is_written(tmp_path: Path) -> None:
    code = """
    attempt(tiny(1))
    attempt(Checkpoint(2, {"weights": {"w": torch.zeros(1 << 20)}}, {}, {}))
    """
    error, found = on_a_disk("size=6m", tmp_path / "disk", code).splitlines()
    assert error.startswith(f"checkpoint {tmp_path}/disk/step_000000000002 cannot be written: it needs 8")
    assert error.endswith("are free")
    assert found == "['step_000000000001'] 1"


@needs_mount
def test_a_disk_that_is_full_after_all_leaves_the_old_checkpoint_and_nothing_else(tmp_path: Path) -> None:
    # Room for the bytes, but only for 9 files: the root, a checkpoint of 5 and part of the next.
    code = """
    attempt(tiny(1))
    attempt(tiny(2))
    """
    error, found = on_a_disk("size=64m,nr_inodes=9", tmp_path / "disk", code).splitlines()
    assert error.startswith(f"checkpoint {tmp_path}/disk/step_000000000002 cannot be written: No space left")
    assert found == "['step_000000000001'] 1"


@needs_mount
def test_a_read_only_disk_is_named(tmp_path: Path) -> None:
    code = """
    attempt(tiny(0))
    attempt(tiny(1))
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    attempt(tiny(2))
    try:
        mark_best(place, 1, 0.5)
    except CheckpointError as error:
        print(error)
    try:
        prune_checkpoints(place, 1)
    except CheckpointError as error:
        print(error)
    """
    save, best, prune, found = on_a_disk("size=64m", tmp_path / "disk", code).splitlines()
    assert save.startswith(f"checkpoint {tmp_path}/disk/step_000000000002 cannot be written: Read-only file")
    assert best.startswith(f"{tmp_path}/disk/best.json cannot be written: Read-only file system")
    assert prune.startswith(f"{tmp_path}/disk cannot be pruned: Read-only file system")
    assert found == "['step_000000000000', 'step_000000000001'] 1"


def test_a_write_that_fails_halfway_leaves_the_old_checkpoint_and_nothing_else(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, tiny(1))
    for step in (1, 2):
        with (
            files_no_longer_than(100_000),
            pytest.raises(CheckpointError, match=f"step_00000000000{step} cannot be written: File too large"),
        ):
            save_checkpoint(tmp_path, Checkpoint(step, {"weights": {"w": torch.zeros(100_000)}}, {}, {}))
    assert os.listdir(tmp_path) == ["step_000000000001"]
    assert_same(newest_checkpoint(tmp_path)[0], tiny(1))


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere: No such file or directory"):
        save_checkpoint(tmp_path / "nowhere", tiny())
    with pytest.raises(CheckpointError, match=r"/proc/step_000000000007 cannot be written: "):
        save_checkpoint(Path("/proc"), tiny())


def test_the_margin_is_kept_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MARGIN_BYTES", 1 << 60)
    with pytest.raises(CheckpointError, match=r"cannot be written: it needs [\d,.]{19} MB of disk"):
        save_checkpoint(tmp_path, tiny())


SAVER = """
import os, sys, torch
from pathlib import Path
from keisei.runs.checkpoint import *
parent = Path(sys.argv[1])

def save_forever():
    print(os.getpid(), flush=True)
    torch.set_num_threads(1)
    step = newest_checkpoint(parent)[0].step if checkpoint_steps(parent) else 0
    while True:
        step += 1
        tensors = {"weights": {"w": torch.full((20_000,), float(step))}}
        for turn in (1, 2):  # twice with another content, so that replacing is killed too
            save_checkpoint(parent, Checkpoint(step, tensors, {"games": bytes(9000)}, {"turn": turn}))
            print(step, turn, flush=True)
        mark_best(parent, step, float(step))
        prune_checkpoints(parent, 2)

for _ in sys.stdin:  # the process that saves is a child of this one, which has loaded torch already
    child = os.fork()
    if child == 0:
        save_forever()
    print(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def read_pair(lines: IO[str]) -> tuple[int, int]:
    """Return the step and turn of a saved checkpoint, or 0 and the exit code of the process."""
    first, second = lines.readline().split()
    return int(first), int(second)


def test_a_kill_at_any_moment_leaves_the_last_acknowledged_checkpoint_or_a_newer_one(tmp_path: Path) -> None:
    moments = random.Random(5)
    acknowledged = (0, 0)
    with subprocess.Popen(
        [sys.executable, "-c", SAVER, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as savers:
        assert savers.stdin is not None
        assert savers.stdout is not None
        for number in range(20):
            savers.stdin.write("one more\n")
            pid = int(savers.stdout.readline())
            if number % 2 == 0:  # at least one, however slow the disk
                acknowledged = read_pair(savers.stdout)
                assert acknowledged > (0, 2), "it ended by itself"
            time.sleep(moments.uniform(0.0, 0.2))
            os.kill(pid, signal.SIGKILL)
            while (pair := read_pair(savers.stdout))[0] != 0:
                acknowledged = pair
            assert pair == (0, -signal.SIGKILL)
            newest, notices = newest_checkpoint(tmp_path)
            assert notices == []
            assert (newest.step, newest.state["turn"]) >= acknowledged
            assert newest.tensors["weights"]["w"].eq(newest.step).all()
            best = best_checkpoint(tmp_path)
            assert best is None or best[1] == best[0] <= newest.step
        savers.stdin.close()
    save_checkpoint(tmp_path, tiny(10**6))
    prune_checkpoints(tmp_path, 1)
    assert sorted(os.listdir(tmp_path)) == ["best.json", "step_000001000000"]
