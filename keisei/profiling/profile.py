"""`keisei profile`: a short training, measured in passes, and the report of it.

Each instrument disturbs what it measures, so each has a training of its own: phases and memory first, which
cost next to nothing, then stacks, then functions. The report says how much slower the later ones were.
"""

import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from keisei.config.files import to_yaml
from keisei.config.schema import AppConfig
from keisei.core.device import choose_device, cores
from keisei.core.learning_agent import NotFiniteError
from keisei.profiling import flame_graph, report
from keisei.profiling.attach import look_at
from keisei.profiling.instruments import Instrument
from keisei.profiling.measurements import (
    ProcessTimes,
    Profile,
    ProfileError,
    origin_of,
    read_profile,
    timeline,
    times_in,
    window,
    write_profile,
)
from keisei.profiling.passes import Recorded, functions_of, merged, notes_of, run_pass
from keisei.profiling.stacks import is_py_spy_allowed, py_spy, write_stacks
from keisei.runs.checkpoint import CheckpointError
from keisei.runs.run_directory import RunDirectory
from keisei.training.machine_limits import check_machine
from keisei.training.parallel.parallel_manager import say
from keisei.training.parallel.supervisor import WorkerError
from keisei.training.parallel.worker_setup import number_of_workers, resolved
from keisei.training.training_loop_manager import SAVED_FIRST

UPDATES = 10  # of a profile, unless the moves are given
REPORT_FILES = {
    "report.json": "these figures, for --against",
    "profile.png": "phases and memory as a picture",
    "flame.svg": "flame graph; open it in a browser",
    "stacks.txt": "the sampled stacks, for speedscope or flamegraph.pl",
    "functions/merged.prof": "cProfile of all processes, for snakeviz; beside it one of each process",
    "kernels/learner.kernels.txt": "torch's kernels; beside it a trace for a browser's trace viewer",
}


class TrainingFailedError(Exception):
    """The training that was profiled failed, by no mistake of the user; the message says why."""


def settings_for(
    config: AppConfig, mode: str | None, workers: int | None, timesteps: int | None, *, evaluation: bool
) -> AppConfig:
    """Return a run's config as it is profiled: short, quiet and, unless asked for, without evaluation."""
    data = config.model_dump()
    training, run = data["training"], data["run"]
    training["total_timesteps"] = timesteps or UPDATES * config.training.steps_per_epoch
    if mode is not None:
        training["parallel"]["enabled"] = mode == "parallel"
    if workers is not None:
        if mode == "serial":
            raise ProfileError(f"--workers {workers} needs --mode parallel; serial has no workers")
        training["parallel"] |= {"enabled": True, "num_workers": workers}
    run |= {"console": "off", "loggers": []}
    if not evaluation:
        run["checkpoint_every"] = 0
        data["evaluation"] |= {"every": 0, "final_games": 0}
    return AppConfig.model_validate(data)


def profile(
    config: AppConfig,
    out: Path,
    *,
    evaluation: bool = False,
    kernels: bool = False,
    against: Path | None = None,
    command: Sequence[str],
) -> Profile:
    """Train as the config says, measure it, and write the report to the new folder `out`."""
    earlier = None if against is None else read_profile(against)
    device = choose_device(config.run.device)
    config = resolved(config, device)
    check_machine(config, device.type)
    native = is_py_spy_allowed()
    origin = origin_of(command)
    plan: list[Instrument] = ["phases", "native_stacks" if native else "python_stacks", "functions"]
    plan += ["kernels"] if kernels else []
    with _new_folder(out):
        found = _trained(config, plan, out, evaluation=evaluation, command=command)
        measured = _profile_of(config, found, out, origin, native=native)
        return _written(measured, merged(found[plan[1]].stacks), out, earlier)


def _trained(
    config: AppConfig, plan: Sequence[Instrument], out: Path, *, evaluation: bool, command: Sequence[str]
) -> dict[Instrument, Recorded]:
    """Train once for each instrument; TrainingFailedError where `keisei train` would exit with code 1."""
    found: dict[Instrument, Recorded] = {}
    for number, instrument in enumerate(plan, start=1):
        label = f"pass {number} of {len(plan)}, {instrument.replace('_', ' ')}"
        say(f"{label}: {config.training.total_timesteps:,} moves")
        with ExitStack() as stack:
            directory = None
            if evaluation and instrument == "phases":
                directory = stack.enter_context(_run_directory(config, out, command))
            try:
                found[instrument] = run_pass(
                    _serial(config) if instrument == "kernels" else config,
                    instrument,
                    out / instrument.rpartition("_")[2],
                    directory=directory,
                    numerics=found["phases"].numerics if found else None,
                    tell=lambda text, label=label: say(f"{label}: {text}"),  # type: ignore[misc]
                )
            except (NotFiniteError, CheckpointError, *SAVED_FIRST) as error:
                if isinstance(error, WorkerError):
                    traceback.print_exception(error)  # with the worker's own
                raise TrainingFailedError(f"{label}: {error}; nothing is kept") from error
    return found


