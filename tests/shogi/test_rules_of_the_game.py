"""How games end: mate, repetition, perpetual check, declaration, length, resignation."""

import re

import pytest
from reference import ReferenceGame, flip_sfen, flip_usi

from keisei.shogi import Color, Outcome, Reason, RulesError, ShogiGame

DRAGON_CHECKS = "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1"  # White in check
CYCLE = ["5a4a", "5d4d", "4a5a", "4d5d"]


def played(game: ShogiGame, *moves: str) -> ShogiGame:
    for move in moves:
        game.push(move)
    return game


def test_checkmate_names_winner_and_reason() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    game.push("G*5b")
    assert game.outcome() == Outcome(Color.BLACK, Reason.CHECKMATE)
    assert str(game.outcome()) == "black wins by checkmate"
    assert game.legal_moves() == []
    with pytest.raises(RulesError, match=r"illegal move 5a4b in position .*: the game is over, checkmate"):
        game.push("5a4b")


def test_a_side_without_moves_has_lost_also_when_not_in_check() -> None:
    game = ShogiGame("k8/9/1+R7/9/9/9/9/9/4K4 w - 1")
    assert not game.is_check()
    assert game.outcome() == Outcome(Color.BLACK, Reason.NO_LEGAL_MOVE)


def test_a_game_that_is_over_cannot_be_resigned() -> None:
    game = played(ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1"), "G*5b")
    with pytest.raises(RulesError, match=r"cannot resign in position .*: the game is over, checkmate"):
        game.resign()
    assert game.outcome() == Outcome(Color.BLACK, Reason.CHECKMATE)


def test_repetition_is_decided_at_the_fourth_occurrence() -> None:
    game = ShogiGame()
    for occurrence in range(1, 4):
        assert game.earlier_occurrences == occurrence - 1
        for move in ("2h3h", "8b7b", "3h2h", "7b8b"):
            assert game.outcome() is None
            game.push(move)
    assert game.earlier_occurrences == 3
    assert game.outcome() == Outcome(None, Reason.REPETITION)
    assert game.legal_moves() == []
    game.pop()
    assert game.outcome() is None


def test_repetition_counts_over_the_whole_game_not_only_in_a_row() -> None:
    game = ShogiGame()
    there_and_back = ["2h3h", "8b7b", "3h2h", "7b8b"]
    detour = ["5i5h", "5a5b", "5h5i", "5b5a"]  # back to the start through other positions
    played(game, *there_and_back, *detour)
    assert game.earlier_occurrences == 2
    played(game, *there_and_back)
    assert game.outcome() == Outcome(None, Reason.REPETITION)


def test_repetition_counts_also_when_each_side_takes_three_moves_to_come_back() -> None:
    game = ShogiGame()
    for _ in range(3):
        assert game.outcome() is None
        played(game, "2h3h", "8b7b", "3h4h", "7b6b", "4h2h", "6b8b")
    assert game.outcome() == Outcome(None, Reason.REPETITION)


def test_the_same_board_with_other_hands_is_another_position() -> None:
    game = ShogiGame("4k3r/9/9/9/9/9/9/9/4K4 b P 1")
    played(game, "P*1d", "1a1d", "5i6i", "1d1a", "6i5h", "5a4a", "5h5i", "4a5a")
    assert game.sfen() == "4k3r/9/9/9/9/9/9/9/4K4 b p 9"  # the pawn has changed hands
    assert game.earlier_occurrences == 0


def test_the_same_board_with_the_other_side_to_move_is_another_position() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/9/4K1R2 b - 1")
    played(game, "3i3h", "5a6a", "3h3g", "6a5a", "3g3i")  # Black lost a move: White is to move now
    assert game.sfen() == "4k4/9/9/9/9/9/9/9/4K1R2 w - 6"
    assert game.earlier_occurrences == 0


@pytest.mark.parametrize("flip", [False, True])
def test_perpetual_check_is_lost_by_the_checker_who_completes_the_cycle(flip: bool) -> None:
    start, cycle, checker = DRAGON_CHECKS, CYCLE, Color.BLACK
    if flip:
        start, cycle, checker = flip_sfen(start), [flip_usi(move) for move in cycle], Color.WHITE
    game = played(ShogiGame(start), *cycle * 3)
    assert game.outcome() == Outcome(checker.opponent, Reason.PERPETUAL_CHECK)


@pytest.mark.parametrize("flip", [False, True])
def test_perpetual_check_is_lost_by_the_checker_when_the_other_side_completes_the_cycle(flip: bool) -> None:
    start, cycle, checker = "3k5/9/9/4+R4/9/9/9/9/4K4 b - 1", ["5d6d", "6a5a", "6d5d", "5a6a"], Color.BLACK
    if flip:
        start, cycle, checker = flip_sfen(start), [flip_usi(move) for move in cycle], Color.WHITE
    game = played(ShogiGame(start), *cycle * 3)
    assert game.turn is checker  # the evading king made the last move
    assert game.outcome() == Outcome(checker.opponent, Reason.PERPETUAL_CHECK)


@pytest.mark.parametrize("quiet_round", [0, 1, 2])
def test_one_move_without_check_in_the_cycle_makes_it_a_draw(quiet_round: int) -> None:
    rounds = [CYCLE] * 3
    rounds[quiet_round] = ["5a4a", "5d6d", "4a5a", "6d5d"]  # 5d6d does not check a king on 4a
    game = ShogiGame(DRAGON_CHECKS)
    for moves in rounds:
        played(game, *moves)
    assert game.outcome() == Outcome(None, Reason.REPETITION)


def test_a_quiet_move_before_the_first_occurrence_does_not_save_the_checker() -> None:
    game = ShogiGame("3k5/9/9/8+R/9/9/9/9/4K4 b - 1")
    played(game, "1d5d", "6a7a", "5d7d")
    played(game, *["7a6a", "7d6d", "6a7a", "6d7d"] * 3)
    assert game.outcome() == Outcome(Color.WHITE, Reason.PERPETUAL_CHECK)


def test_checks_before_the_first_occurrence_do_not_make_up_for_a_quiet_move_after_it() -> None:
    game = ShogiGame("4k4/9/9/9/9/4+R4/9/9/4K4 w - 1")
    played(game, "5a4a", "5f4f", "4a5a", "4f5e", "5a4a", "5e4d", "4a5a", "4d5d")  # four checks
    played(game, "5a4a", "5d6d", "4a5a", "6d5d")  # 5d6d gives none
    played(game, *CYCLE * 2)
    assert game.outcome() == Outcome(None, Reason.REPETITION)


def test_maximum_length_is_a_draw_counted_from_move_number_one() -> None:
    game = ShogiGame(max_moves=2)
    played(game, "7g7f", "3c3d")
    assert game.outcome() == Outcome(None, Reason.MAXIMUM_LENGTH)
    late = ShogiGame("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 512", max_moves=512)
    assert late.ply == 511
    assert late.outcome() is None
    late.push("7g7f")
    assert late.outcome() == Outcome(None, Reason.MAXIMUM_LENGTH)


def test_mate_and_repetition_come_before_maximum_length() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", max_moves=1)
    game.push("G*5b")
    assert game.outcome() == Outcome(Color.BLACK, Reason.CHECKMATE)
    game = played(ShogiGame(DRAGON_CHECKS, max_moves=12), *CYCLE * 3)
    assert game.outcome() == Outcome(Color.WHITE, Reason.PERPETUAL_CHECK)


def test_without_a_maximum_length_a_game_goes_on() -> None:
    game = ShogiGame("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 5000", max_moves=None)
    assert game.max_moves is None
    assert len(game.legal_moves()) == 30


def test_even_without_a_maximum_length_move_numbers_end_at_a_million() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b - 999999", max_moves=None)
    game.push("5i5h")
    assert ShogiGame(game.sfen(), max_moves=None).sfen() == game.sfen()
    assert game.outcome() == Outcome(None, Reason.MAXIMUM_LENGTH)


def test_resignation_gives_the_game_to_the_opponent_and_pop_takes_it_back() -> None:
    game = played(ShogiGame(), "7g7f")
    game.resign()
    assert game.outcome() == Outcome(Color.BLACK, Reason.RESIGNATION)
    with pytest.raises(RulesError, match="the game is over, resignation"):
        game.push("3c3d")
    with pytest.raises(RulesError, match="cannot resign"):
        game.resign()
    game.pop()
    assert game.outcome() is None
    assert game.ply == 0


# Black's king and ten other pieces in the zone: 7 small ones, a dragon, a horse and a rook = 7 + 15 = 22.
INSIDE = "+P+P+P+PK+P+P+P+R/7+BR/9/9/9/9/9/9/4k4"
BISHOPS_INSIDE = "+P+P+P+PK+P+P+P+P/7+BB/9/9/9/9/9/9/4k4"  # 8 small ones, a horse and a bishop = 18
DECLARATIONS = [
    # what, board and hand, rule, may declare
    ("28 points for black", f"{INSIDE} b 6P 1", "27", True),
    ("27 points are too few for black", f"{INSIDE} b 5P 1", "27", False),
    ("31 points by the rule of 24", f"{INSIDE} b B4P 1", "24", True),
    ("30 points by the rule of 24", f"{INSIDE} b B3P 1", "24", False),
    ("28 points by the rule of 24", f"{INSIDE} b 6P 1", "24", False),
    ("declaration switched off", f"{INSIDE} b B9P 1", "off", False),
    ("in check", "r3K+P+P+P+R/+P+P+P+P+P2+B1/9/9/9/9/9/9/4k4 b B9P 1", "27", False),
    ("nine pieces in the zone", "+P+P+P+PK+P+P1+R/7+BR/9/9/9/9/9/9/4k4 b B9P 1", "27", False),
    ("the king outside", "+P+P+P+P1+P+P+P+R/7+BR/9/4K4/9/9/9/9/4k4 b B9P 1", "27", False),
    ("a bishop there and a rook in hand are 5 each", f"{BISHOPS_INSIDE} b R5P 1", "27", True),
    ("enemy pieces do not count", "+P+P+P+PK+P+P1+R/7+BR/pp7/9/9/9/9/9/4k4 b B9P 1", "27", False),
    ("pieces outside do not count", "+P+P+P+PK+P+P+P+R/7+BR/9/PPPPP4/9/9/9/9/4k4 b P 1", "27", False),
]


WHY = {
    "27 points are too few for black": "points: 27, expected 28",
    "30 points by the rule of 24": "points: 30, expected 31",
    "28 points by the rule of 24": "points: 28, expected 31",
    "declaration switched off": "declaration is off",
    "in check": "the king is in check",
    "nine pieces in the zone": "pieces in the promotion zone: 9, expected 10",
    "the king outside": "the king is outside the promotion zone",
    "enemy pieces do not count": "pieces in the promotion zone: 9, expected 10",
    "pieces outside do not count": "points: 23, expected 2[78]",
}


@pytest.mark.parametrize(("what", "sfen", "rule", "may"), DECLARATIONS)
@pytest.mark.parametrize("flip", [False, True])
def test_declaration_by_points(what: str, sfen: str, rule: str, may: bool, flip: bool) -> None:
    if flip:
        sfen = flip_sfen(sfen)
        may = may or what == "27 points are too few for black"  # white needs only 27
    game = ShogiGame(sfen, declaration=rule)
    assert game.can_declare() is may, what
    assert ReferenceGame(sfen).can_declare(rule) is may
    if may:
        winner = game.turn
        game.declare()
        assert game.outcome() == Outcome(winner, Reason.DECLARATION)
        assert not game.can_declare()
        with pytest.raises(RulesError, match="the game is over, declaration"):
            game.declare()
    else:
        before = game.sfen()
        with pytest.raises(RulesError, match=f"^cannot declare in position {re.escape(before)}: {WHY[what]}"):
            game.declare()
        assert (game.outcome(), game.sfen()) == (None, before)


@pytest.mark.parametrize("flip", [False, True])
def test_a_king_on_the_enemy_kings_square_wins_by_the_try_rule(flip: bool) -> None:
    sfen, move, winner = "9/4K4/9/9/9/9/9/9/k8 b - 1", "5b5a", Color.BLACK
    if flip:
        sfen, move, winner = flip_sfen(sfen), flip_usi(move), Color.WHITE
    game = played(ShogiGame(sfen, declaration="try"), move)
    assert game.outcome() == Outcome(winner, Reason.DECLARATION)
    assert played(ShogiGame(sfen, declaration="27"), move).outcome() is None


@pytest.mark.parametrize("flip", [False, True])
def test_a_game_set_up_with_a_king_on_the_enemy_kings_square_is_won_by_the_try_rule(flip: bool) -> None:
    sfen, winner = "4K4/9/9/9/9/9/9/9/k8 b - 1", Color.BLACK
    if flip:
        sfen, winner = flip_sfen(sfen), Color.WHITE
    assert ShogiGame(sfen, declaration="try").outcome() == Outcome(winner, Reason.DECLARATION)


@pytest.mark.parametrize(("side", "winner"), [("b", Color.WHITE), ("w", Color.BLACK)])
def test_of_two_kings_on_each_others_squares_that_of_the_side_that_moved_last_wins(
    side: str, winner: Color
) -> None:
    game = ShogiGame(f"4K4/9/9/9/9/9/9/9/4k4 {side} - 1", declaration="try")
    assert game.outcome() == Outcome(winner, Reason.DECLARATION)


def test_the_try_rule_knows_no_declaration_by_points() -> None:
    sfen = "+P+P+PK+P+P+P+P+R/7+BR/9/9/9/9/9/9/1k7 b B9P 1"
    assert ShogiGame(sfen, declaration="27").can_declare()
    assert not ShogiGame(sfen, declaration="try").can_declare()
    with pytest.raises(RulesError, match="the try rule needs no declaration"):
        ShogiGame(sfen, declaration="try").declare()


def test_mate_comes_before_a_try_and_a_try_before_maximum_length() -> None:
    game = ShogiGame("ln7/k3K3R/8R/9/9/9/9/9/9 b - 1", declaration="try")
    assert played(game, "5b5a").outcome() == Outcome(Color.BLACK, Reason.CHECKMATE)
    game = ShogiGame("9/4K4/9/9/9/9/9/9/k8 b - 1", declaration="try", max_moves=1)
    assert played(game, "5b5a").outcome() == Outcome(Color.BLACK, Reason.DECLARATION)


def test_an_unknown_declaration_rule_or_length_is_refused() -> None:
    with pytest.raises(ValueError, match="declaration is '28', expected '27', '24', 'try' or 'off'"):
        ShogiGame(declaration="28")
    for wrong in (0, -1, 1_000_000):
        with pytest.raises(ValueError, match=f"max_moves is {wrong}, expected 1 to 999999, or None"):
            ShogiGame(max_moves=wrong)
