"""The directory of a run: what it holds, and who may write there.

    runs/2025-11-16_14-05-09/
      config.yaml        the settings, as of the last resume
      run.json           seed, command, versions, machine, commit; and every resume
      lock               held by the training process, with its pid
      checkpoints/  metrics.jsonl  tensorboard/  plots/  train.log
      ray.log            what Ray has said, if a cluster plays
      games/             training games, if run.keep_games says so
      live_games.json    games in progress, while somebody watches; watching: touched by who does
      set_aside/         what came after the older checkpoint that the run was resumed from

A RunDirectory holds the lock until `close`, or until its process ends in whatever way. Reading, as in
keisei.runs.find and keisei.runs.checkpoint, needs no lock.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from keisei.config.schema import AppConfig, validated
from keisei.errors import UserError
from keisei.runs import durable
from keisei.runs.checkpoint import (
    BEST,
    best_checkpoint,
    checkpoint_path,
    checkpoint_steps,
    settle_replaced,
)
from keisei.runs.find import CHECKPOINTS, RUN, has_checkpoint
from keisei.runs.kept_games import kept_games
from keisei.runs.provenance import provenance

CONFIG, LOCK = "config.yaml", "lock"
RESERVE = f"{durable.TEMPORARY}reserve"  # worthless without its process, like all of these
NEEDED_BYTES = 64 << 20  # a few small checkpoints and a long run's metrics; assumption, not studied


class RunDirectoryError(UserError):
    """A run that cannot be started or resumed; the message names the path and says what to do."""


class RunDirectory:
    """The directory of a run, locked for this process; a context manager."""

    def __init__(self, path: Path, lock: int, made_for_it: Sequence[Path] = ()) -> None:
        """Hold a locked directory. made_for_it: the directories above that are new too, innermost first."""
        self.path = path
        self._lock: int | None = lock
        self._made_for_it = made_for_it
        self.config_file = path / CONFIG
        self.run_file = path / RUN
        self.checkpoints = path / CHECKPOINTS
        self.metrics_file = path / "metrics.jsonl"
        self.log_file = path / "train.log"
        self.tensorboard = path / "tensorboard"
        self.plots = path / "plots"
        self.games = path / "games"
        self._reserve = path / RESERVE

    @classmethod
    def create(
        cls,
        config: AppConfig,
        *,
        config_text: str,
        command: Sequence[str],
        now: datetime,
        needed_bytes: int = NEEDED_BYTES,
    ) -> Self:
        """Make the directory of a new run, `<run.directory>/<run.name, or the date and time>`."""
        config = validated(config)
        parent = Path(config.run.directory)
        if parent.exists() and not parent.is_dir():
            raise RunDirectoryError(f"cannot start a run in {parent}: it is a file, expected a directory")
        missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
        try:
            parent.mkdir(parents=True, exist_ok=True)
            _check_room(parent, needed_bytes)
            path = _new_directory(parent, config.run.name, now)
            run = cls(path, _locked_if_empty(path), missing)
            try:
                durable.sync_directory(parent)
                run._prepare()
                durable.write_durably(run.config_file, config_text.encode())
                run._describe({"seed": config.run.seed, **provenance(command, now), "resumed": []})
            except BaseException:
                shutil.rmtree(path, ignore_errors=True)  # it was empty, and half a run is of no use
                run.close()
                raise
        except OSError as error:
            _remove_empty(missing)
            raise RunDirectoryError(f"cannot start a run in {parent}: {durable.reason(error)}") from error
        except BaseException:
            _remove_empty(missing)
            raise
        return run

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the directory of a run to be resumed; the run itself is left unchanged."""
        try:
            _description(path)
            run = cls(path, _locked(path))
            try:
                run._prepare()
                _description(path)  # again, now that nobody else writes it
            except BaseException:
                run.close()
                raise
        except OSError as error:
            raise RunDirectoryError(f"run {path} cannot be resumed: {durable.reason(error)}") from error
        return run

    def note_resumption(self, *, config_text: str, command: Sequence[str], now: datetime) -> None:
        """Write the config the run resumes with, and note in run.json how and when it was resumed."""
        try:
            described = _description(self.path)
            described["resumed"].append(provenance(command, now))
            self._describe(described)
            durable.write_durably(self.config_file, config_text.encode())
        except OSError as error:
            raise RunDirectoryError(f"run {self.path} cannot be resumed: {durable.reason(error)}") from error

    def reserve_space(self, size: int) -> None:
        """Set aside so many bytes of the disk for the run's last checkpoint, or raise RunDirectoryError."""
        try:
            durable.reserve(self._reserve, size)
        except OSError as error:
            self.free_reserve()
            raise RunDirectoryError(
                f"{size} bytes cannot be set aside for the last checkpoint: {durable.reason(error)}"
            ) from error

    def free_reserve(self) -> None:
        """Give back what was set aside, if anything, to use it now."""
        self._reserve.unlink(missing_ok=True)

    def remove_if_unsaved(self) -> None:
        """Remove the directory, with all that is in it, unless it has a checkpoint."""
        if not has_checkpoint(self.path):
            shutil.rmtree(self.path)
            _remove_empty(self._made_for_it)

    def check_room(self, needed_bytes: int) -> None:
        """RunDirectoryError unless the disk has so many bytes left."""
        free = durable.free_bytes(self.path)
        if free is not None and free < needed_bytes:
            raise RunDirectoryError(
                f"run {self.path} cannot be resumed: it needs {durable.megabytes(needed_bytes)} of disk, "
                f"{durable.megabytes(free)} are free"
            )

    def close(self) -> None:
        """Release the lock and the space that was set aside; the files stay."""
        if self._lock is not None:
            self.free_reserve()
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing alone would leave it to forked children
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def set_aside(self, beyond: int, now: datetime) -> Path | None:
        """Move checkpoints and games beyond a step to `set_aside/<time>`, and copy the metrics; return it.

        For a run that resumes from an older checkpoint: what came after it belongs to another story, which
        must neither be lost nor be found by `latest`. None if nothing came after.
        """
        settle_replaced(self.checkpoints)
        beyond_it = [step for step in checkpoint_steps(self.checkpoints) if step > beyond]
        if not beyond_it:
            return None
        try:
            aside = self.path / "set_aside" / now.strftime("%Y-%m-%d_%H-%M-%S-%f")
            aside.mkdir(parents=True)
            if self.metrics_file.exists():
                shutil.copy2(self.metrics_file, aside)
            for path in (checkpoint_path(self.checkpoints, step) for step in beyond_it):
                path.rename(aside / path.name)
            if later := kept_games(self.games, after=beyond):
                (aside / self.games.name).mkdir()
                for path in later:
                    path.rename(aside / self.games.name / path.name)
            best = self.checkpoints / BEST
            if best.exists() and (best_checkpoint(self.checkpoints) or (0, 0))[0] > beyond:
                best.rename(aside / BEST)
            durable.sync_directory(aside)
            durable.sync_directory(self.checkpoints)
        except OSError as error:
            raise RunDirectoryError(
                f"newer checkpoints of {self.path} cannot be set aside: {durable.reason(error)}"
            ) from error
        return aside

    def _prepare(self) -> None:
        durable.sweep(self.path)
        self.checkpoints.mkdir(exist_ok=True)
        self.plots.mkdir(exist_ok=True)

    def _describe(self, description: dict[str, Any]) -> None:
        durable.write_durably(self.run_file, json.dumps(description, indent=1).encode() + b"\n")


