"""The Python interface of a game: moves, history, copies, errors that change nothing."""

import copy
import pickle
import sys

import pytest
from conftest import random_play

from keisei.shogi import START_SFEN, Color, Move, NotationError, Outcome, Reason, RulesError, ShogiGame
from keisei.shogi.shogi_game import ShogiGame as AtItsOldPlace


def state(game: ShogiGame) -> tuple[object, ...]:
    """Return everything observable about a game."""
    return (
        game.sfen(),
        game.key,
        game.history,
        game.outcome(),
        game.turn,
        game.ply,
        game.legal_moves(),
        game.is_check(),
    )


def test_a_new_game_is_the_start_position() -> None:
    game = ShogiGame()
    assert game.sfen() == game.start_sfen == START_SFEN
    assert (game.turn, game.ply, game.history) == (Color.BLACK, 0, [])
    assert (game.max_moves, game.declaration) == (512, "27")
    assert game.outcome() is None
    assert not game.is_check()
    assert AtItsOldPlace is ShogiGame


def test_push_takes_a_move_or_its_usi_text_and_pop_gives_it_back() -> None:
    game = ShogiGame()
    move = Move.from_usi("7g7f")
    game.push(move)
    game.push("3c3d")
    assert game.history == [move, Move.from_usi("3c3d")]
    assert (game.turn, game.ply) == (Color.BLACK, 2)
    assert game.pop() == Move.from_usi("3c3d")
    assert game.turn is Color.WHITE
    assert game.pop() is move
    assert game.sfen() == START_SFEN
    with pytest.raises(IndexError, match="no move to take back"):
        game.pop()


def test_captures_drops_and_promotions_are_played_and_taken_back() -> None:
    game = ShogiGame()
    seen = [game.sfen()]
    for move in ("7g7f", "3c3d", "8h2b+", "3a2b", "B*4e", "B*8h", "4e6c+", "8h9i+"):
        game.push(move)
        seen.append(game.sfen())
    assert game.sfen() == "lnsgkg1nl/1r5s1/ppp+Bpp1pp/6p2/9/2P6/PP1PPPPPP/7R1/+bNSGKGSNL b Pl 9"
    assert game.hand(Color.BLACK) == {"P": 1}
    assert game.hand(Color.WHITE) == {"L": 1}
    assert (game.piece_at("6c"), game.piece_at("9i"), game.piece_at("8h")) == ("+B", "+b", None)
    for sfen in reversed(seen):
        assert game.sfen() == sfen
        if game.history:
            game.pop()


def test_a_hand_lists_the_strongest_piece_first() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b P2LNSGBRp 1")
    assert list(game.hand(Color.BLACK).items()) == [
        ("R", 1), ("B", 1), ("G", 1), ("S", 1), ("N", 1), ("L", 2), ("P", 1),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="color: expected 0"):
        game.hand(2)


def test_each_side_and_each_number_in_hand_has_its_own_key() -> None:
    in_set = {"R": 2, "B": 2, "G": 4, "S": 4, "N": 4, "L": 4, "P": 18}
    numbers = [f"{n}{letter}" for letter, most in in_set.items() for n in range(1, most + 1)]
    hands = ["-", *numbers, *map(str.lower, numbers)]
    keys = {ShogiGame(f"4k4/9/9/9/9/9/9/9/4K4 {side} {hand} 1").key for side in "bw" for hand in hands}
    assert len(keys) == 2 * len(hands) == 154


BAD_USI = ["7g", "7g7", "7g7f++", "0g7f", "7j7f", "7g7g", "K*5e", "p*5e", "P*5j", "P*5e+", "+P*5e", "７六歩"]


@pytest.mark.parametrize("text", [*BAD_USI, "", "7g7f ", "7g7f\0"])
def test_a_bad_usi_move_is_a_notation_error_with_text_and_position(text: str) -> None:
    game = ShogiGame()
    before = state(game)
    with pytest.raises(NotationError, match="bad usi move") as caught:
        game.push(text)
    assert START_SFEN in str(caught.value)
    assert state(game) == before
    with pytest.raises(NotationError, match="expected a move like 7g7f"):
        Move.from_usi(text)


@pytest.mark.parametrize("text", ["7g7e", "7g7f+", "8h2b+", "P*5e", "3c3d", "5e5d", "2h2c", "5i5a"])
def test_an_illegal_move_is_a_rules_error_with_move_and_position(text: str) -> None:
    game = ShogiGame()
    before = state(game)
    with pytest.raises(RulesError) as caught:
        game.push(text)
    assert str(caught.value) == f"illegal move {text} in position {START_SFEN}"
    assert state(game) == before


def test_both_errors_are_value_errors_of_their_own_kind() -> None:
    assert issubclass(NotationError, ValueError)
    assert issubclass(RulesError, ValueError)
    assert not issubclass(RulesError, NotationError)
    assert not issubclass(NotationError, RulesError)


def test_push_of_something_else_is_a_type_error() -> None:
    for wrong in (7776, None, Move.__new__(Move)):
        with pytest.raises(TypeError, match=r"^push takes a Move or its USI text$"):
            ShogiGame().push(wrong)  # type: ignore[arg-type]


