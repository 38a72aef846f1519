"""plot: training curves and ratings. The only command that always loads matplotlib."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import check_directory
from keisei.training.plot import plot_rating, plot_run, plot_runs
from keisei.training.summary_plot import plot_summary


def plot(
    runs: Annotated[list[Path], typer.Argument(help="Run directories; several share one picture.")],
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
    for option, file in (("--out", out), ("--summary", summary)):
        if file is not None:
            check_directory(option, file)
    if summary is not None:
        if out is not None or len(runs) > 1:
            raise typer.BadParameter("--summary draws one run: expected one RUN, and no --out")
        print(plot_summary(runs[0], summary))
        return
    if out is None and len(runs) > 1:
        raise typer.BadParameter(f"--out is missing: expected a file for the picture of {len(runs)} runs")
    if out is not None:
        print(plot_runs(runs, out))
        return
    print(plot_run(runs[0]))
    if (ratings := plot_rating(runs[0])) is not None:
        print(ratings)
