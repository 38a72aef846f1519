"""Positions without the attacker's king, as in mate problems: the rules, and what rejects them."""

import copy
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from conftest import random_play
from reference import (
    Position,
    ReferenceGame,
    after_move,
    flip_sfen,
    flip_usi,
    format_sfen,
    in_check,
    legal_moves,
    other,
    owned_by,
    parse_sfen,
)

from keisei import _native
from keisei.search.alpha_beta import alpha_beta, material_moves
from keisei.search.trees import SearchTrees
from keisei.shogi import Color, Outcome, Reason, RulesError, ShogiGame, encoding, perft
from keisei.shogi.vector import VectorGames

GOLD_AT_THE_HEAD = "4k4/9/4P4/9/9/9/9/9/9 b G 1"
DECLARABLE_BUT_FOR_THE_KING = "+P+P+P+P1+P+P+P+R/+P+P+P4+BR/9/9/9/9/9/9/4k4 b 6P 1"
# Two moves short of the most that a side without a king can have.
MANY_MOVES = "R8/4S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"

# An opening, a middle game, an ending, full hands, and kings near each other.
STARTS = [
    None,
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "ln2k1gn1/r1s1gsn2/1ppl4l/p2ppp1pp/1P+b1P1p2/P2P1P2g/3b1GPPP/6K1L/2S3RNS w p 62",
    "7lk/9/8S/9/9/9/9/7L1/8K b P 1",
    "4k4/9/2K6/9/9/9/9/9/9 b 2R2B2G2S3Pgsnlp 1",
    "+P+P+P+P1+P+P+P+P/4K4/9/9/9/9/9/4k4/+p+p+p+p1+p+p+p+p w 2R2B 1",
]


def without_movers_king(sfen: str) -> str:
    position, number = parse_sfen(sfen)
    king = owned_by(position.side, "K")
    position.board = {square: piece for square, piece in position.board.items() if piece != king}
    return format_sfen(position, number)


def problems(seed: int, plies: int, start: str | None) -> Iterator[str]:
    """Yield positions of random play without the mover's king, except those with the other king in check."""
    for game in random_play(seed, plies, start):
        sfen = without_movers_king(game.sfen())
        position = parse_sfen(sfen)[0]
        if not in_check(position, other(position.side)):
            yield sfen


def tsume(sfen: str, **rules: str) -> ShogiGame:
    return ShogiGame(sfen, max_moves=None, kings="defender", **{"declaration": "off", **rules})


# ---- the moves


@pytest.mark.parametrize("start", STARTS)
def test_random_games_without_a_king_follow_the_reference_rules(start: str | None) -> None:
    choose = random.Random(1)
    seen: Counter[str] = Counter()
    for seed in range(4):
        for sfen in list(problems(seed, 60, start))[::5]:
            game, reference = tsume(sfen), ReferenceGame(sfen, max_moves=None)
            attacker = game.turn
            for _ in range(5):
                expected = reference.legal_moves()
                assert {str(move) for move in game.legal_moves()} == expected, game.sfen()
                assert len(game.legal_moves()) == len(expected)
                assert game.sfen() == reference.sfen()
                assert game.is_check() == reference.is_check()
                assert game.key == game.computed_key()
                assert not (game.turn is attacker and game.is_check())
                seen["positions"] += 1
                seen["checks"] += game.is_check()
                if not expected:
                    break
                checks = [move for move in expected if gives_check(game, move)]
                move = choose.choice(sorted(checks if checks and choose.random() < 0.5 else expected))
                game.push(move)
                reference.push(move)
            end = game.outcome()
            assert (end and (end.winner and str(end.winner)[0], end.reason)) == reference.outcome()
    assert seen["positions"] > 60
    assert seen["checks"] > 10


def gives_check(game: ShogiGame, move: str) -> bool:
    game.push(move)
    check = game.is_check()
    game.pop()
    return check


