"""usi, play: the network as an engine, and as an opponent in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import MaxMoves, Where
from keisei.usi import main as engine
from keisei.usi import play as terminal


def usi(
    where: Where,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Set an option's default; can be repeated."),
    ] = None,
) -> None:
    """Run as a USI engine for a shogi GUI or another program: commands on stdin, answers on stdout.

    keisei usi runs/first --option Visits=400
    """
    raise typer.Exit(engine.main(where, _named(option or [])))


def play(
    where: Where,
    color: Annotated[str, typer.Option(help="Your side: black (moves first), white or random.")] = "black",
    visits: Annotated[
        int, typer.Option(min=0, help="Search visits per move; 0 plays from the policy alone.")
    ] = 400,
    sfen: Annotated[str | None, typer.Option(help="The position to start from.")] = None,
    handicap: Annotated[str | None, typer.Option(help="White's handicap, such as lance or 2-piece.")] = None,
    declaration: Annotated[str, typer.Option(help="Rule for declaring a win: 27, 24, try or off.")] = "27",
    max_moves: MaxMoves = 512,
    save: Annotated[Path | None, typer.Option(help="Save the game to this .kif, .csa or .usi file.")] = None,
) -> None:
    """Play a game against a trained network in the terminal; type help for the commands.

    keisei play runs/first --color white --save game.kif
    """
    raise typer.Exit(
        terminal.main(
            where,
            color=color,
            visits=visits,
            sfen=sfen,
            handicap=handicap,
            declaration=declaration,
            max_moves=max_moves,
            save=save,
        )
    )


def _named(options: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in options]
    for name, equals, value in pairs:
        if not name or not equals:
            raise typer.BadParameter(f"--option {name}{equals}{value}: expected NAME=VALUE")
    return {name: value for name, _, value in pairs}
