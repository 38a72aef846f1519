"""Arguments and options shared by several commands."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.errors import refuse_special
from keisei.runs.find import NothingFoundError
from keisei.shogi import GameRecord, NotationError, RulesError, read_records

Where = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_CHECKPOINT",
        help="latest, RUN, RUN@best, RUN@latest, RUN@STEP, or a checkpoint's path; a run alone means its "
        "best checkpoint, or its last.",
    ),
]
# For commands that play: without a run they have the network that comes with the package.
PlayerOrShipped = Annotated[
    str,
    typer.Argument(
        metavar="PLAYER",
        help="latest, RUN, RUN@best, RUN@latest, RUN@STEP, or a checkpoint's path; a run alone means its "
        "best checkpoint, or its last. shipped is the network that comes with Keisei. Or random, greedy, "
        "material, alphabeta-1 to alphabeta-6, 'RUN;visits=100', 'usi:COMMAND;depth=1'.",
    ),
]
PLAYERS = ("random", "greedy", "material")  # and alphabeta-N; the rest of a player text has a sign in it
MaxMoves = Annotated[int, typer.Option(min=2, max=100_000, help="Longer games are drawn.")]
Lang = Annotated[
    str | None,
    typer.Option(metavar="en|ja", help="English or Japanese.", show_default="as the locale says"),
]
GameNumber = Annotated[int | None, typer.Option("--game", min=1, help="Which game, if the file has several.")]


def is_player(text: str) -> bool:
    """Return whether a text names a player other than a run or checkpoint alone, see make_player."""
    return text in PLAYERS or text.startswith(("alphabeta-", "usi:")) or ";" in text


def or_a_player(error: NothingFoundError) -> NothingFoundError:
    """Return the refusal of a run or checkpoint where players are taken too."""
    return NothingFoundError(
        f"{error}; or a player: {', '.join(PLAYERS)}, alphabeta-N or usi:COMMAND;depth=N"
    )


def one_game(path: Path, number: int | None) -> GameRecord:
    """Return the game with this number in a file, or its only game."""
    games = all_games(path)
    if number is None and len(games) != 1:
        raise typer.BadParameter(f"{path} has {len(games)} games: expected --game 1 to {len(games)}")
    if (number or 1) > len(games):
        raise typer.BadParameter(f"--game is {number}, expected {_numbers(len(games))}")
    return games[(number or 1) - 1]


def all_games(path: Path) -> list[GameRecord]:
    """Return the games in a file, of which there is at least one; errors name the file."""
    try:
        games = read_records(path)
    except (NotationError, RulesError) as error:
        named = path.name in str(error)  # as where its ending is unknown
        raise error if named else type(error)(f"{path}: {error}") from error
    if not games:
        raise typer.BadParameter(f"{path} has no game: expected at least one")
    return games


def check_target(option: str, path: Path, *, or_directory: bool = False) -> None:
    """Reject a file to be written where there is no directory for it, or something else than a file."""
    if not path.parent.is_dir():
        raise typer.BadParameter(f"{option} is {path}, but there is no directory {path.parent}")
    refuse_special(path)
    if path.is_dir() and not or_directory:
        raise typer.BadParameter(f"{option} is {path}, which is a directory, expected a file")


def _numbers(count: int) -> str:
    return "1" if count == 1 else f"1 to {count}"