def test_10000_positions_without_a_king_agree_with_another_engine() -> None:
    core = pytest.importorskip("rsshogi.core", reason="rsshogi has no build for this Python")
    compared = 0
    for seed in range(1000):
        for sfen in list(problems(seed, 100, STARTS[seed % len(STARTS)]))[::10]:
            game, board = tsume(sfen), core.Board(sfen)
            for _ in range(6):
                assert sorted(map(str, game.legal_moves())) == sorted(
                    move.to_usi() for move in board.legal_moves()
                ), game.sfen()
                assert game.is_check() == board.is_in_check()
                compared += 1
                if not game.legal_moves():
                    break
                move = random.Random(compared).choice(game.legal_moves())
                game.push(move)
                board.apply_usi(str(move))
        if compared >= 10_000:
            return
    raise AssertionError(f"only {compared} positions")


@pytest.mark.parametrize(
    ("sfen", "count", "legal", "illegal"),
    [
        # A piece that stood between a rook and a king moves freely.
        ("4k4/9/9/9/9/4r4/9/4G4/9 b - 1", 6, ["5h4h", "5h5g", "5h6g"], ["5h6i"]),
        # 1a, where an absent king might be looked for, and pieces around it.
        ("4k3+p/7r1/9/9/9/9/9/9/8L b P 1", 80, ["1i1b+", "1i1a+", "P*1b"], ["1i1a", "P*1a", "P*5a"]),
        # Two pawns on a file; a piece that could never move.
        ("4k4/9/9/9/9/9/4P4/9/9 b NP 1", 1 + 62 + 64, ["N*5c", "P*4b"], ["P*5b", "N*5b", "P*1a"]),
        # Mate by a dropped pawn, and the same with a way out.
        ("7nk/9/7G1/9/9/9/9/9/9 b P 1", 6 + 70, ["P*2b", "2c1b"], ["P*1b"]),
        ("8k/9/7G1/9/9/9/9/9/9 b P 1", 6 + 71, ["P*1b", "2c1b"], []),
        ("4k4/9/9/9/9/9/9/9/9 b - 1", 0, [], ["5a5b"]),
    ],
)
@pytest.mark.parametrize("flip", [False, True])
def test_the_attackers_moves_rule_by_rule(
    sfen: str, count: int, legal: list[str], illegal: list[str], flip: bool
) -> None:
    game = tsume(flip_sfen(sfen) if flip else sfen)
    moves = {str(move) for move in game.legal_moves()}
    turned = [flip_usi(move) if flip else move for move in legal]
    assert moves >= set(turned)
    assert not moves & {flip_usi(move) if flip else move for move in illegal}
    assert len(moves) == count
    assert not game.is_check()


def test_the_most_moves_have_room() -> None:
    assert len(tsume(MANY_MOVES).legal_moves()) == len(legal_moves(parse_sfen(MANY_MOVES)[0])) == 591


def sequences(sfen: str, depth: int) -> int:
    """Count move sequences by the reference rules."""

    def count(position: Position, left: int) -> int:
        moves = legal_moves(position)
        if left == 1:
            return len(moves)
        return sum(count(after_move(position, move), left - 1) for move in moves)

    return count(parse_sfen(sfen)[0], depth)


@pytest.mark.parametrize(
    ("sfen", "depth"),
    [
        (GOLD_AT_THE_HEAD, 3),
        ("7nk/9/7G1/9/9/9/9/9/9 b P 1", 3),
        ("6R2/8k/6P1n/8p/9/9/9/9/9 b GS 1", 2),
        ("8k/7r1/9/7L1/9/9/4p4/9/9 b B 1", 3),
        ("8k/9/1+R7/9/4b4/9/9/9/9 b - 1", 4),
    ],
)
@pytest.mark.parametrize("flip", [False, True])
def test_perft_counts_as_the_reference_does(sfen: str, depth: int, flip: bool) -> None:
    expected = sequences(sfen, depth)
    turned = flip_sfen(sfen) if flip else sfen
    assert perft(turned, depth, kings="defender") == expected
    divided = perft(turned, depth, kings="defender", divide=True)
    assert sum(divided.values()) == expected
    assert list(divided) == tsume(turned).legal_moves()
    assert _native.perft(turned, depth, write_last=True, kings="defender") == expected


# ---- who may lack a king


@pytest.mark.parametrize("flip", [False, True])
def test_by_default_both_sides_need_a_king(flip: bool) -> None:
    sfen = flip_sfen(GOLD_AT_THE_HEAD) if flip else GOLD_AT_THE_HEAD
    message = f"^bad sfen '{sfen}': {'white' if flip else 'black'} has 0 kings, expected one$"
    for attempt in (
        lambda: ShogiGame(sfen),
        lambda: ShogiGame(sfen, kings="both"),
        lambda: perft(sfen, 1),
        lambda: perft(sfen, 1, divide=True),
    ):
        with pytest.raises(RulesError, match=message):
            attempt()


