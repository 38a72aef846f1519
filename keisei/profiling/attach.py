"""`keisei profile --pid`: a look at a running training, from outside; only py-spy disturbs it.

Phases come from the run's own metrics.jsonl, stacks from py-spy, CPU and memory from the kernel.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.device import cores
from keisei.profiling.measurements import Memory, ProcessTimes, Profile, ProfileError, origin_of, timeline
from keisei.profiling.processes import MemorySampler, command_line, cpu_seconds, process_tree
from keisei.profiling.stacks import PySpy, Stacks
from keisei.runs.run_directory import LOCK
from keisei.training.metrics import read_metrics
from keisei.training.parallel.worker_setup import number_of_workers
from keisei.training.parallel.worker_status import WORK_PHASES

_MARGIN_SECONDS = 60  # after which py-spy ends although nobody ended it


def look_at(
    pid: int, seconds: float, folder: Path, *, command: Sequence[str], tell: Callable[[str], None]
) -> tuple[Profile, dict[str, Stacks]]:
    """Watch the training with this learner for some seconds; return its profile and stacks by process.

    Counted are updates that began and ended meanwhile. folder: for py-spy's file.
    """
    run = run_trained_by(pid)
    names = process_tree(pid).names()
    rows_before = len(read_metrics(run / "metrics.jsonl"))
    config = load_config(run / "config.yaml")
    before = {process: cpu_seconds(process) for process in names}
    tell(f"watching {run} (process {pid} and {len(names) - 1} workers) for {seconds:g} s")
    began = time.perf_counter()
    spy = PySpy(pid, folder, seconds=math.ceil(seconds) + _MARGIN_SECONDS)
    with MemorySampler(lambda: list(names)) as memory, spy:
        time.sleep(seconds)
    watched = time.perf_counter() - began
    after = {process: cpu_seconds(process) for process in names}
    if not command_line(pid):
        raise ProfileError(f"the training of process {pid} ended while it was watched")
    stacks = {names[process]: found for process, found in spy.stacks.items() if process in names}
    rows = read_metrics(run / "metrics.jsonl")[rows_before:]  # earlier ones may be of another session
    if len(rows) < 2:
        raise ProfileError(
            f"{run} finished fewer than two updates in {seconds:g} s; watch longer: --seconds "
            f"{math.ceil(3 * seconds)}"
        )
    parallel = config.training.parallel
    used = [
        f"{name} {after[process] - before[process]:.1f}" if after[process] else f"{name} (ended)"
        for process, name in names.items()
    ]
    notes = [
        f"In {watched:.1f} s the processes used {', '.join(used)} CPU seconds. Phases are those of the run's "
        "metrics; workers are averaged."
    ]
    notes += [f"No flame graph: {spy.problem}"] if spy.problem else []
    notes += ["The workers' processes were not found."] if parallel.enabled and len(names) == 1 else []
    learner, workers = phases_of(rows[1:], config)  # the first row's update began earlier
    return Profile(
        mode="parallel" if parallel.enabled else "serial",
        workers=number_of_workers(config) if parallel.enabled else 0,
        cores=cores(),
        moves=int(rows[-1]["step"] - rows[0]["step"]),
        seconds=sum(learner.values()),
        updates=len(rows) - 1,
        start_seconds=0.0,
        network=config.model.described(),
        numerics=f"run.numerics: {config.run.numerics}",
        timeline=timeline(learner, [workers] if workers else []),
        processes=[
            ProcessTimes("learner", pid, learner, {}),
            *([ProcessTimes("workers, mean", None, workers, {})] if workers else []),
        ],
        memory=[Memory(names[process], samples) for process, samples in memory.samples.items()],
        functions={},
        speeds={},
        notes=notes,
        settings=config.model_dump(mode="json"),
        provenance=origin_of(command),
    ), stacks


def run_trained_by(pid: int) -> Path:
    """Return the directory of the run that a process trains: it has the run's metrics and lock open."""
    if not command_line(pid):
        raise ProfileError(f"there is no process {pid}; pgrep -f 'keisei train' finds trainings")
    files = set()
    try:
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                files.add(os.readlink(path))
    except PermissionError as error:
        raise ProfileError(f"process {pid} belongs to another user") from error
    open_runs = [Path(file).parent for file in sorted(files) if file.endswith("/metrics.jsonl")]
    runs = [run for run in open_runs if str(run / LOCK) in files]  # others may read the metrics
    if not runs:
        raise ProfileError(
            f"process {pid} is not a training: it holds no run's lock; expected the learner's process id"
        )
    return runs[0]


def phases_of(
    rows: Sequence[Mapping[str, float]], config: AppConfig
) -> tuple[dict[str, float], dict[str, float]]:
    """Return wall seconds by phase of the learner, and of its workers in the mean, from a run's metrics.

    The mean is over the workers of the config, however many are alive: the metrics are sums over all.
    """
    learner: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            if name.startswith("time/"):
                phase = name.removeprefix("time/")
                learner[phase] = learner.get(phase, 0.0) + value
    if not config.training.parallel.enabled:
        return learner, {}
    workers = number_of_workers(config)
    return learner, {
        phase: sum(row.get(f"parallel/seconds_{phase}", 0.0) for row in rows) / workers
        for phase in WORK_PHASES
    }