def test_a_copy_is_independent_and_keeps_the_history() -> None:
    game = ShogiGame(max_moves=100, declaration="24")
    for move in ("7g7f", "3c3d"):
        game.push(move)
    before = state(game)
    other = game.copy()
    assert type(other) is ShogiGame
    assert state(other) == before
    assert (other.max_moves, other.declaration) == (100, "24")
    other.push("8h2b+")
    other.resign()
    assert state(game) == before
    other.pop()
    other.pop()
    assert state(game) == before
    assert other.history == [Move.from_usi("7g7f")]


def test_a_copy_counts_the_positions_that_stood_before_it() -> None:
    game, circle = ShogiGame(), ["2h3h", "8b7b", "3h2h", "7b8b"]
    for move in circle * 2:
        game.push(move)
    for other in (game.copy(), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        for move in circle:
            assert other.outcome() is None
            other.push(move)
        assert other.outcome() == Outcome(None, Reason.REPETITION)


class Named(ShogiGame):
    """A subclass as users write them: with its own constructor."""

    def __init__(self, name: str) -> None:
        super().__init__(max_moves=99)
        self.name = name


def test_a_subclass_is_copied_and_pickled_whole() -> None:
    game = Named("mine")
    game.push("7g7f")
    for other in (game.copy(), copy.copy(game), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert type(other) is Named
        assert (other.name, other.max_moves, state(other)) == ("mine", 99, state(game))


def test_a_copy_of_a_game_that_a_player_ended_is_over_too() -> None:
    game = ShogiGame()
    game.resign()
    assert game.copy().outcome() == Outcome(Color.WHITE, Reason.RESIGNATION)
    assert state(game.copy()) == state(game)


def test_a_game_without_a_maximum_length_is_pickled_so() -> None:
    assert pickle.loads(pickle.dumps(ShogiGame(max_moves=None))).max_moves is None


@pytest.mark.parametrize("ending", ["resign", "declare", "try", None])
def test_a_game_survives_pickling_whole(ending: str | None) -> None:
    inside = "+P+P+P+PK+P+P+P+R/7+BR/9/9/9/9/9/9/4k4 b B6P 30"
    game = ShogiGame(inside if ending == "declare" else "9/4K4/9/9/9/9/9/9/k8 b R 30", max_moves=99,
                     declaration="try" if ending == "try" else "27")  # fmt: skip
    if ending == "declare":
        game.declare()
    else:
        game.push("5b5a")
        if ending == "resign":
            game.resign()
    assert (game.outcome() is None) == (ending is None)
    again = pickle.loads(pickle.dumps(game))
    assert state(again) == state(game)
    assert (again.max_moves, again.declaration) == (99, game.declaration)


def test_moves_compare_hash_copy_and_pickle_by_value() -> None:
    move = Move.from_usi("8h2b+")
    assert move == Move.from_usi("8h2b+")
    assert move != Move.from_usi("8h2b")
    assert move != "8h2b+"
    assert {move: 1}[Move.from_usi("8h2b+")] == 1
    for same in (pickle.loads(pickle.dumps(move)), copy.copy(move), copy.deepcopy(move)):
        assert (same, hash(same), str(same)) == (move, hash(move), "8h2b+")
        ShogiGame("lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL b - 1").push(same)


def test_a_move_tells_its_parts() -> None:
    move, drop = Move.from_usi("8h2b+"), Move.from_usi("P*5e")
    assert (move.from_square, move.to_square, move.promotes, move.dropped) == ("8h", "2b", True, None)
    assert (drop.from_square, drop.to_square, drop.promotes, drop.dropped) == (None, "5e", False, "P")
    assert repr(move) == "Move.from_usi('8h2b+')"


def test_a_bad_square_is_refused() -> None:
    for text, shown in (
        ("5j", "5j"),
        ("5", "5"),
        ("", ""),
        ("0a", "0a"),
        (":a", ":a"),
        ("5`", "5`"),
        ("5aa", "5aa"),
        ("5\0", "5\\?"),
        ("形" * 999, "形+…"),
    ):
        with pytest.raises(NotationError, match=f"^bad square '{shown}': expected a square like 7g$"):
            ShogiGame().piece_at(text)


def test_repr_shows_the_position_and_the_end() -> None:
    game = ShogiGame()
    assert repr(game) == f"<ShogiGame {START_SFEN}>"
    game.resign()
    assert repr(game).endswith("(white wins by resignation)>")


def test_black_as_winner_is_not_nothing() -> None:
    game = ShogiGame()
    game.push("7g7f")
    game.resign()
    outcome = game.outcome()
    assert outcome == Outcome(Color.BLACK, Reason.RESIGNATION)
    assert outcome
    assert outcome.winner


def test_a_game_of_ordinary_length_never_takes_more_memory_than_at_its_start() -> None:
    """The size stated in docs/engine.md; only a game of more than 512 moves grows."""
    sizes = {sys.getsizeof(game) for seed in range(5) for game in random_play(seed, 512)}
    assert len(sizes) == 1
    assert 8_000 < sizes.pop() < 12_000
    assert sys.getsizeof(ShogiGame(max_moves=10)) < 3_000
    longer = max(sys.getsizeof(game) for game in random_play(7, 700, "4k4/9/9/9/9/9/9/9/4K4 b 2R2B 1"))
    assert 12_000 < longer < 30_000
