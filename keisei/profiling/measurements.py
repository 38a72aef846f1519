"""Profile: what was measured, as plain values that are written to report.json and read back."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from keisei.errors import UserError, refuse_special
from keisei.profiling.instruments import Record
from keisei.profiling.profile_clock import total
from keisei.runs.provenance import provenance
from keisei.training.doctor import cpu_name

FORMAT = 1
REPORT = "report.json"


class ProfileError(UserError):
    """A profile that cannot be made or read; the message says why."""


@dataclass(frozen=True)
class ProcessTimes:
    """The seconds of a process by phase, over the measured part of the run; `wait` is time without work.

    pid: None for figures that are the mean of several processes.
    """

    name: str
    pid: int | None
    wall: Mapping[str, float]
    cpu: Mapping[str, float]


@dataclass(frozen=True)
class Function:
    """A function as cProfile saw it; seconds include the profiler's own cost."""

    name: str
    calls: int
    own_seconds: float
    total_seconds: float


@dataclass(frozen=True)
class Memory:
    """The resident memory of a process over time: (seconds, bytes)."""

    name: str
    samples: Sequence[tuple[float, int]]


@dataclass(frozen=True)
class Profile:
    """A measured training.

    moves, seconds: of the measured part, which leaves out start-up and the first update if there are more.
    timeline: where the wall time of the run went, `collect` split into what the workers did meanwhile.
    speeds: moves per second of each pass by its instrument, of which `phases` is the undisturbed one.
    skipped: the updates left out at the start, 0 or 1; absent from older reports.
    """

    mode: str
    workers: int
    cores: int
    moves: int
    seconds: float
    updates: int
    start_seconds: float
    network: str
    numerics: str
    timeline: Mapping[str, float]
    processes: Sequence[ProcessTimes]
    memory: Sequence[Memory]
    functions: Mapping[str, Sequence[Function]]
    speeds: Mapping[str, float]
    notes: Sequence[str]
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    skipped: int = 0

    @property
    def moves_per_second(self) -> float:
        """Moves trained on per second, end to end."""
        return self.moves / self.seconds

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of all processes."""
        return sum(sum(process.cpu.values()) for process in self.processes)

    def microseconds(self, phase: str) -> float:
        """Return the wall microseconds that a phase takes of each move."""
        return self.timeline.get(phase, 0.0) / self.moves * 1e6


def origin_of(command: Sequence[str]) -> dict[str, Any]:
    """Return where a profile comes from: a run's provenance, the processor, and the load before."""
    load = round(os.getloadavg()[0], 2)
    return {**provenance(command, datetime.now()), "cpu": cpu_name(), "load": load}


@dataclass(frozen=True)
class Window:
    """The measured part of a run, in time.perf_counter()."""

    began: float
    ended: float
    skipped: int


def window(learner: Record) -> Window:
    """Return the part of a run to measure: without start-up and, if there are more, the first update."""
    updates = learner.laps[1:]  # the first lap ends where the loop begins
    skipped = 1 if len(updates) > 1 else 0
    return Window(updates[skipped].began, updates[-1].ended, skipped)


def times_in(record: Record, part: Window) -> ProcessTimes:
    """Return a process's seconds by phase in the measured part: of the laps that ended in it."""
    laps = [lap for lap in record.laps if part.began < lap.ended <= part.ended]
    return ProcessTimes(
        record.name, record.pid, total(lap.wall for lap in laps), total(lap.cpu for lap in laps)
    )


def timeline(learner: Mapping[str, float], workers: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return where the learner's wall time went, `collect` split into what the workers did meanwhile.

    What remains as `collect` is hand-over: messages, and waiting for the slowest worker. While workers learn,
    so does the learner: its own phases cover that time.
    """
    spent = dict(learner)
    collect = spent.pop("collect", 0.0)
    mean = total({phase: seconds / len(workers) for phase, seconds in worker.items()} for worker in workers)
    for phase in ("wait", "learning"):
        mean.pop(phase, None)
    played = sum(mean.values())
    if played:
        scale = min(1.0, collect / played)
        for phase, seconds in mean.items():
            spent[phase] = spent.get(phase, 0.0) + seconds * scale
        collect -= played * scale
    if collect > 0:
        spent["collect"] = collect
    return total([spent])


def write_profile(folder: Path, profile: Profile) -> Path:
    """Write a profile as JSON, and return the file."""
    path = folder / REPORT
    path.write_text(json.dumps({"format": FORMAT, **asdict(profile)}, indent=1) + "\n", encoding="utf-8")
    return path


def read_profile(path: Path) -> Profile:
    """Read a report.json, or the one in a folder; ProfileError if it is not one."""
    file = path / REPORT if path.is_dir() else path
    try:
        refuse_special(file)
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProfileError(f"{file} cannot be read as a profile: {reason}") from error
    needed = {field.name for field in fields(Profile)} - {"skipped"}
    if not isinstance(data, dict) or data.get("format") != FORMAT or not needed <= set(data):
        raise ProfileError(f"{file} is not a profile of format {FORMAT}, as keisei profile writes it")
    data.pop("format")
    try:
        profile = Profile(
            **{
                **{field.name: data[field.name] for field in fields(Profile) if field.name in data},
                "processes": [ProcessTimes(**process) for process in data["processes"]],
                "memory": [Memory(**memory) for memory in data["memory"]],
                "functions": {
                    name: [Function(**row) for row in rows] for name, rows in data["functions"].items()
                },
            }
        )
        spent = sum(profile.timeline.values())
        usable = profile.moves > 0 and profile.seconds > 0 and spent > 0
        usable = usable and math.isfinite(profile.seconds + spent)
        if not isinstance(profile.numerics, str) or not isinstance(profile.provenance, dict):
            raise TypeError("expected text for numerics and an object for provenance")
    except (TypeError, AttributeError) as error:
        raise ProfileError(f"{file} is not a profile: {error}") from error
    if not usable:
        raise ProfileError(f"{file} is not a profile: it measured no moves")
    return profile
