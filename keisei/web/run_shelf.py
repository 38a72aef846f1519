"""The runs that the pages show: those named, or all in a directory; and the players that they offer.

An id is a hash of what it names and comes from a listing: what is not listed is not known, whatever an id
says. Nothing here writes into a run.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keisei.evaluation.players.player_specs import BUILT_IN_NAMES
from keisei.runs.checkpoint import CheckpointError, best_checkpoint, checkpoint_path, checkpoint_steps
from keisei.runs.find import CHECKPOINTS, RUN, SHIPPED, SHIPPED_PATH
from keisei.runs.run_directory import is_running
from keisei.web.answers import Refusal
from keisei.web.run_facts import settings_of

METRICS = "metrics.jsonl"
_LAST_BYTES = 64 * 1024  # in which the last line of the metrics is


def id_of(*parts: object) -> str:
    """Return the id of something by what distinguishes it: 12 hexadecimal digits."""
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Run:
    """A run and its id."""

    id: str
    path: Path

    @property
    def name(self) -> str:
        """Its directory's name, fit to be shown."""
        return self.path.name.encode("utf-8", "replace").decode()

    @property
    def metrics(self) -> Path:
        """The file of its metrics, which may not exist yet."""
        return self.path / METRICS


@dataclass(frozen=True, slots=True)
class WebPlayer:
    """Somebody to play against: a network by its checkpoint, or a built-in player by its name."""

    id: str
    name: str
    checkpoint: Path | None
    run: str | None = None
    step: int | None = None
    group: str = ""

    def facts(self) -> dict[str, Any]:
        """Return what a page is told."""
        kind = "built-in" if self.checkpoint is None else "network"
        return {"id": self.id, "name": self.name, "kind": kind, "run": self.run} | {
            "step": self.step,
            "group": self.group,
        }


class RunShelf:
    """named: the runs to show, or none for all in the directory."""

    def __init__(self, named: Sequence[Path], directory: Path) -> None:
        self._named, self._directory = [path.absolute() for path in named], directory.absolute()

    def runs(self) -> list[Run]:
        """Return the runs, the newest first."""
        paths = self._named or [file.parent for file in self._directory.glob(f"*/{RUN}")]
        dated = sorted(((_updated(path), path) for path in paths), reverse=True)
        return [Run(id_of("run", path), path) for _, path in dated]

    def run(self, wanted: str) -> Run:
        """Return the run with an id."""
        for run in self.runs():
            if run.id == wanted:
                return run
        raise Refusal(404, "no such run")

    def players(self) -> list[WebPlayer]:
        """Return everybody to play against."""
        shipped = WebPlayer(id_of("network", SHIPPED_PATH), SHIPPED, SHIPPED_PATH, group=SHIPPED)
        found = [shipped]
        for run in self.runs():
            found += _checkpoints(run)
        return [
            *found,
            *(WebPlayer(id_of("built-in", name), name, None, group="built-in") for name in BUILT_IN_NAMES),
        ]

    def player(self, wanted: str) -> WebPlayer:
        """Return the player with an id."""
        for player in self.players():
            if player.id == wanted:
                return player
        raise Refusal(404, "no such player")


def about(run: Run) -> dict[str, Any]:
    """Return what a listing says about a run."""
    total, step = settings_of(run.path).total_steps, last_step(run.metrics)
    state = "training" if is_running(run.path) else "finished" if total and step >= total else "stopped"
    return {"id": run.id, "name": run.name, "state": state, "step": step} | {
        "total_steps": total,
        "updated": round(_updated(run.path), 3),
    }


def last_step(metrics: Path) -> int:
    """Return the step in the last whole line of a metrics.jsonl, 0 if there is none that can be read."""
    try:
        with metrics.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            lines = file.read().split(b"\n")[:-1]  # what follows the last newline is torn
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            step = json.loads(line)["step"]
        except (ValueError, TypeError, KeyError):
            continue
        if type(step) is int:
            return step
    return 0


def _updated(path: Path) -> float:
    """Return when a run was last written to, in seconds since 1970."""
    times = []
    for name in (METRICS, RUN, CHECKPOINTS):
        try:
            times.append((path / name).stat().st_mtime)
        except FileNotFoundError:
            continue
    return max(times, default=0.0)


def _checkpoints(run: Run) -> list[WebPlayer]:
    """Return the networks of a run: the best, the latest, the others from new to old."""
    parent = run.path / CHECKPOINTS
    if not parent.is_dir():
        return []
    steps = checkpoint_steps(parent)
    best = _best(parent)
    marks = {steps[0]: "latest"} if steps else {}
    if best in steps:
        marks[best] = "best, latest" if best in marks else "best"
    ordered = sorted(steps, key=lambda step: (step != best, -step))
    return [
        WebPlayer(
            id_of("network", checkpoint_path(parent, step)),
            f"{run.name}@{step}" + (f" ({marks[step]})" if step in marks else ""),
            checkpoint_path(parent, step),
            run.id,
            step,
            run.name,
        )
        for step in ordered
    ]


def _best(parent: Path) -> int | None:
    try:
        best = best_checkpoint(parent)
    except CheckpointError:  # the mark is damaged; the checkpoints can be played all the same
        return None
    return None if best is None else best[0]
