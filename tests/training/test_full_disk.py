"""A disk that fills up during a run: what was learned is saved in space that was set aside for it."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sessions import errors, learner, wait_for
from training_runs import KEISEI, SMALL, keisei, last, metrics

from keisei.config.files import load_config
from keisei.runs.checkpoint import checkpoint_steps
from keisei.runs.run_directory import RESERVE
from keisei.training.machine_limits import checkpoint_bytes

SETTINGS = [*SMALL, "training.total_timesteps=1000000000", "evaluation.every=0", "run.loggers=[tensorboard]"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 100 MB; only root can mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100m", "none", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if mounted.returncode:
        pytest.skip(f"this user cannot mount a file system: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], timeout=60, check=True)


def fill(disk: Path) -> Path:
    """Take all the space that is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for _ in range(100):  # the run may take some of it meanwhile
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            with suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, free)
                return filler  # once: what the run frees from now on is its own
    raise AssertionError(f"{disk} cannot be filled: {free} bytes are free")


def leftovers(run: Path) -> list[str]:
    return [path.name for path in run.rglob(".tmp-*")]


@pytest.mark.parametrize("every", [0, 512], ids=["before the first checkpoint", "after some"])
def test_a_disk_that_fills_up_ends_the_run_with_a_checkpoint_and_it_goes_on(
    disk: Path, tmp_path: Path, every: int
) -> None:
    run = disk / "first"
    where = [f"run.directory={disk}", "run.name=first", f"run.checkpoint_every={every}"]
    with learner("train", "--config", "tiny", *SETTINGS, *where, cwd=tmp_path) as process:
        wait_for("moves/s", process, tmp_path)
        assert (run / RESERVE).stat().st_blocks * 512 >= checkpoint_bytes(load_config("tiny", SETTINGS))
        filler = fill(disk)
        assert process.wait(60) == 1
    (line,) = errors(tmp_path).splitlines()
    assert re.search(r"first/\S+: No space left on device \([\d.]+ MB are free now, [\d.]+ MB are n", line)
    assert line.endswith(f"; the run is saved, resume with: keisei train --resume {run}")
    assert leftovers(run) == []
    step = last(run).step
    assert step > 0

    full = keisei("train", "--resume", str(run), cwd=tmp_path)
    assert full.returncode == 2
    assert re.search(r"cannot be resumed: it needs [\d.]+ MB of disk, [\d.]+ MB are free\n$", full.stderr)

    filler.unlink()
    more = keisei("train", "--resume", str(run), f"training.total_timesteps={step + 512}", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    steps = [row["step"] for row in metrics(run)]
    assert steps == list(range(256, step + 512 + 1, 256)), "a row of metrics is missing"
    assert leftovers(run) == []


def test_what_another_program_takes_meanwhile_is_told_and_the_old_checkpoint_stays(
    disk: Path, tmp_path: Path
) -> None:
    run = disk / "first"
    where = [f"run.directory={disk}", "run.name=first", "run.checkpoint_every=512"]
    with learner("train", "--config", "tiny", *SETTINGS, *where, cwd=tmp_path) as process:
        wait_for("moves/s", process, tmp_path)
        while not checkpoint_steps(run / "checkpoints"):
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        (run / RESERVE).unlink()
        fill(disk)
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 1
    (line,) = errors(tmp_path).splitlines()
    step = last(run).step
    assert re.search(r"step_\d+ cannot be written: it needs [\d.]+ MB of disk, [\d.]+ MB are free; ", line)
    said = f"the newest checkpoint is of move {step:,}, resume with: keisei train --resume {run}"
    assert line.endswith(said)
    assert leftovers(run) == []


def test_the_space_is_given_back_at_the_end(tmp_path: Path) -> None:
    done = keisei("train", "--config", "tiny", "run.name=first", "evaluation.final_games=0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert leftovers(tmp_path / "runs" / "first") == []


def test_an_output_on_the_full_disk_too_is_no_reason_to_lose_the_run(disk: Path, tmp_path: Path) -> None:
    where = [f"run.directory={disk}", "run.name=first"]
    with (disk / "output").open("w") as stdout:
        process = subprocess.Popen(
            [KEISEI, "train", "--config", "tiny", *SETTINGS, *where],
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
    while not list(disk.glob("first/checkpoints/step_*")):
        time.sleep(0.01)
    fill(disk)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert len(stderr.splitlines()) == 1
    assert "the run is saved" in stderr
