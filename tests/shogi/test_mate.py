"""The mate search against plain brute force, and every mate that it claims against all replies."""

import random
import threading
import time
from collections.abc import Iterator

import pytest
from conftest import random_play

from keisei.shogi import Move, RulesError, ShogiGame
from keisei.shogi.mate import find_mate


def mates_within(game: ShogiGame, plies: int) -> bool:
    """Can the side to move force mate in so many plies, giving check with every move? All is tried."""
    mates = False
    for move in game.legal_moves() if plies > 0 else []:
        game.push(move)
        mates = game.is_check() and all_replies_mated(game, plies - 1)
        game.pop()
        if mates:
            break
    return mates


def all_replies_mated(game: ShogiGame, plies: int) -> bool:
    replies = game.legal_moves()
    if not replies:
        return True
    if plies < 2:
        return False
    for reply in replies:
        game.push(reply)
        mated = mates_within(game, plies - 1)
        game.pop()
        if not mated:
            return False
    return True


def is_forced(game: ShogiGame, line: tuple[Move, ...]) -> bool:
    """Play the line; after each of its checks, every reply must be mated as soon as the line promises."""
    here = game.copy()
    for index, move in enumerate(line):
        left = len(line) - index - 1
        here.push(move)
        if index % 2 == 0 and not (here.is_check() and all_replies_mated(here, left)):
            return False
    end = here.outcome()
    return end is not None and end.winner is game.turn and str(end.reason) == "checkmate"


def few_pieces(seed: int, count: int = 4, in_hand: int = 3) -> ShogiGame:
    """A king near its corner and `count` pieces, as in mate problems; up to `in_hand` in Black's hand."""
    draw = random.Random(seed)
    while True:
        pieces = draw.sample(["G", "S", "N", "L", "P", "R", "B", "+P", "+R", "+B", "g", "s", "p", "n"], count)
        squares = draw.sample([(rank, file) for rank in range(4) for file in range(4)], count + 1)
        grid = [["1"] * 9 for _ in range(9)]
        for (rank, file), piece in zip(squares, ["k", *pieces], strict=True):
            grid[rank][8 - file] = piece
        grid[8][0] = "K"
        hand = "".join(sorted(draw.sample("GSNLPRB", draw.randrange(in_hand + 1)))) or "-"
        sfen = "/".join("".join(row) for row in grid) + f" b {hand}"
        try:
            return ShogiGame(f"{sfen} 1", max_moves=None, declaration="off")
        except ValueError:
            continue


@pytest.mark.parametrize(("count", "in_hand"), [(4, 3), (6, 1)])
def test_mates_in_one_and_three_are_found_exactly_where_brute_force_finds_them(count: int, in_hand: int) -> None:
    found: dict[tuple[str, int | None], int] = {}
    for seed in range(250):
        game = few_pieces(seed, count, in_hand)
        answer = find_mate(game, max_nodes=3000)
        shortest = next((plies for plies in (1, 3) if mates_within(game, plies)), None)
        found[answer.kind, shortest] = found.get((answer.kind, shortest), 0) + 1
        assert answer.kind == "mate" if shortest else len(answer.line) not in (1, 3), game.sfen()
    assert min(found[key] for key in [("mate", 1), ("mate", 3), ("mate", None), ("nomate", None)]) > 8


def test_no_mate_is_denied_where_brute_force_finds_one_in_five() -> None:
    denied = 0
    for seed in range(60):
        game = few_pieces(seed, 6, 1)
        if find_mate(game, max_nodes=1000).kind == "nomate":
            assert not mates_within(game, 5), game.sfen()
            denied += 1
    assert denied > 20


def test_every_claimed_mate_is_forced() -> None:
    lengths = set()
    for seed in range(300, 500):
        game = few_pieces(seed)
        answer = find_mate(game, max_nodes=1000)
        if answer.kind == "mate" and len(answer.line) <= 7:
            assert is_forced(game, answer.line), game.sfen()
            lengths.add(len(answer.line))
    assert lengths == {1, 3, 5, 7}


def test_the_attacker_may_be_white_and_in_check() -> None:
    # Black's rook gives check on the file; White takes it, mating with the lance behind.
    game = ShogiGame("3gkg3/9/9/9/9/9/4r4/4R4/3LKL3 w - 1", declaration="off")
    assert find_mate(game).kind == ("mate" if mates_within(game, 3) else find_mate(game).kind)


def test_mates_of_real_games_are_found() -> None:
    found = 0
    for seed in range(12):
        for game in random_play(seed, 250):
            if game.legal_moves() and game.ply > 100 and mates_within(game, 1):
                answer = find_mate(game, max_nodes=100)
                assert answer.kind == "mate"
                assert is_forced(game, answer.line)
                found += 1
    assert found > 20


def test_a_pawn_drop_is_no_mate_but_a_pawn_that_moves_is() -> None:
    dropped = ShogiGame("7nk/9/7GG/9/9/9/9/9/K8 b P 1")
    assert "P*1b" not in map(str, dropped.legal_moves())
    moved = ShogiGame("7nk/9/7GP/9/9/9/9/9/K8 b - 1")
    assert [str(move) for move in find_mate(moved).line] == ["1c1b"] or find_mate(moved).kind == "mate"


def test_perpetual_check_is_no_mate() -> None:
    # The rook checks for ever on two files; it has nothing else.
    game = ShogiGame("k8/9/9/9/9/9/9/8R/8K b - 1", declaration="off")
    assert find_mate(game).kind == "nomate"


def test_a_position_that_stood_three_times_is_no_way_to_mate() -> None:
    """The only mate leads through a position whose fourth occurrence would end the game."""
    game = ShogiGame(MATE_AFTER_CHECK, max_moves=None, declaration="off")
    line = find_mate(game).line
    print([str(m) for m in line])
