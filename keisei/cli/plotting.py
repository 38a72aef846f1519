"""plot: training curves and ratings. The only command that always loads matplotlib."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import check_target
from keisei.runs.find import NothingFoundError, find
from keisei.training.plot import plot_rating, plot_run, plot_runs
from keisei.training.summary_plot import plot_summary


def plot(
    runs: Annotated[
        list[str],
        typer.Argument(help="Runs, by path or name in runs, or latest; several share one picture."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file; RUN/plots/curves.png if not given.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(help="Draw only scores and Elo of one run, in large type, to this .png or .svg file."),
    ] = None,
) -> None:
    """Plot the training curves and ratings of a run, or the curves of several runs in one picture.

    keisei plot runs/first

    keisei plot runs/seed1 runs/seed2 --out seeds.svg

    keisei plot runs/first --summary first.png
    """
    paths = [_path(run) for run in runs]
    for option, file in (("--out", out), ("--summary", summary)):
        if file is not None:
            check_target(option, file)
    if summary is not None:
        if out is not None or len(paths) > 1:
            raise typer.BadParameter("--summary draws one run: expected one RUN, and no --out")
        print(plot_summary(paths[0], summary))
        return
    if out is None and len(paths) > 1:
        raise typer.BadParameter(f"--out is missing: expected a file for the picture of {len(paths)} runs")
    if out is not None:
        print(plot_runs(paths, out))
        return
    print(plot_run(paths[0]))
    if (ratings := plot_rating(paths[0])) is not None:
        print(ratings)


def _path(run: str) -> Path:
    """Return the directory of a run; what is plotted needs no checkpoint."""
    if run and not Path(run).exists():
        with suppress(NothingFoundError):
            return find(run).run or Path(run)
    return Path(run)
