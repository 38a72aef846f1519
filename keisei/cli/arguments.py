"""Arguments and options shared by several commands."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.shogi import GameRecord, read_records

Where = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_CHECKPOINT",
        help="latest, RUN, RUN@best, RUN@latest, RUN@STEP, or a checkpoint's path; a run alone means its "
        "best checkpoint, or its last.",
    ),
]
# For commands that play: without a run they have the network that comes with the package.
WhereOrShipped = Annotated[
    str,
    typer.Argument(
        metavar="[RUN_OR_CHECKPOINT]",
        help="latest, RUN, RUN@best, RUN@latest, RUN@STEP, or a checkpoint's path; a run alone means its "
        "best checkpoint, or its last. shipped is the network that comes with Keisei.",
    ),
]
MaxMoves = Annotated[int, typer.Option(min=2, max=100_000, help="Longer games are drawn.")]
GameNumber = Annotated[int | None, typer.Option("--game", min=1, help="Which game, if the file has several.")]


def one_game(path: Path, number: int | None) -> GameRecord:
    """Return the game with this number in a file, or its only game."""
    games = read_records(path)
    if number is None and len(games) != 1:
        raise typer.BadParameter(f"{path} has {len(games)} games: expected --game 1 to {len(games)}")
    if (number or 1) > len(games):
        raise typer.BadParameter(f"--game is {number}, expected 1 to {len(games)}")
    return games[(number or 1) - 1]
