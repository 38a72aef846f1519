import pytest

from keisei.shogi import START_SFEN, NotationError, RulesError
from keisei.usi.gui_position import game_length, set_up
from keisei.usi.protocol import SetPosition

SHUFFLE = ["2h3h", "8b7b", "3h2h", "7b8b"]


def test_the_game_has_its_history() -> None:
    game = set_up(SetPosition(START_SFEN, (*SHUFFLE, *SHUFFLE)), max_moves=100, declaration="24")
    assert [str(move) for move in game.history] == SHUFFLE * 2
    assert game.earlier_occurrences == 2
    assert (game.max_moves, game.declaration) == (100, "24")


def test_a_repetition_or_a_length_does_not_end_what_the_gui_goes_on_with() -> None:
    for moves in (SHUFFLE * 3, SHUFFLE * 4, [*SHUFFLE * 3, "7g7f"]):
        game = set_up(SetPosition(START_SFEN, tuple(moves)), max_moves=None, declaration="27")
        assert game.outcome() is None
        assert game.ply == len(moves)
    game = set_up(SetPosition(START_SFEN, ("7g7f", "3c3d", "2g2f")), max_moves=2, declaration="27")
    assert (game.outcome(), game.ply) == (None, 3)
    tried = SetPosition("4K4/9/9/9/9/9/9/9/k8 w - 1", ())
    assert set_up(tried, max_moves=None, declaration="try").legal_moves()


def test_a_mate_stays_one() -> None:
    mate = SetPosition("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", ("G*5b",))
    assert not set_up(mate, max_moves=None, declaration="27").legal_moves()
    with pytest.raises(RulesError, match="the game is over"):
        set_up(SetPosition(mate.sfen, ("G*5b", "5a4a")), max_moves=None, declaration="27")


def test_a_mate_problem_is_set_up_where_it_is_asked_for() -> None:
    problem = SetPosition("8k/9/9/9/9/9/9/9/7R1 b - 1", ())
    with pytest.raises(RulesError, match="black has 0 kings, expected one"):
        set_up(problem, max_moves=None, declaration="27")
    game = set_up(problem, max_moves=None, declaration="27", kings="defender")
    assert (game.sfen(), game.kings) == (problem.sfen, "defender")


@pytest.mark.parametrize("last", [0, 1, 2, 3])
def test_a_mate_problem_goes_on_after_a_repetition(last: int) -> None:
    """Also where the defender is to move, in a position that no game could begin with."""
    shuffle = ["2i1i", "1a2a", "1i2i", "2a1a"]
    moves = (*shuffle * 3, *shuffle[:last])
    problem = SetPosition("8k/9/9/9/9/9/9/9/7R1 b - 1", moves)
    game = set_up(problem, max_moves=None, declaration="27", kings="defender")
    assert game.outcome() is None
    assert (game.ply, game.kings) == (len(moves), "defender")
    expected = ["8k/9/9/9/9/9/9/9/7R1 b", "8k/9/9/9/9/9/9/9/8R w", "7k1/9/9/9/9/9/9/9/8R b",
                "7k1/9/9/9/9/9/9/9/7R1 w"][last]  # fmt: skip
    assert game.sfen() == f"{expected} - {len(moves) + 1}"


def test_a_mate_problem_may_begin_with_a_king_that_has_won_by_the_try_rule() -> None:
    problem = SetPosition("9/9/9/9/9/9/9/9/4k4 b G 1", ("G*1a",))
    game = set_up(problem, max_moves=None, declaration="try", kings="defender")
    assert (game.outcome(), game.ply, game.kings) == (None, 1, "defender")


@pytest.mark.parametrize(("moves", "kind"), [(["7g7e"], RulesError), (["7g7f", "what"], NotationError)])
def test_a_bad_move_is_refused(moves: list[str], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        set_up(SetPosition(START_SFEN, tuple(moves)), max_moves=None, declaration="27")


def test_without_a_rule_the_length_is_as_in_training_and_never_near() -> None:
    start = SetPosition(START_SFEN, ())
    assert game_length(start, 300, 256) == 300
    assert game_length(start, 0, 256) == 256
    assert game_length(start, 0, None) is None
    assert game_length(SetPosition(START_SFEN, ("7g7f",) * 200), 0, 256) == 400
    assert game_length(SetPosition(START_SFEN.replace(" 1", " 301"), ()), 0, 256) == 600
