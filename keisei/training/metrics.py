"""A run's metrics: their names and meanings, where they are written, and how they are read back.

Each update is one flat mapping, which every sink writes. `metrics.jsonl` is the record of a run, one JSON
object per line; TensorBoard and Weights & Biases are copies of it for those who prefer them.

A resumed run starts at an older step than its files and writes some updates again: every sink gets the step
to resume from (None for a new run), so that later updates do not appear twice.
"""

import importlib
import json
import math
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn, get_args

from keisei.config.schema import Opponent
from keisei.errors import UserError, install_command
from keisei.runs.durable import naming
from keisei.shogi import Reason
from keisei.training.listener import SilentListener, Update
from keisei.training.parallel.worker_status import WorkerStatus

OPPONENTS = get_args(Opponent)
WORKER_PHASES = ("collect", "exchange", "wait", "synchronize")  # only when workers collect
PHASES = (
    "env",
    "inference",
    "sampling",
    *WORKER_PHASES,
    "encode",
    "update",
    "checkpoint",
    "evaluation",
    "other",
)
# Training has no resignations, forfeits or clocks, so no other reason occurs.
REASONS = (
    Reason.CHECKMATE,
    Reason.NO_LEGAL_MOVE,
    Reason.REPETITION,
    Reason.PERPETUAL_CHECK,
    Reason.DECLARATION,
    Reason.MAXIMUM_LENGTH,
)


def reason_name(reason: Reason) -> str:
    """Return the metric that counts games ending this way, such as "games/by_no_legal_move"."""
    return f"games/by_{reason.value.replace(' ', '_')}"


_PHASE_TEXTS = {
    "env": "the rules engine made moves",
    "inference": "the network evaluated positions to choose moves",
    "sampling": "moves were drawn from the policy",
    "collect": "the learner waited for the workers' moves",
    "exchange": "gradient steps went to workers or other ranks, and gradients were summed",
    "wait": "the learner waited for the workers' gradients",
    "synchronize": "the weights were written for the workers",
    "encode": "planes and legal moves were rebuilt for the minibatches",
    "update": "the network learned",
    "checkpoint": "the previous update's checkpoint was written",
    "evaluation": "evaluation games were played",
    "other": "everything else was done",
}

_DISCARDED_TEXTS = {
    "died": "their worker's process died",
    "hung": "their worker hung and was killed",
    "failed": "their worker raised an exception",
    "damaged": "their segment's header or checksum was wrong",
    "stale": "they were played with weights older than max_policy_lag",
    "reset": "the games were reset",
    "twice": "two nodes of a cluster played them, and the other one was first",
}

_PARALLEL_TEXTS = {
    "active_workers": "Workers running at the end of this update.",
    "serial_steps": "Moves the learner itself played in this update because no worker was left.",
    "restarts": "Workers replaced in this update.",
    "utilization": "Mean share of time the workers spent playing and learning: 0 to 1.",
    "queue_depth": "Segments delivered but not yet taken, mean over this update.",
    "lag_mean": "Updates between the weights that played and those that learn, mean over the segments.",
    "lag_max": "Updates between the weights that played and those that learn, maximum over the segments.",
    "weights_version": "Version of the last published weights.",
    "steps_generated": "Moves played by workers since the process began: trained + in flight + discarded.",
    "steps_trained": "Workers' moves trained on since the process began.",
    "steps_in_flight": "Workers' moves neither trained on nor discarded yet.",
    "steps_discarded": "Workers' moves discarded since the process began, for the reasons below.",
    **{
        f"discarded_{reason}": f"Moves discarded because {text}." for reason, text in _DISCARDED_TEXTS.items()
    },
    "sync_count": "Broadcasts of weights since the process began.",
    "sync_bytes": "Bytes of the last broadcast.",
    "sync_milliseconds": "Milliseconds the last broadcast took.",
    "memory_bytes": "Resident memory of all worker processes.",
    "seconds_env": "Seconds all workers together spent on the rules in this update.",
    "seconds_inference": "Seconds all workers together spent on the network in this update.",
    "seconds_sampling": "Seconds all workers together spent choosing moves in this update.",
    "seconds_transport": "CPU seconds all workers together spent on weights, messages and segments.",
    "seconds_learning": "Seconds all workers together spent on their shares of this update's minibatches.",
    "nodes": "Nodes of a cluster that play, at the end of this update.",
    "node_workers": "Worker processes on those nodes.",
    "nodes_behind": "Nodes that do not have the newest weights yet.",
    "broadcast_milliseconds": "Time from a publication of weights until the last node to get them had them.",
    "shares_taken_over": "Shares of dead or late workers that the learner computed, since the process began.",
}

# By field of WorkerStatus.
_WORKER_TEXTS = {
    "utilization": "Share of time worker N spent playing and learning: 0 to 1.",
    "steps": "Moves made by worker N, over all its processes.",
    "games": "Games finished by worker N, over all its processes.",
    "weights_version": "Version of the weights worker N last played with.",
    "restarts": "How often worker N was replaced.",
    "memory_bytes": "Resident memory of worker N's process, 0 if unknown.",
}

