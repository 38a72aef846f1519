"""watch: the games of a running training. Loads neither numpy nor torch."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import Lang
from keisei.language import speaker_for
from keisei.runs.find import LATEST, RUN, NothingFoundError, find
from keisei.runs.run_directory import RunDirectoryError, is_running
from keisei.usi.watch import Watcher, after_the_end

_RUNS = Path("runs")


def watch(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="A run's path, or its name in runs; latest.",
            show_default="the one training",
        ),
    ] = None,
    speed: Annotated[float, typer.Option(min=0.1, max=1000, help="Moves per second.")] = 2.0,
    lang: Lang = None,
) -> None:
    """Watch the games of a running training: board, moves, the network's estimate and results.

    keisei watch

    keisei watch runs/first --speed 5

    It shows one game to its end, then the next; Ctrl-C ends it.

    A training reports games only while somebody watches, and learns the same.
    """
    speaker = speaker_for(lang)
    path = _running() if run is None else _named(run)
    if not is_running(path):
        print("\n".join(after_the_end(path, speaker)))
        return
    Watcher(path, speed, sys.stdout, speaker).watch()


def _named(text: str) -> Path:
    """Return the run that a text names."""
    with suppress(NothingFoundError):
        if (path := find(text).run) is not None:
            return path
    raise RunDirectoryError(f"no run at {text or repr(text)}: expected a run's path, or its name in {_RUNS}")


def _running() -> Path:
    """Return the run that is training and began or was resumed last, or else the run that saved last."""
    runs = [file.parent for file in _RUNS.glob(f"*/{RUN}") if is_running(file.parent)]
    return max(runs, key=lambda run: (run / RUN).stat().st_mtime) if runs else _named(LATEST)
