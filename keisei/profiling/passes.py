"""One training, recorded: the learner and every worker with the same instrument."""

import os
import pstats
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from keisei.config.schema import AppConfig
from keisei.core.device import choose_device
from keisei.core.learning_agent import LearningAgent
from keisei.core.numerics import Numerics
from keisei.profiling.instruments import Instrument, Record, read_records, recording, write_record
from keisei.profiling.measurements import Function, Memory
from keisei.profiling.processes import MemorySampler, process_tree
from keisei.profiling.profile_clock import ProfileClock
from keisei.profiling.profiled_worker import ProfiledWorker
from keisei.profiling.stacks import PySpy, Stacks, read_stacks
from keisei.runs.run_directory import RunDirectory
from keisei.training.collector import Collector, make_collector, new_games
from keisei.training.listener import SilentListener, Update
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.worker_setup import resolved
from keisei.training.run import torch_threads
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager

_TOP = 15  # functions kept for the report
_TELL_SECONDS = 5.0


@dataclass(frozen=True)
class Recorded:
    """What a pass left. steps: moves trained on after each update. stacks: by process name."""

    records: list[Record]
    memory: list[Memory]
    stacks: dict[str, Stacks]
    steps: list[int]
    numerics: Numerics
    notices: list[str]


def notes_of(found: Mapping[Instrument, Recorded], workers: int) -> list[str]:
    """Return what the passes noticed and what their records lack, each line with the names of its passes.

    workers: those of every pass but `kernels`, which has none.
    """
    passes: dict[str, dict[str, None]] = {}  # by text; an ordered set of names
    for instrument, recorded in found.items():
        missing = _missing(recorded.records[1:], 0 if instrument == "kernels" else workers)
        for text in [*recorded.notices, *missing]:
            passes.setdefault(text, {})[instrument.replace("_", " ")] = None
    return [f"{', '.join(names)}: {text}" for text, names in passes.items()]


def _missing(records: Sequence[Record], workers: int) -> Iterator[str]:
    if len(records) < workers:
        yield (
            f"{workers - len(records)} of {workers} workers left no record: killed before they could write; "
            "what they did is not counted"
        )
    for record in records:
        if record.is_replacement:
            yield (
                f"{record.name}, is a replacement: what its worker did before is not counted, so the "
                "workers' part is too small"
            )


class PassListener(SilentListener):
    """Tells how far a pass is, every few seconds, and keeps the steps after each update and the notices."""

    def __init__(self, total_steps: int, tell: Callable[[str], None]) -> None:
        self.steps: list[int] = []
        self.notices: list[str] = []
        self._total, self._tell = total_steps, tell
        self._told_at = time.monotonic()
        self.after_update: Callable[[], None] = lambda: None

    def update(self, update: Update) -> None:
        """Keep the step; tell if it is time."""
        self.steps.append(update.step)
        self.after_update()
        if time.monotonic() - self._told_at >= _TELL_SECONDS:
            self._told_at = time.monotonic()
            self._tell(f"{update.step:,} of {self._total:,} moves")

    def notice(self, text: str) -> None:
        """Keep a notice for the report."""
        self.notices.append(text)


def run_pass(
    config: AppConfig,
    instrument: Instrument,
    folder: Path,
    *,
    directory: RunDirectory | None = None,
    numerics: Numerics | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Recorded:
    """Train as the config says, recorded by an instrument, and return what was found.

    directory: where the run evaluates and saves; None for neither. numerics: measured if None.
    """
    folder.mkdir(parents=True)
    device = choose_device(config.run.device)
    listener = PassListener(config.training.total_timesteps, tell)
    with torch_threads(config), ExitStack() as stack:
        config = resolved(config, device)
        clock = ProfileClock()
        trainer = Trainer(config, device, numerics=numerics, clock=clock)
        collector = _collector(config, trainer.agent, folder, instrument, listener.notice)
        loop = TrainingLoopManager(trainer, collector, directory, listeners=[listener])
        memory = MemorySampler(lambda: list(process_tree(os.getpid()).names()))
        if instrument == "phases":  # elsewhere its own stacks and calls would be recorded too
            stack.enter_context(memory)
            listener.after_update = memory.sample  # however short the run is, every worker is seen
        stack.enter_context(recording(instrument, folder, "learner"))
        spy = None
        if instrument == "native_stacks":
            spy = stack.enter_context(PySpy(os.getpid(), folder))
        loop.run()
    write_record(folder, "learner", "learner", os.getpid(), clock)
    records = read_records(folder)
    names = {record.pid: record.name for record in records.values()}
    memories = [Memory(names[pid], samples) for pid, samples in memory.samples.items() if pid in names]
    if spy is not None:
        stacks = {names[pid]: found for pid, found in spy.stacks.items() if pid in names}
        listener.notices += [f"No flame graph: {spy.problem}"] if spy.problem else []
    else:
        files = {stem: folder / f"{stem}.stacks" for stem in records}
        stacks = {records[stem].name: read_stacks(path) for stem, path in files.items() if path.exists()}
    return Recorded(
        list(records.values()), memories, stacks, listener.steps, trainer.agent.numerics, listener.notices
    )


def _collector(
    config: AppConfig,
    agent: LearningAgent,
    folder: Path,
    instrument: Instrument,
    notice: Callable[[str], None],
) -> Collector:
    if not config.training.parallel.enabled:
        return make_collector(config, agent, notice=notice)
    return ParallelManager(
        config,
        agent,
        games=new_games(config),
        notice=notice,
        worker=ProfiledWorker,
        worker_arguments=(folder.resolve(), instrument),
    )


def functions_of(folder: Path) -> dict[str, list[Function]]:
    """Return the functions that took longest, of the learner and of all workers together.

    Reads the .prof of each process, and writes merged.prof beside them.
    """
    learner, workers = folder / "learner.prof", sorted(folder.glob("worker*.prof"))
    pstats.Stats(str(learner), *map(str, workers)).dump_stats(folder / "merged.prof")
    found = {"learner": _top(pstats.Stats(str(learner)))}
    if workers:
        found["workers together"] = _top(pstats.Stats(*map(str, workers)))
    return found


def _top(stats: pstats.Stats) -> list[Function]:
    rows = stats.stats.items()  # type: ignore[attr-defined]
    longest = sorted(rows, key=lambda row: -row[1][2])[:_TOP]
    return [
        Function(_function_name(*where), calls, own, cumulative)
        for where, (_, calls, own, cumulative, _) in longest
    ]


def _function_name(file: str, line: int, function: str) -> str:
    return function if file == "~" else f"{Path(file).parent.name}/{Path(file).name}:{line} {function}"


def merged(stacks: dict[str, Stacks]) -> Stacks:
    """Return the stacks of all processes, each below its process's name."""
    return Counter({f"{name};{stack}": count for name, own in stacks.items() for stack, count in own.items()})
