"""train, doctor. keisei.training loads torch on first use, so mistakes in settings are reported at once."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from keisei import training
from keisei.cli.web import require_web
from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.device import under_torchrun
from keisei.runs.find import Found, find_run, run_started_by
from keisei.web.beside import page_beside

_RANKS = "training.ranks."


def train(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="SETTING=VALUE", help="Settings to change: training.learning_rate=0.001"),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="A YAML file, or default, ppo, gpu or tiny.", show_default="default"),
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
    web: Annotated[
        bool, typer.Option("--web", help="Show it on a page in the browser, until it ends; see keisei web.")
    ] = False,
) -> None:
    """Train a player by self-play; Ctrl-C saves, and --resume continues from there.

    keisei train run.name=first training.total_timesteps=1000000

    keisei train --resume latest

    keisei train --web

    torchrun --nproc-per-node 2 --no-python keisei train

    keisei config --describe lists the settings.
    """
    changes = [*(overrides or [])]
    if total_timesteps is not None:
        changes.append(f"training.total_timesteps={total_timesteps}")
    command = ["keisei", *sys.argv[1:]]
    meeting = [change for change in changes if resume is None or change.startswith(_RANKS)]
    settings = load_config(config, meeting)
    if web:
        require_web()
    if settings.training.ranks.address is None and not under_torchrun():
        raise typer.Exit(_train(settings, config, resume, changes, command, web, {}).exit_code)
    with training.join_ranks(settings.training.ranks) as ranks, _lost_rank_in_one_line():
        if ranks.rank:
            named = [change for change in changes if change.startswith("model.name=")]
            own_network = load_config(config, named).model.name
            raise typer.Exit(training.follow_run(ranks, own_network).exit_code)
        if resume is None and training.was_restarted():
            begun = run_started_by(Path(settings.run.directory), os.getppid())
            resume = None if begun is None else str(begun)
        raise typer.Exit(_train(settings, config, resume, changes, command, web, {"ranks": ranks}).exit_code)


@contextmanager
def _lost_rank_in_one_line() -> Iterator[None]:
    """Report a rank that is lost before the training begins; later the run itself does."""
    try:
        yield
    except training.RankError as error:
        print(f"keisei: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


def _train(
    settings: AppConfig,
    source: str | None,
    resume: str | None,
    changes: list[str],
    command: list[str],
    web: bool,
    ranks: dict[str, Any],
) -> "training.RunResult":
    """Begin or resume a run; web: with a page beside it; ranks: the argument of that name, if any."""
    found = None if resume is None else find_run(resume, source, changes)  # before torch is loaded
    with ExitStack() as stack:
        notices = []
        if web:
            at_home = Path(settings.run.directory) if found is None or found.run is None else found.run.parent
            notices = [f"page: {stack.enter_context(page_beside(at_home))}"]
        return _begun(settings, source, found, changes, command, {**ranks, "notices": notices})


def _begun(
    settings: AppConfig,
    source: str | None,
    found: Found | None,
    changes: list[str],
    command: list[str],
    options: dict[str, Any],
) -> "training.RunResult":
    if sys.stdout.isatty() and settings.run.console != "off":
        print("loading torch, which takes some seconds", flush=True)
    if found is None:
        return training.begin_run(settings, command, **options)
    return training.resume_run(found, source, changes, command, **options)


def doctor(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="SETTING=VALUE", help="As for train: run.device=cpu")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="A YAML file, or default, ppo, gpu or tiny.", show_default="default")
    ] = None,
) -> None:
    """Report what this machine offers for training, and measure which numeric formats are fast here.

    keisei doctor --config gpu
    """
    settings = load_config(config, overrides or [])
    for subject, finding in training.diagnose(settings):
        print(f"{subject:15} {finding}", flush=True)
