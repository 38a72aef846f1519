"""train, doctor. keisei.training loads torch on first use, so mistakes in settings are reported at once."""

import sys
from typing import Annotated

import typer

from keisei import training
from keisei.config.files import load_config
from keisei.runs.find import find_run


def train(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="SETTING=VALUE", help="Settings to change: training.learning_rate=0.001"),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="A YAML file, or default, gpu or tiny.", show_default="default"),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN_OR_CHECKPOINT",
            help="Continue a run: latest, RUN, RUN@best, RUN@latest, RUN@STEP, or a checkpoint's path. "
            "latest skips damaged checkpoints. --config replaces all of the run's settings, "
            "SETTING=VALUE only those named.",
        ),
    ] = None,
    total_timesteps: Annotated[int | None, typer.Option(help="Short for training.total_timesteps=…")] = None,
) -> None:
    """Train a player by self-play; Ctrl-C saves, and --resume continues from there.

    keisei train run.name=first training.total_timesteps=1000000

    keisei train --resume latest

    keisei config --describe lists the settings.
    """
    changes = [*(overrides or [])]
    if total_timesteps is not None:
        changes.append(f"training.total_timesteps={total_timesteps}")
    command = ["keisei", *sys.argv[1:]]
    if resume is None:
        settings = load_config(config, changes)
        raise typer.Exit(training.begin_run(settings, command).exit_code)
    found = find_run(resume, config, changes)
    raise typer.Exit(training.resume_run(found, config, changes, command).exit_code)


def doctor(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="SETTING=VALUE", help="As for train: run.device=cpu")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="A YAML file, or default, gpu or tiny.", show_default="default")
    ] = None,
) -> None:
    """Report what this machine offers for training, and measure which numeric formats are fast here.

    keisei doctor --config gpu
    """
    settings = load_config(config, overrides or [])
    for subject, finding in training.diagnose(settings):
        print(f"{subject:15} {finding}", flush=True)