explain: Mapping[str, str] = MappingProxyType(
    {
        "loss/policy": "PPO's clipped loss, or cross-entropy to searches' targets, mean over minibatches.",
        "loss/value": "Squared error of the value against the returns, mean over the minibatches.",
        "loss/total": "The loss minimised: policy loss + value_coef · value loss - entropy_coef · entropy.",
        "policy/entropy": "Entropy of the policy over the legal moves, in nats; lower is more certain.",
        "policy/approx_kl": "Approximate KL divergence from the policy that played to the new one.",
        "policy/clip_fraction": "Share of moves whose probability ratio was clipped.",
        "search/kl": "KL divergence from the policy to the target of a search, mean over searched moves.",
        "search/agreement": "Share of searched moves whose target prefers the same move as the policy.",
        "value/explained_variance": "Share of the returns' variance that the value explains: 1 is perfect.",
        "update/grad_norm": "Gradient norm before clipping, mean over the minibatches.",
        "update/minibatches": "Gradient steps in this update.",
        "update/skipped": "Gradient steps skipped because the loss or a gradient was not finite.",
        "update/early_stop": "1 if the update ended early because KL exceeded target_kl, else 0.",
        "schedule/learning_rate": "The learning rate in this update.",
        "schedule/entropy_coef": "The weight of the entropy bonus in this update.",
        "schedule/material_reward": "The reward for a pawn's worth of material in this update.",
        "games/finished": "Games that ended in this update.",
        "games/length": "Mean length of these games in plies; absent if none ended.",
        "games/black_wins": "Games that Black (先手) won in this update.",
        "games/white_wins": "Games that White (後手) won in this update.",
        "games/draws": "Games drawn in this update; a falling share is the first sign of learning.",
        "games/late_starts": "Games that ended in this update and started near the end of an earlier one.",
        **{reason_name(reason): f"Games that ended by {reason.value} in this update." for reason in REASONS},
        "speed/steps_per_second": "Moves in this update divided by its seconds, evaluation included.",
        "speed/games_per_second": "Games that ended in this update divided by its seconds.",
        **{f"time/{phase}": f"Seconds of this update in which {_PHASE_TEXTS[phase]}." for phase in PHASES},
        "progress/updates": "Updates since the start of the run.",
        "progress/games": "Games finished since the start of the run.",
        **{
            f"evaluation/{opponent}_{what}": text.format(opponent=opponent)
            for opponent in OPPONENTS
            for what, text in {
                "score": "Points per game against the {opponent} player, a draw counting half: 0 to 1.",
                "draws": "Share of the games against the {opponent} player that were drawn.",
                "length": "Mean length in plies of the games against the {opponent} player.",
            }.items()
        },
        "evaluation/rating": "Elo of the network from all games so far; the random player is 0.",
        "evaluation/rating_low": "Lower end of the rating's 95 % interval.",
        "evaluation/rating_high": "Upper end of the rating's 95 % interval.",
        **{f"parallel/{what}": text for what, text in _PARALLEL_TEXTS.items()},
        **{f"worker_N/{what}": text for what, text in _WORKER_TEXTS.items()},
    }
)


def explanation(name: str) -> str:
    """Return what a recorded name means; "worker_3/steps" is explained as "worker_N/steps"."""
    return explain[re.sub(r"^worker_[0-9]+/", "worker_N/", name)]


def worker_metrics(workers: Sequence[WorkerStatus]) -> dict[str, float]:
    """Return the metrics of each worker, such as "worker_3/steps"."""
    return {
        f"worker_{status.worker}/{what}": float(getattr(status, what))
        for status in workers
        for what in _WORKER_TEXTS
    }


class MetricsError(UserError, ValueError):
    """Metrics that are missing, unreadable (with file and line), or cannot be plotted as asked."""


