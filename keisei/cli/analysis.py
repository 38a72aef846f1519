"""analyze: what a network thinks of a game."""

import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from keisei.analysis.analysis_report import POINTS, commented, graph, summary, table
from keisei.analysis.game_analysis import Analyst, PositionValue
from keisei.cli.arguments import GameNumber, Lang, check_target, one_game
from keisei.language import ENGLISH, Speaker, speaker_for
from keisei.runs.find import SHIPPED, find_checkpoint
from keisei.shogi import write_record

_COMMENTED = (".kif", ".kifu", ".csa")  # the formats with comments


def analyze(
    record: Annotated[
        Path, typer.Argument(metavar="GAME", help="A .kif, .kifu, .ki2, .ki2u, .csa or .usi file.")
    ],
    network: Annotated[
        str,
        typer.Option(
            metavar="RUN_OR_CHECKPOINT",
            help="Who analyzes: shipped, latest, RUN, RUN@best, RUN@STEP, or a checkpoint's path.",
        ),
    ] = SHIPPED,
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN_OR_CHECKPOINT", help="A second network to compare the first one with."),
    ] = None,
    visits: Annotated[int, typer.Option(min=1, max=1_000_000, help="Search visits per position.")] = 400,
    missed: Annotated[
        float,
        typer.Option(min=0, max=100, help="Name a better move where so many percentage points were lost."),
    ] = 10.0,
    game_number: GameNumber = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the game with comments to this new .kif or .csa file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the win rate over the game to this .png or .svg file.")
    ] = None,
    lang: Lang = None,
) -> None:
    """Analyze a game with a network: the win rate at every move, a graph, and the better moves missed.

    keisei analyze game.kif --network runs/first

    keisei analyze game.csa --visits 1000 --out analyzed.kif --plot game.png

    keisei analyze game.kif --network runs/first@best --against runs/first@100000
    """
    speaker = speaker_for(lang)
    game = one_game(record, game_number)
    if not game.moves:
        raise typer.BadParameter(f"{record} has no moves: expected a game")
    speaker = speaker.of_game(game.sfen)
    if out is not None:
        _check_new(out)
    if plot is not None:
        drawing = import_module("keisei.analysis.value_plot")  # loads matplotlib
        drawing.check_picture(plot)
        check_target("--plot", plot)
    analysts = [Analyst.load(find_checkpoint(text)) for text in (network, against) if text is not None]
    analyses = [
        analyst.analyze(game, visits=visits, progress=_Progress(analyst.name, speaker))
        for analyst in analysts
    ]
    first, share = analyses[0], missed / 100
    players = f"☗{game.black or '?'} ☖{game.white or '?'}"
    outcome = speaker.outcome(game.outcome)
    print(speaker("analysis.game", players=players, moves=len(game.moves), outcome=outcome))
    for mark, analysis in zip(POINTS, analyses, strict=False):
        print(speaker("analysis.network", mark=mark, network=analysis.network, visits=visits))
    caption = [speaker("analysis.graph")] if speaker != ENGLISH else []
    for block in (
        table(game, analyses, share, speaker),
        [*caption, *graph(analyses, shutil.get_terminal_size().columns)],
        summary(first, share, speaker),
    ):
        print("\n" + "\n".join(block))
    if out is not None:
        write_record(out, commented(game, first, share, speaker))
        print(f"\n{speaker('analysis.written', path=out)}")
    if plot is not None:
        print(speaker("analysis.drawn", path=drawing.plot_game(plot, analyses, share)))


def _check_new(path: Path) -> None:
    if path.suffix.lower() not in _COMMENTED:
        raise typer.BadParameter(f"--out is {path}, expected a file that ends in {', '.join(_COMMENTED)}")
    if path.exists():
        raise typer.BadParameter(f"--out is {path}, which already exists")
    check_target("--out", path)


class _Progress:
    """A line on the error output, if that is a terminal."""

    def __init__(self, name: str, speaker: Speaker) -> None:
        self._name = name
        self._say = speaker

    def __call__(self, values: Sequence[PositionValue], of: int) -> None:
        if sys.stderr.isatty():
            end = "\r\x1b[K" if len(values) == of else ""
            line = self._say("analysis.progress", network=self._name, done=len(values), of=of)
            print(f"\r{line}{end}", end="", file=sys.stderr, flush=True)
