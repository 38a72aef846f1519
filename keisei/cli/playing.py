"""usi, play: the network as an engine, and as an opponent in the terminal."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import GameNumber, Lang, MaxMoves, PlayerOrShipped, is_player, one_game, or_a_player
from keisei.language import Speaker, speaker_for
from keisei.runs.find import SHIPPED, NothingFoundError, find_checkpoint
from keisei.usi import main as engine
from keisei.usi import play as terminal
from keisei.usi.opponent import Opponent
from keisei.usi.play_setup import set_up

VISITS = 400


def usi(
    where: PlayerOrShipped = SHIPPED,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Set an option's default; can be repeated."),
    ] = None,
) -> None:
    """Run as a USI engine for a shogi GUI or another program: commands on stdin, answers on stdout.

    keisei usi

    keisei usi runs/first --option Visits=400

    keisei usi alphabeta-3
    """
    options = _named(option or [])
    if is_player(where):
        players = import_module("keisei.cli.player_engine")
        raise typer.Exit(players.run(where, options))
    try:
        network = engine.network(find_checkpoint(where))
    except NothingFoundError as error:
        raise or_a_player(error) from error
    raise typer.Exit(engine.talk(network, options))


def play(
    opponent: Annotated[
        str,
        typer.Argument(
            metavar="OPPONENT",
            help="A run or checkpoint, as for usi: shipped, latest, RUN, RUN@best, RUN@STEP; or random, "
            "greedy, material, alphabeta-1 to alphabeta-6, 'RUN;visits=100', 'usi:COMMAND;depth=1'.",
        ),
    ] = SHIPPED,
    color: Annotated[
        str | None,
        typer.Option(
            help="Your side: black (moves first), white or random.",
            show_default="black; with --from, the side to move",
        ),
    ] = None,
    visits: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1_000_000_000,
            help="Search visits per move of a network; 0 plays from the policy alone.",
            show_default=str(VISITS),
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Play on from a game (.kif, .ki2, .csa, .usi) or a position (.sfen).",
        ),
    ] = None,
    moves: Annotated[
        int | None,
        typer.Option(
            "--move", metavar="N", min=0, help="With --from: after move N.", show_default="the last move"
        ),
    ] = None,
    game_number: GameNumber = None,
    sfen: Annotated[
        str | None, typer.Option(help="The position to start from, also with moves: 'startpos moves 7g7f'.")
    ] = None,
    handicap: Annotated[str | None, typer.Option(help="White's handicap, such as lance or 2-piece.")] = None,
    declaration: Annotated[str, typer.Option(help="Rule for declaring a win: 27, 24, try or off.")] = "27",
    max_moves: MaxMoves = 512,
    save: Annotated[Path | None, typer.Option(help="Save the game to this .kif, .csa or .usi file.")] = None,
    lang: Lang = None,
) -> None:
    """Play a game against a trained network or another player in the terminal; type help for the commands.

    keisei play

    keisei play runs/first --color white --save game.kif

    keisei play alphabeta-2 --handicap 2-piece

    keisei play runs/first --from game.kif --move 40

    Moves are typed as 7g7f, 76歩, P-7f or 7776FU.
    """
    speaker = speaker_for(lang)
    if record is None and (game_number is not None or moves is not None):
        raise typer.BadParameter("--move and --game choose from a file: expected --from FILE too")
    game = set_up(
        sfen=sfen,
        handicap=handicap,
        record=None if record is None else one_game(record, game_number),
        moves=moves,
        max_moves=max_moves,
        declaration=declaration,
    )
    side = color if color is not None else "black" if record is None else str(game.turn)
    raise typer.Exit(
        terminal.main(
            lambda: _opponent(opponent, visits, speaker), game, color=side, save=save, speaker=speaker
        )
    )


def _opponent(text: str, visits: int | None, say: Speaker) -> Opponent:
    """Return a run's network, which gives hints, or any other player that `keisei evaluate` knows."""
    if not is_player(text):
        try:
            path = find_checkpoint(text)
        except NothingFoundError as error:
            raise or_a_player(error) from error
        _show_on_a_terminal(say("play.loading"))
        network = import_module("keisei.usi.network_opponent")  # loads numpy: mistakes are reported first
        loaded: Opponent = network.NetworkOpponent.load(path, VISITS if visits is None else visits)
        return loaded
    if visits is not None:
        raise typer.BadParameter(f"--visits is for a run or checkpoint, the opponent is {text}")
    if text.startswith("usi:"):
        _show_on_a_terminal(say("play.starting"))
    players = import_module("keisei.cli.player_opponent")
    player: Opponent = players.load_player(text)
    return player


def _show_on_a_terminal(line: str) -> None:
    if sys.stdout.isatty():
        print(line, flush=True)


def _named(options: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in options]
    for name, equals, value in pairs:
        if not name or not equals:
            raise typer.BadParameter(f"--option {name}{equals}{value}: expected NAME=VALUE")
    return {name: value for name, _, value in pairs}
