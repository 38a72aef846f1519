"""The material search against its definition, which minimax_reference.py follows without pruning."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import pytest
from minimax_reference import VALUES, WIN_SCORE, Minimax, TooManyPositionsError, material_moves
from reference import flip_sfen, flip_usi

from keisei import _native
from keisei.core.material import PIECE_VALUES
from keisei.shogi import Move, ShogiGame

Positions = Iterator[ShogiGame | None]  # None: that game was over

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MATES_IN_THREE = ["7k1/9/6P2/9/9/9/9/9/K8 b 2G 1", "8k/7p1/6G2/9/9/9/9/9/K8 b G 1"]


def search(game: ShogiGame, depth: int, *, seed: int = 0, quiet_plies: int = 6) -> tuple[Move, int]:
    ((move, score),) = _native.alpha_beta([game], depth, [seed], quiet_plies=quiet_plies)
    return move, score


def played(game: ShogiGame, moves: Iterable[str]) -> ShogiGame:
    for move in moves:
        game.push(move)
    return game


def some_moves(game: ShogiGame, choose: random.Random, most: int) -> ShogiGame | None:
    """Return the game after up to this many random moves; None if they ended it."""
    for _ in range(choose.randint(0, most)):
        if game.outcome() is None:
            game.push(choose.choice(game.legal_moves()))
    return game if game.outcome() is None else None


# ------------------------------------------------------------------------ positions


def middle_games(choose: random.Random) -> Positions:
    while True:
        yield some_moves(ShogiGame(), choose, 150)


def few_pieces(choose: random.Random, most: int = 6) -> Positions:
    """Yield positions with the kings and up to this many other pieces anywhere, a third of them in hand."""
    while True:
        board = [["1"] * 9 for _ in range(9)]
        hands = ""
        for kind in choose.choices([kind for kind in VALUES if kind != "K"], k=choose.randint(1, most)):
            piece = choose.choice([kind, kind.lower()])
            if choose.random() < 1 / 3:
                hands += piece[-1]
            else:
                board[choose.randrange(9)][choose.randrange(9)] = piece
        for king in choose.sample(["K", "k"], 2):
            board[choose.randrange(9)][choose.randrange(9)] = king
        rows = "/".join("".join(row) for row in board)
        hands = "".join(sorted(hands, key="RBGSNLPrbgsnlp".index))
        try:
            game = ShogiGame(f"{rows} {choose.choice('bw')} {hands or '-'} 1")
        except ValueError:  # against the rules
            continue
        yield some_moves(game, choose, 0)


def kings_at_the_edge(choose: random.Random) -> Positions:
    """Yield positions full of mates: a king at the edge, and the other side's big pieces."""
    while True:
        hand = "".join(choose.sample("RBGSN", 2))
        king = "".join(choose.sample(["k", "1", "1", "1", "1", "1", "1", "1", "1"], 9))
        piece = choose.choice(["G", "+P", "S", "+B"])
        row = "".join(choose.sample([piece, "1", "1", "1", "1", "1", "1", "1", "1"], 9))
        try:
            sfen = f"{king}/9/{row}/9/9/9/9/9/K8 {choose.choice('bw')} {hand} 1"
            yield some_moves(ShogiGame(choose.choice([sfen, flip_sfen(sfen)])), choose, 0)
        except ValueError:
            continue


def near_repetition(choose: random.Random) -> Positions:
    """Yield positions after two or three occurrences and a few moves, with and without perpetual check."""
    while True:
        if choose.random() < 0.5:
            cycle = ["2h3h", "8a7a", "3h2h", "7a8a"]
            sfen = f"1r2k4/9/9/9/9/9/9/4K2R1/9 b {choose.choice(['-', 'P', 'p'])} 1"
        else:  # White flees, Black's dragon gives check with each move
            cycle = ["5a4a", "5d4d", "4a5a", "4d5d"]
            sfen = f"4k4/9/9/4+R4/9/9/9/9/4K4 w {choose.choice(['-', 'P', 'rb'])} 1"
        if choose.random() < 0.5:
            sfen, cycle = flip_sfen(sfen), [flip_usi(move) for move in cycle]
        yield some_moves(played(ShogiGame(sfen), (cycle * 3)[: choose.randint(8, 11)]), choose, 1)