class JsonlSink(SilentListener):
    """One JSON object per line, flushed to the operating system before `update` returns.

    A new run refuses an existing file. A resumed run cuts off everything after resume_step and a torn last
    line, so that its file equals that of an uninterrupted run.
    """

    def __init__(self, path: Path, resume_step: int | None) -> None:
        if resume_step is not None and path.exists():
            _cut(path, resume_step)
        self._path = path
        self._file = path.open("x" if resume_step is None else "a", encoding="utf-8", newline="\n")

    def update(self, update: Update) -> None:
        """Append a line; values that are not finite become null, as JSON cannot express them."""
        values = {name: float(value) for name, value in update.metrics.items()}
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        with naming(self._path):
            self._file.write(json.dumps({"step": update.step, **finite}, allow_nan=False) + "\n")
            self._file.flush()

    def sync(self) -> None:
        """Wait until the disk has the lines, also one that it had no room for before."""
        with naming(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        with naming(self._path):
            self._file.close()


class TensorBoardSink(SilentListener):
    """Event files for `tensorboard --logdir`; a resumed run purges events after resume_step.

    Written here and now: TensorBoard's own writer does it in a thread, which dies with a traceback when the
    disk is full.
    """

    def __init__(self, directory: Path, resume_step: int | None) -> None:
        # Imported here because they are not needed to read and plot metrics.
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
        from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

        self._event, number = Event, time.time_ns()
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / f"events.out.tfevents.{number // 10**9:010d}.{platform.node()}.{number}"
        with naming(self._path):
            self._file = self._path.open("xb")
            self._records = RecordWriter(self._file)
            self._write(file_version="brain.Event:2")
            if resume_step is not None:
                self._write(step=resume_step + 1, session_log=SessionLog(status=SessionLog.START))

    def update(self, update: Update) -> None:
        """Add a point to every curve; a value that is not finite is none."""
        finite = {name: value for name, value in update.metrics.items() if math.isfinite(value)}
        values = [{"tag": name, "simple_value": value} for name, value in finite.items()]
        with naming(self._path):
            self._write(step=update.step, summary={"value": values})

    def _write(self, **content: Any) -> None:
        self._records.write(self._event(wall_time=time.time(), **content).SerializeToString())

    def sync(self) -> None:
        """Write what is buffered."""
        with naming(self._path):
            self._file.flush()

    def close(self) -> None:
        """Write what is buffered and close the file."""
        with naming(self._path):
            self._file.close()


# Names in run.loggers, and the mode Weights & Biases calls them.
WANDB_MODES: Mapping[str, Literal["offline", "online"]] = {"wandb": "online", "wandb-offline": "offline"}


class WandbSink(SilentListener):
    """Weights & Biases, from the extra `wandb`. A run resumes under the id derived from its name."""

    def __init__(
        self,
        directory: Path,
        mode: Literal["offline", "online"],
        name: str,
        config: Mapping[str, object],
        resume_step: int | None,
    ) -> None:
        try:  # Imported here because it is an extra that only this sink needs.
            wandb = importlib.import_module("wandb")
        except ImportError as error:
            message = f"run.loggers has wandb, which needs Weights & Biases: {install_command('wandb')}"
            raise ImportError(message) from error
        self._run = wandb.init(
            project="keisei",
            name=name,
            id=re.sub(r"[^\w.-]", "-", name),
            dir=str(directory),
            mode=mode,
            config=dict(config),
            resume="never" if resume_step is None else "allow",
        )

    def update(self, update: Update) -> None:
        """Log the metrics; Weights & Biases keeps the first record of a step, and syncs by itself."""
        self._run.log(dict(update.metrics), step=update.step)

    def close(self) -> None:
        """Wait until everything is written or sent."""
        self._run.finish()


def read_metrics(path: Path) -> list[dict[str, float]]:
    """Return the updates in a metrics.jsonl, "step" included; null is NaN. A torn last line is skipped."""
    return [row for row, _ in _rows(path)]


def _cut(path: Path, resume_step: int) -> None:
    """Truncate the file to its rows up to a step, in one system call: old or new, nothing in between."""
    kept = max((end for row, end in _rows(path) if row["step"] <= resume_step), default=0)
    with path.open("r+b") as file:
        file.truncate(kept)
        file.seek(max(kept - 1, 0))
        if file.read(1) not in (b"\n", b""):  # torn just before its newline
            file.write(b"\n")
        file.flush()
        os.fsync(file.fileno())


def _rows(path: Path) -> list[tuple[dict[str, float], int]]:
    """Return every row and the byte offset where it ends."""
    found: list[tuple[dict[str, float], int]] = []
    end = 0
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        end += len(line)
        try:
            row = _parse(line)
        except ValueError as error:
            if not line.endswith(b"\n"):
                break
            raise MetricsError(f"{path}, line {number}: {error}") from error
        if found and row["step"] < found[-1][0]["step"]:
            raise MetricsError(
                f"{path}, line {number}: step {row['step']:.0f} follows step {found[-1][0]['step']:.0f}"
            )
        found.append((row, end))
    return found


def _parse(line: bytes) -> dict[str, float]:
    """Parse one line as name → number; raise ValueError saying what was found instead."""
    try:
        row = json.loads(line, parse_constant=_refuse_constant)
    except ValueError as error:  # not UTF-8, or not JSON
        raise ValueError(f"expected a JSON object, got {line[:40]!r}") from error
    if not isinstance(row, dict) or type(row.get("step")) is not int:
        raise ValueError(f'expected an object with an integer "step", got {line[:40]!r}')
    for name, value in row.items():
        if value is not None and type(value) not in (int, float):
            raise ValueError(f"expected a number for {name!r}, got {value!r}")
    return {name: math.nan if value is None else value for name, value in row.items()}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
