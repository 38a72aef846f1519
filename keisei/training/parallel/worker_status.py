"""What is known of the workers at a moment, as plain values for console, metrics and statistics."""

from dataclasses import dataclass
from typing import Literal

PLAY_PHASES = ("env", "inference", "sampling", "transport")  # what a worker spends its time with
State = Literal["starting", "playing", "waiting", "paused", "restarting", "given up", "stopped"]


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker.

    incarnation: 0 for the first process, one more for each replacement. pid: None if no process is there.
    utilization: the share of the time since the last look in which it played, 0 to 1.
    steps, games: moves made and games ended by all its incarnations. weights_version: of its last moves.
    restarts: replacements so far. memory_bytes: resident memory of its process, 0 where it is not known.
    last_error: the traceback of the last exception that it reported, "" if there was none.
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