def near_the_last_move(choose: random.Random) -> Positions:
    for game in going_on(few_pieces(choose, 4)):
        yield ShogiGame(game.sfen(), max_moves=choose.randint(1, 3))


def near_declaration(choose: random.Random) -> Positions:
    """Yield positions where a side can declare, or lacks only the king's last step or a point it can take."""
    camp = "+P+P+P+P1+P+P+P+R"  # with +B and R 22 points
    while True:
        second, third, fourth = choose.choice(
            [("4K2+BR", "9", "9"), ("7+BR", "4K4", "9"), ("7+BR", "9", "4K4"), ("3pK2+BR", "9", "9")]
        )
        own, other = choose.choice(["B2P", "B3P", "B4P", "5P", "6P"]), choose.choice(["", "r", "n", "g"])
        sfen = f"{camp}/{second}/{third}/{fourth}/9/9/9/9/4k4 {choose.choice('bw')} {own}{other} 1"
        try:
            sfen = choose.choice([sfen, flip_sfen(sfen)])
            yield some_moves(ShogiGame(sfen, declaration=choose.choice(["27", "24", "off"])), choose, 0)
        except ValueError:
            continue


def near_a_try(choose: random.Random) -> Positions:
    for game in going_on(few_pieces(choose, 3)):
        board, *rest = game.sfen().split()
        rows = board.replace("K", "1").replace("k", "1").split("/")
        rows[choose.choice([1, 2])], rows[7] = choose.choice(["4K4", "3K5"]), choose.choice(["4k4", "5k3"])
        try:
            yield some_moves(ShogiGame(" ".join(["/".join(rows), *rest]), declaration="try"), choose, 0)
        except ValueError:
            continue


def going_on(positions: Positions) -> Iterator[ShogiGame]:
    return (game for game in positions if game is not None)


# ------------------------------------------------------------------------ the search is the definition


REPEATED = {"repetition", "perpetual check"}


@pytest.mark.parametrize(
    ("kind", "depth", "quiet_plies", "count", "ends"),
    [
        (middle_games, 1, 0, 40, set()),
        (middle_games, 1, 2, 15, set()),
        (middle_games, 1, 6, 3, set()),
        (middle_games, 2, 1, 4, set()),
        (few_pieces, 1, 6, 40, set()),
        (few_pieces, 2, 6, 10, set()),
        (few_pieces, 3, 2, 3, set()),
        (kings_at_the_edge, 1, 6, 60, {"checkmate", "no legal move"}),
        (kings_at_the_edge, 2, 6, 20, {"checkmate", "no legal move"}),
        (near_repetition, 1, 6, 80, REPEATED),
        (near_repetition, 2, 2, 10, REPEATED),
        (near_repetition, 3, 1, 3, REPEATED),
        (near_the_last_move, 2, 6, 20, {"maximum length"}),
        (near_the_last_move, 3, 4, 10, {"maximum length"}),
        (near_declaration, 1, 6, 40, {"declaration"}),
        (near_declaration, 2, 1, 5, {"declaration"}),
        (near_a_try, 1, 6, 40, {"declaration"}),
        (near_a_try, 2, 6, 12, {"declaration"}),
        (near_a_try, 3, 2, 3, {"declaration"}),
    ],
)
def test_the_search_finds_what_looking_at_everything_finds(
    kind: Callable[[random.Random], Positions], depth: int, quiet_plies: int, count: int, ends: set[str]
) -> None:
    seen: set[str] = set()
    for game in going_on(kind(random.Random(depth))):
        reference = Minimax(quiet_plies, positions=12_000)
        try:
            values = reference.values(game.copy(), depth)
        except TooManyPositionsError:
            continue
        best = max(values.values())
        for seed in range(8):
            move, score = search(game, depth, seed=seed, quiet_plies=quiet_plies)
            assert (score, values[move]) == (best, best), (game.sfen(), move)
        seen |= reference.ends
        count -= 1
        if count == 0:
            break
    assert seen >= ends