@pytest.mark.parametrize(
    ("sfen", "message"),
    [
        ("9/9/9/9/9/9/9/9/4K4 b - 1", "white has 0 kings, expected one"),
        ("4k4/9/9/9/9/9/9/9/9 w - 1", "black has 0 kings, expected one"),
        ("9/9/9/9/9/9/9/9/9 b - 1", "white has 0 kings, expected one"),
        ("4k4/9/9/9/9/9/9/9/3KK4 b - 1", "black has 2 kings, expected one or none"),
        ("3kk4/9/9/9/9/9/9/9/9 b - 1", "white has 2 kings, expected one"),
        ("4k4/4G4/9/9/9/9/9/9/9 b - 1", "the side to move can take the king"),
    ],
)
def test_the_defender_needs_its_king_and_nobody_has_two(sfen: str, message: str) -> None:
    with pytest.raises(RulesError, match=f": {message}$"):
        ShogiGame(sfen, kings="defender")
    with pytest.raises(RulesError, match=f": {message}$"):
        perft(sfen, 1, kings="defender")


def test_an_attacker_that_has_a_king_plays_by_all_rules() -> None:
    pinned = "4k4/9/9/9/9/4r4/9/4G4/4K4 b - 1"
    game = ShogiGame(pinned, kings="defender")
    assert game.legal_moves() == ShogiGame(pinned).legal_moves()
    assert "5h4h" not in map(str, game.legal_moves())
    assert perft(pinned, 3, kings="defender") == perft(pinned, 3)
    assert ShogiGame(kings="defender").legal_moves() == ShogiGame().legal_moves()
    assert encoding.unpack_sfens(encoding.pack([game])) == [pinned]


@pytest.mark.parametrize("kings", ["x", "", "attacker", "Both"])
def test_an_unknown_word_for_kings_is_refused(kings: str) -> None:
    for attempt in (lambda: ShogiGame(kings=kings), lambda: perft(GOLD_AT_THE_HEAD, 1, kings=kings)):
        with pytest.raises(ValueError, match=f"^kings is '{kings}', expected 'both' or 'defender'$"):
            attempt()


# ---- ends of games


@pytest.mark.parametrize("flip", [False, True])
def test_mate_and_having_no_move_end_the_game(flip: bool) -> None:
    game = tsume(flip_sfen(GOLD_AT_THE_HEAD) if flip else GOLD_AT_THE_HEAD)
    attacker = game.turn
    game.push(flip_usi("G*5b") if flip else "G*5b")
    assert game.is_check()
    assert game.outcome() == Outcome(attacker, Reason.CHECKMATE)
    nothing_left = "4k4/9/9/9/9/9/9/9/9 b - 1"
    game = tsume(flip_sfen(nothing_left) if flip else nothing_left)
    assert game.outcome() == Outcome(game.turn.opponent, Reason.NO_LEGAL_MOVE)


def test_repetition_is_a_draw_and_perpetual_check_lost() -> None:
    quiet = tsume("k8/9/9/9/9/9/9/8R/9 b - 1")
    for move in ["1h2h", "9a8a", "2h1h", "8a9a"] * 3:
        quiet.push(move)
    assert quiet.outcome() == Outcome(None, Reason.REPETITION)
    checks = tsume("8k/9/9/9/9/9/9/9/7R1 b - 1")
    for move in ["2i1i", "1a2a", "1i2i", "2a1a"] * 3:
        checks.push(move)
    assert checks.outcome() == Outcome(Color.WHITE, Reason.PERPETUAL_CHECK)


@pytest.mark.parametrize("rule", ["27", "24"])
def test_a_side_without_a_king_cannot_declare(rule: str) -> None:
    game = tsume(DECLARABLE_BUT_FOR_THE_KING, declaration=rule)
    assert not game.can_declare()
    with pytest.raises(RulesError, match=r"^cannot declare in position .*: there is no king to enter with$"):
        game.declare()
    with_king = DECLARABLE_BUT_FOR_THE_KING.replace("+P1+P", "+PK+P", 1)
    assert ShogiGame(with_king, declaration="27").can_declare()