def is_running(path: Path) -> bool:
    """Return whether a process holds a run's lock, that is, trains it."""
    try:
        lock = os.open(path / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)  # and with it the lock, if that was free
    return False


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # not made, or in use by now
            folder.rmdir()


def _check_room(parent: Path, needed_bytes: int) -> None:
    free = durable.free_bytes(parent)
    if free is not None and free < needed_bytes:
        raise RunDirectoryError(
            f"cannot start a run in {parent}: it needs {durable.megabytes(needed_bytes)} of disk, "
            f"{durable.megabytes(free)} are free"
        )


def _new_directory(parent: Path, name: str | None, now: datetime) -> Path:
    """Make a directory of this name, or else an unused one named by the time."""
    if name is not None:
        (parent / name).mkdir(exist_ok=True)
        return parent / name
    stamp, number = now.strftime("%Y-%m-%d_%H-%M-%S"), 1
    while True:
        path = parent / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path


def _locked_if_empty(path: Path) -> int:
    """Lock an empty directory and return the lock."""
    if (path / LOCK).exists() or not _content(path):
        lock = _locked(path)  # first: for a run in progress, its pid is what matters
        if not _content(path):
            return lock
        os.close(lock)
    if has_checkpoint(path):
        raise RunDirectoryError(
            f"{path} already holds a run; resume it with --resume latest or choose another run.name"
        )
    what = "a run without a checkpoint" if (path / RUN).exists() else "something other than a run"
    raise RunDirectoryError(f"{path} holds {what}; remove it or choose another run.name")


def _content(path: Path) -> set[str]:
    return {name for name in os.listdir(path) if name != LOCK and not name.startswith(durable.TEMPORARY)}


def _locked(path: Path) -> int:
    """Lock a run until this process ends, and write its pid into the lock file."""
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        _lock_alone(lock)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        pid = os.pread(lock, 32, 0).decode(errors="replace").strip()
        os.close(lock)
        raise RunDirectoryError(
            f"run {path} is in use by process {pid or 'unknown'}; wait or stop it"
        ) from error
    except BaseException:
        os.close(lock)
        raise
    return lock


def _lock_alone(lock: int) -> None:
    """Lock a file for this process alone; a few tries, since `is_running` holds it for an instant."""
    for last in (False, False, True):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if last:
                raise
            time.sleep(0.05)


def _description(path: Path) -> dict[str, Any]:
    """Return the content of run.json."""
    try:
        described = json.loads((path / RUN).read_bytes())
    except FileNotFoundError as error:
        raise RunDirectoryError(f"{path} is not a run: it has no {RUN}") from error
    except ValueError as error:
        raise RunDirectoryError(f"{path / RUN} is not JSON: {error}") from error
    if not isinstance(described, dict) or not isinstance(described.get("resumed"), list):
        raise RunDirectoryError(f"{path / RUN} does not describe a run: it has no list `resumed`")
    return described