@pytest.mark.parametrize(
    ("kind", "depth"),
    [(middle_games, 3), (middle_games, 4), (few_pieces, 4), (near_a_try, 5), (near_the_last_move, 6)],
)
def test_a_deeper_search_finds_the_best_of_the_searches_after_each_move(
    kind: Callable[[random.Random], Positions], depth: int
) -> None:
    for game in islice(going_on(kind(random.Random(depth))), 2):
        values = []
        for move in game.legal_moves():
            game.push(move)
            end = game.outcome()
            if end is not None:
                values.append(
                    0 if end.winner is None else WIN_SCORE - 1 if end.winner != game.turn else 1 - WIN_SCORE
                )
            else:
                value = WIN_SCORE if game.can_declare() else search(game, depth - 1)[1]
                values.append(-value + (abs(value) > WIN_SCORE // 2) * (1 if value > 0 else -1))
            game.pop()
        assert search(game, depth)[1] == max(values), game.sfen()


# ------------------------------------------------------------------------ what players ask of it


def test_a_piece_is_worth_what_rewards_say() -> None:
    kinds = ["P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", None, "+B", "+R"]
    assert [0 if kind is None else VALUES[kind] for kind in kinds] == PIECE_VALUES[1:].tolist()


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_mate_in_one_is_played(depth: int) -> None:
    assert search(ShogiGame(MATE_IN_ONE), depth) == (Move.from_usi("G*5b"), WIN_SCORE - 1)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("sfen", MATES_IN_THREE)
def test_mate_in_three_is_played_against_every_reply(sfen: str, flip: bool) -> None:
    game = ShogiGame(flip_sfen(sfen) if flip else sfen)
    winner = game.turn
    assert search(game, 2)[1] < WIN_SCORE // 2
    assert search(game, 4)[1] == WIN_SCORE - 3
    move, score = search(game, 3)
    assert score == WIN_SCORE - 3
    game.push(move)
    for reply in game.legal_moves():
        game.push(reply)
        last, score = search(game, 3)
        assert score == WIN_SCORE - 1
        game.push(last)
        end = game.outcome()
        assert end is not None
        assert end.winner == winner
        game.pop()
        game.pop()


def test_a_piece_that_is_protected_is_not_taken_with_a_better_one() -> None:
    game = ShogiGame("4k4/9/9/4p4/4g4/9/4R4/9/4K4 b - 1")  # the rook may take a gold that a pawn protects
    greedy = Move.from_usi("5g5e")
    assert set(_native.material_moves([game] * 20, list(range(20)))) == {greedy}
    assert greedy not in {search(game, 1, seed=seed)[0] for seed in range(20)}
    assert search(game, 1, quiet_plies=0)[0] == greedy


def test_the_seed_draws_evenly_from_the_best_moves() -> None:
    game = ShogiGame("4k4/9/9/4p4/4g4/9/4R4/9/4K4 b - 1")
    values = Minimax(6, 100_000).values(game.copy(), 2)
    best = {move for move, value in values.items() if value == max(values.values())}
    assert 3 < len(best) < len(values)
    seeds = list(range(100 * len(best)))
    drawn = Counter(move for move, _ in _native.alpha_beta([game] * len(seeds), 2, seeds))
    assert set(drawn) == best
    assert min(drawn.values()) > 60
    assert max(drawn.values()) < 140


def test_neither_threads_nor_the_division_into_calls_change_anything() -> None:
    games = list(islice(going_on(middle_games(random.Random(3))), 24))
    seeds = [2**64 - 1 - number for number in range(len(games))]
    found = _native.alpha_beta(games, 2, seeds)
    for threads in (2, 3, 40):
        assert _native.alpha_beta(games, 2, seeds, threads) == found
    assert [search(game, 2, seed=seed) for game, seed in zip(games, seeds, strict=True)] == found
    assert _native.alpha_beta(games[::-1], 2, seeds[::-1], threads=2) == found[::-1]
    assert _native.alpha_beta([], 2, [], threads=2) == []


def test_the_games_stay_as_they_are() -> None:
    game = played(ShogiGame(), ["2h3h", "8b7b", "3h2h", "7b8b", "7g7f", "3c3d"])
    facts = [
        game.sfen(),
        game.history,
        game.legal_moves(),
        game.key,
        game.earlier_occurrences,
        game.outcome(),
    ]
    _native.alpha_beta([game, game], 3, [1, 2], threads=2)
    _native.material_moves([game], [1])
    assert facts == [
        game.sfen(),
        game.history,
        game.legal_moves(),
        game.key,
        game.earlier_occurrences,
        game.outcome(),
    ]


@pytest.mark.parametrize(
    ("kind", "depth", "count"), [(middle_games, 3, 30), (few_pieces, 3, 30), (kings_at_the_edge, 4, 5)]
)
def test_both_colours_find_the_same(
    kind: Callable[[random.Random], Positions], depth: int, count: int
) -> None:
    for game in islice(going_on(kind(random.Random(5))), count):
        black, white = (ShogiGame(sfen, declaration="24") for sfen in (game.sfen(), flip_sfen(game.sfen())))
        assert search(black, depth)[1] == search(white, depth)[1]


@pytest.mark.parametrize(
    ("kind", "count"),
    [(middle_games, 60), (few_pieces, 15), (kings_at_the_edge, 15), (near_repetition, 60), (near_a_try, 20)],
)
def test_the_player_that_looks_no_move_ahead(kind: Callable[[random.Random], Positions], count: int) -> None:
    for game in islice(going_on(kind(random.Random(7))), count):
        best = material_moves(game.copy())
        seeds = list(range(8 * len(best) + 8))
        drawn = Counter(_native.material_moves([game] * len(seeds), seeds))
        assert set(drawn) <= best
        assert len(drawn) > 0.9 * len(best)


def test_what_cannot_be_searched_is_refused() -> None:
    game, over = ShogiGame(), played(ShogiGame(MATE_IN_ONE), ["G*5b"])
    message = r"^game 1 is over, checkmate, expected unfinished games: 4k4/4G4/4P4/9/9/9/9/9/4K4 w - 2$"
    with pytest.raises(ValueError, match=message):
        _native.alpha_beta([game, over], 1, [0, 0])
    with pytest.raises(ValueError, match=message):
        _native.material_moves([game, over], [0, 0])
    for depth in (0, 7):
        with pytest.raises(ValueError, match=f"^depth is {depth}, expected 1 to 6$"):
            _native.alpha_beta([game], depth, [0])
    for plies in (-1, 9):
        with pytest.raises(ValueError, match=f"^quiet_plies is {plies}, expected 0 to 8$"):
            _native.alpha_beta([game], 1, [0], quiet_plies=plies)
    with pytest.raises(ValueError, match=r"^threads is 0, expected at least 1$"):
        _native.alpha_beta([game], 1, [0], 0)
    with pytest.raises(ValueError, match=r"^games: 2, seeds: 1, expected one seed for each game$"):
        _native.alpha_beta([game, game], 1, [0])
    for thing in (None, "startpos", _native.Game.__new__(_native.Game)):
        with pytest.raises(TypeError, match="games must be ShogiGames"):
            _native.material_moves([thing], [0])  # type: ignore[list-item]
    for seed in (-1, 2**64, 0.5):
        with pytest.raises(TypeError):
            _native.material_moves([game], [seed])  # type: ignore[list-item]


@pytest.mark.parametrize(("games", "threads"), [("[game] * 2", 1), ("[game] * 2", 2), ("[short, game]", 2)])
def test_ctrl_c_stops_a_search_that_would_take_minutes(games: str, threads: int) -> None:
    # A shell may have left Ctrl-C ignored; a terminal does not.
    code = f"""
import signal
from keisei import _native
game = _native.Game("4k4/9/9/9/9/9/9/9/4K4 b RBGSNLPrbgsnlp 1")
short = _native.Game("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")  # after which the main thread has nothing to do
signal.signal(signal.SIGINT, signal.default_int_handler)
print("on", flush=True)
_native.alpha_beta({games}, 6, [1, 2], {threads})
"""
    command = [sys.executable, "-P", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
