"""What a process records of itself during a pass, and the files that it leaves: one function for all."""

import cProfile
import gzip
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from keisei.profiling.profile_clock import Lap, ProfileClock
from keisei.profiling.stacks import ThreadSampler, allow_tracing, write_stacks

# phases: nothing but the clock. functions: cProfile. native_stacks: py-spy, from outside. python_stacks: a
# thread of the process itself. kernels: torch.profiler.
Instrument = Literal["phases", "functions", "native_stacks", "python_stacks", "kernels"]
_KERNEL_ROWS = 40


@dataclass(frozen=True)
class Record:
    """The phases of one process. name: `learner`, `worker 0`; a replacement is `worker 0, process 1`."""

    name: str
    pid: int
    laps: list[Lap]

    @property
    def is_replacement(self) -> bool:
        """Whether an earlier process of the same worker died."""
        return ", process " in self.name


@contextmanager
def recording(instrument: Instrument, folder: Path, stem: str) -> Iterator[None]:
    """Record this process inside the block and write to folder/stem.* after it.

    A file appears whole or not at all: a worker that takes too long to write is killed.
    """
    if instrument == "functions":
        profile = cProfile.Profile()
        try:
            with profile:
                yield
        finally:
            profile.dump_stats(folder / f"{stem}.partial")
            (folder / f"{stem}.partial").replace(folder / f"{stem}.prof")
    elif instrument == "python_stacks":
        sampler = ThreadSampler()
        try:
            with sampler:
                yield
        finally:
            write_stacks(folder / f"{stem}.partial", sampler.stacks)
            (folder / f"{stem}.partial").replace(folder / f"{stem}.stacks")
    elif instrument == "kernels":
        with torch.profiler.profile(activities=_activities()) as kernels:
            yield
        _write_kernels(kernels, folder, stem)
    else:
        if instrument == "native_stacks":
            allow_tracing()
        yield


def _activities() -> list[Any]:
    activities = [torch.profiler.ProfilerActivity.CPU]
    return [*activities, torch.profiler.ProfilerActivity.CUDA] if torch.cuda.is_available() else activities


def _write_kernels(kernels: Any, folder: Path, stem: str) -> None:
    """Write a table of the kernels, and a trace for a browser's trace viewer."""
    order = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    table = kernels.key_averages().table(sort_by=order, row_limit=_KERNEL_ROWS)
    (folder / f"{stem}.kernels.txt").write_text(table, encoding="utf-8")
    trace = folder / f"{stem}.trace.json"
    kernels.export_chrome_trace(str(trace))
    with trace.open("rb") as plain, gzip.open(f"{trace}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    trace.unlink()


def write_record(folder: Path, stem: str, name: str, pid: int, clock: ProfileClock) -> None:
    """Write the laps of a process, whole or not at all."""
    text = json.dumps({"name": name, "pid": pid, "laps": [asdict(lap) for lap in clock.laps]})
    partial = folder / f"{stem}.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / f"{stem}.phases.json")


def read_records(folder: Path) -> dict[str, Record]:
    """Read the records of all processes of a pass, by stem, the learner's first."""
    found = {}
    for path in sorted(folder.glob("*.phases.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        stem = path.name.removesuffix(".phases.json")
        found[stem] = Record(data["name"], data["pid"], [Lap(**lap) for lap in data["laps"]])
    return found
