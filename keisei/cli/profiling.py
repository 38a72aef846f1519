"""profile. keisei.profiling loads torch, so it is imported after the settings are checked."""

import sys
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from keisei.config.files import load_config


class Mode(StrEnum):
    """Who plays the games."""

    SERIAL = "serial"
    PARALLEL = "parallel"


def profile(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="SETTING=VALUE", help="As for train: model.channels=64")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="A YAML file, or default, ppo, gpu or tiny.", show_default="default")
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(help="Play in the learner, or in workers.", show_default="as the config says"),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes.")] = None,
    timesteps: Annotated[
        int | None, typer.Option(min=1, max=10**15, help="Moves of each pass.", show_default="10 updates")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for the report.", show_default="profiles/MODE_TIME")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="An earlier report's folder or report.json to compare with.")
    ] = None,
    evaluation: Annotated[bool, typer.Option("--evaluation", help="Play the run's matches too.")] = False,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Record torch's kernels too, in a pass of its own.")
    ] = False,
    pid: Annotated[
        int | None, typer.Option(min=1, help="Look at a running training: its learner's process id.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, max=3600, help="How long to look, with --pid.", show_default="20"),
    ] = None,
) -> None:
    """Show where the time of a training goes: phases, functions, stacks and memory of every process.

    keisei profile --mode parallel --workers 2

    keisei profile model.channels=64 --against profiles/before

    keisei profile --pid 4711

    Trains three times for a few seconds: undisturbed, with stacks sampled, and under cProfile.

    Stacks have native frames where py-spy may trace: CAP_SYS_PTRACE in a container.

    docs/profiling.md explains the report.
    """
    settings = load_config(config, overrides or [])
    for name, _, value in (override.partition("=") for override in overrides or []):
        if name == "training.total_timesteps":
            raise typer.BadParameter(f"{name} does not apply to a profile; use --timesteps {value}")
    if pid is not None and (overrides or config or mode or workers or timesteps or evaluation or kernels):
        raise typer.BadParameter("--pid looks at a training as it is; it takes --seconds, --out, --against")
    if pid is None and seconds is not None:
        raise typer.BadParameter("--seconds is for --pid; --timesteps says how long a profiled training is")
    profiling = import_module("keisei.profiling.profile")  # loads torch
    command = ["keisei", *sys.argv[1:]]
    kind = "pid" if pid is not None else mode or "train"
    folder = out or Path("profiles") / f"{kind}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    if pid is not None:
        profiling.attach(pid, seconds or 20, folder, against=against, command=command)
    else:
        short = profiling.settings_for(settings, mode, workers, timesteps, evaluation=evaluation)
        try:
            profiling.profile(
                short, folder, evaluation=evaluation, kernels=kernels, against=against, command=command
            )
        except profiling.TrainingFailedError as error:  # exits as train does
            print(f"keisei: {error}", file=sys.stderr)
            raise typer.Exit(1) from error
    print((folder / "report.md").read_text(encoding="utf-8").split("\n## ")[0].rstrip())
    print(f"\n{folder / 'report.md'}")