def attach(
    pid: int,
    seconds: float,
    out: Path,
    *,
    against: Path | None = None,
    command: Sequence[str],
) -> Profile:
    """Look at a running training and write the report to the new folder `out`."""
    earlier = None if against is None else read_profile(against)
    with _new_folder(out):
        found, stacks = look_at(pid, seconds, out, command=command, tell=say)
        return _written(found, merged(stacks), out, earlier)


@contextmanager
def _new_folder(out: Path) -> Iterator[None]:
    """Make a folder, and remove it again, with the parents it needed, if anything fails inside."""
    if out.exists():
        raise ProfileError(f"{out} exists already; give a new folder with --out")
    made = [parent for parent in out.parents if not parent.exists()]
    out.mkdir(parents=True)
    try:
        yield
    except BaseException:  # Ctrl-C too
        shutil.rmtree(out, ignore_errors=True)
        with suppress(OSError):  # somebody else uses it by now
            for parent in made:
                parent.rmdir()
        raise


def _serial(config: AppConfig) -> AppConfig:
    """Return the config without workers: one process then runs all of torch's kernels."""
    data = config.model_dump()
    data["training"]["parallel"]["enabled"] = False
    return AppConfig.model_validate(data)


def _run_directory(config: AppConfig, out: Path, command: Sequence[str]) -> RunDirectory:
    run = config.run.model_copy(update={"directory": str(out), "name": "run"})
    config = config.model_copy(update={"run": run})
    return RunDirectory.create(config, config_text=to_yaml(config), command=command, now=datetime.now())


def _profile_of(
    config: AppConfig, found: dict[Instrument, Recorded], out: Path, origin: dict[str, Any], *, native: bool
) -> Profile:
    first, parallel = found["phases"], config.training.parallel
    skipped = window(first.records[0]).skipped
    moves, seconds, processes = _measured(first)
    learner, *workers = processes
    workers_expected = number_of_workers(config) if parallel.enabled else 0
    notes = notes_of(found, workers_expected)
    if not native:
        reason = "py-spy may not trace" if py_spy() else "py-spy is not installed"
        notes.append(f"The flame graph has Python frames only: {reason}, see docs/profiling.md.")
    return Profile(
        mode="parallel" if parallel.enabled else "serial",
        workers=workers_expected,
        cores=cores(),
        moves=moves,
        seconds=seconds,
        updates=len(first.steps) - skipped,
        start_seconds=first.records[0].laps[0].ended - first.records[0].laps[0].began,
        network=config.model.described(),
        numerics=str(first.numerics),
        timeline=timeline(learner.wall, [worker.wall for worker in workers]),
        processes=processes,
        memory=first.memory,
        functions=functions_of(out / "functions"),
        speeds={name: _speed(recorded) for name, recorded in found.items() if name != "kernels"},
        notes=notes,
        settings=config.model_dump(mode="json"),
        provenance=origin,
        skipped=skipped,
    )


def _speed(recorded: Recorded) -> float:
    """Return the moves per second of the measured part of a pass."""
    moves, seconds, _ = _measured(recorded)
    return moves / seconds


def _measured(recorded: Recorded) -> tuple[int, float, list[ProcessTimes]]:
    """Return the moves and seconds of the measured part of a pass, and each process's times in it."""
    part = window(recorded.records[0])
    before = recorded.steps[part.skipped - 1] if part.skipped else 0
    processes = [times_in(record, part) for record in recorded.records]
    return recorded.steps[-1] - before, part.ended - part.began, processes


def _written(profile: Profile, stacks: dict[str, int], out: Path, against: Profile | None) -> Profile:
    """Write everything that the report consists of."""
    write_profile(out, profile)
    report.draw(profile).savefig(out / "profile.png")
    if stacks:
        write_stacks(out / "stacks.txt", stacks)
        title = f"keisei, {profile.mode}, {profile.moves_per_second:,.0f} moves/s"
        (out / "flame.svg").write_text(flame_graph.draw(stacks, title), encoding="utf-8")
    files = {name: what for name, what in REPORT_FILES.items() if (out / name).exists()}
    (out / "report.md").write_text(report.markdown(profile, against, files), encoding="utf-8")
    return profile
