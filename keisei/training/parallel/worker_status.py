"""The status of the workers at one moment, as plain values for console, metrics and statistics."""

from dataclasses import dataclass
from typing import Literal

WORK_PHASES = ("env", "inference", "sampling", "transport", "learning")  # how a worker spends its time
State = Literal["starting", "playing", "learning", "waiting", "paused", "restarting", "given up", "stopped"]


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker.

    incarnation: 0 for the first process, one more for each replacement. pid: None without a process.
    utilization: share of time spent playing and learning since the last measurement, 0 to 1. steps, games:
    moves made and games finished over all incarnations. weights_version: of its last moves. restarts:
    replacements so far.
    memory_bytes: resident memory of its process, 0 if unknown. last_error: the traceback of the last
    exception it reported, "" if none.
    """

    worker: int
    state: State
    incarnation: int
    pid: int | None
    utilization: float
    steps: int
    games: int
    weights_version: int
    restarts: int
    memory_bytes: int
    last_error: str
