"""perft, show, convert: rules and game records. Loads neither numpy nor torch."""

import time
from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import GameNumber, all_games, one_game
from keisei.shogi import START_SFEN, write_record
from keisei.shogi import perft as count_nodes
from keisei.shogi.perft_counts import divided_perft


def perft(
    depth: Annotated[int, typer.Argument(min=0, max=100, help="Length of the sequences.")],
    sfen: Annotated[str, typer.Argument(help="SFEN, in quotes.", show_default="start")] = START_SFEN,
    divide: Annotated[bool, typer.Option("--divide", help="Print one line per first move.")] = False,
    kings: Annotated[
        str, typer.Option(help="Who must have a king: both, or only the defender, as in mate problems.")
    ] = "both",
) -> None:
    """Count the legal move sequences of a given length, to check and time the move generator.

    keisei perft 5

    keisei perft 3 "7lk/9/8S/9/9/9/9/7L1/8K b P 1" --divide
    """
    if kings not in ("both", "defender"):
        raise typer.BadParameter(f"--kings is {kings!r}, expected both or defender")
    start = time.perf_counter()
    if divide and depth > 0:
        nodes = 0
        for move, count in divided_perft(sfen, depth, kings=kings):
            print(f"{move} {count}", flush=True)
            nodes += count
    else:
        nodes = count_nodes(sfen, depth, kings=kings)
    seconds = time.perf_counter() - start
    print(f"depth {depth}: {nodes} nodes in {seconds:.3f} s, {nodes / seconds / 1e6:.1f} million nodes/s")


def show(
    record: Annotated[Path, typer.Argument(help="A .csa, .kif, .kifu, .ki2, .ki2u, .usi or .sfen file.")],
    ply: Annotated[int | None, typer.Option(help="Position after this many moves; default the last.")] = None,
    game_number: GameNumber = None,
) -> None:
    """Check a game record against the rules, and print its result and a position.

    keisei show game.kif --ply 40

    keisei show match.csa --game 17
    """
    read = one_game(record, game_number)
    if ply is not None and not 0 <= ply <= len(read.moves):
        raise typer.BadParameter(f"--ply is {ply}, expected 0 to {len(read.moves)}")
    game = read.game()
    while ply is not None and len(game.history) > ply:
        game.pop()
    players = f"☗{read.black or '?'} ☖{read.white or '?'}"
    print(f"{players}: {len(read.moves)} moves, {read.outcome or 'unfinished'}\n{game}")


def convert(
    source: Annotated[Path, typer.Argument(help="A .csa, .kif, .kifu, .ki2, .ki2u, .usi or .sfen file.")],
    target: Annotated[Path, typer.Argument(help="The file to write; its extension sets the format.")],
    game_number: GameNumber = None,
    each: Annotated[
        bool, typer.Option("--each", help="Convert every game, to TARGET-001, TARGET-002 and so on.")
    ] = False,
) -> None:
    """Convert a game record (CSA, KIF, KI2, USI) to CSA, KIF or USI, checking every move.

    keisei convert game.kif game.csa

    keisei convert match.csa game.kif --each
    """
    if each and game_number is not None:
        raise typer.BadParameter("both --each and --game are given, expected one of them")
    if not each and target.exists() and source.exists() and target.samefile(source):
        raise typer.BadParameter(f"{target} is the record to be read: expected another file")
    if not each:
        write_record(target, one_game(source, game_number))
        return
    games = all_games(source)
    digits = max(3, len(str(len(games))))
    for number, record in enumerate(games, 1):
        write_record(target.with_stem(f"{target.stem}-{number:0{digits}}"), record)