def test_the_try_rule_counts_kings_that_are_there() -> None:
    game = tsume("9/9/9/9/9/9/9/4k4/9 b G 1", declaration="try")
    assert game.outcome() is None
    game.push("G*1a")
    game.push("5h5i")
    assert game.outcome() == Outcome(Color.WHITE, Reason.DECLARATION)
    assert not tsume(GOLD_AT_THE_HEAD, declaration="try").can_declare()


# ---- kept, written and drawn


class Named(ShogiGame):
    """A subclass with its own attribute."""

    name = ""


def test_copies_and_pickles_keep_the_kings() -> None:
    game = Named(GOLD_AT_THE_HEAD, kings="defender", max_moves=77)
    game.name = "first"
    game.push("G*4b")
    for again in (game.copy(), copy.copy(game), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert type(again) is Named
        assert (again.kings, again.max_moves, again.name) == ("defender", 77, "first")
        assert again.start_sfen == GOLD_AT_THE_HEAD
        assert (again.sfen(), again.legal_moves()) == (game.sfen(), game.legal_moves())
        again.pop()
        assert again.sfen() == GOLD_AT_THE_HEAD
    assert ShogiGame().kings == ShogiGame().copy().kings == "both"
    assert pickle.loads(pickle.dumps(ShogiGame())).kings == "both"


def test_sfen_repr_and_drawings_do_without_a_king() -> None:
    game = ShogiGame(GOLD_AT_THE_HEAD, kings="defender")
    assert game.sfen() == game.start_sfen == GOLD_AT_THE_HEAD
    assert repr(game) == f"<ShogiGame {GOLD_AT_THE_HEAD} kings=defender>"
    assert str(game).count("玉") == 1
    assert game.svg().count("玉") == 1
    game.push("G*5b")
    assert repr(game).endswith(" w - 2 kings=defender (black wins by checkmate)>")
    assert "玉" in str(game)
    for seed, start in enumerate(STARTS):
        for sfen in problems(seed, 30, start):
            assert ShogiGame(sfen, kings="defender").sfen() == sfen


# ---- who needs both kings


def trees(games: list[ShogiGame]) -> SearchTrees:
    return SearchTrees(games, c_puct=1.5, fpu=0.25, leaves=1, max_nodes=100)


@pytest.mark.parametrize(
    ("attempt", "name"),
    [
        (encoding.pack, r"games\[1\]"),
        (trees, r"games\[1\]"),
        (lambda games: alpha_beta(games, 1, [0, 0]), "game 1"),
        (lambda games: material_moves(games, [0, 0]), "game 1"),
    ],
    ids=["pack", "trees", "alpha-beta", "material"],
)
@pytest.mark.parametrize("moves", [[], ["G*4b"]])
def test_what_networks_see_and_other_searches_refuse_a_missing_king(
    attempt: Callable[[list[ShogiGame]], object], name: str, moves: list[str]
) -> None:
    game = tsume(GOLD_AT_THE_HEAD)
    for move in moves:
        game.push(move)
    with pytest.raises(RulesError, match=f"^{name}: black has 0 kings, expected one: {game.sfen()}$"):
        attempt([ShogiGame(), game])
    attempt([ShogiGame(), ShogiGame(kings="defender")])


def test_nothing_that_is_read_for_networks_may_lack_a_king() -> None:
    for attempt in (
        lambda: encoding.pack_sfens([GOLD_AT_THE_HEAD]),
        lambda: VectorGames(1, starts=[GOLD_AT_THE_HEAD]),
        lambda: VectorGames(1).set_late_starts([GOLD_AT_THE_HEAD], 0.5),
    ):
        with pytest.raises(RulesError, match="black has 0 kings, expected one"):
            attempt()
    packed = encoding.pack([ShogiGame(GOLD_AT_THE_HEAD.replace("9 b", "4K4 b"))])
    board = packed.view(encoding.PACKED)[0, 0]["board"]
    board[np.flatnonzero(board == 8)] = 0  # Black's king
    with pytest.raises(RulesError, match=r"^row 0 of packed: black has 0 kings, expected one$"):
        encoding.planes(packed)
