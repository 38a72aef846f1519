"""The values of a game's positions, with evaluations whose result can be worked out by hand."""

import numpy as np
import numpy.typing as npt
import pytest
from analysis_cases import DECLARABLE, GOLD_MATES, SHUFFLE, moves

from keisei.analysis import game_analysis
from keisei.analysis.game_analysis import Analyst, PositionValue, ReviewedMove
from keisei.search.puct import Evaluate
from keisei.shogi import Color, GameRecord, Move, Outcome, Reason
from keisei.shogi.positions import Positions

BLACK, WHITE = Color.BLACK, Color.WHITE
OPENING = GameRecord(moves("7g7f 3c3d 8h2b+ 3a2b"))


def confident(positions: Positions) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Evaluate every position as 0.2 for the side to move, its moves as equally good."""
    counts = np.diff(positions.offsets)
    return np.repeat((1 / counts).astype(np.float32), counts), np.full(len(counts), 0.2, np.float32)


def even(positions: Positions) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    priors, values = confident(positions)
    return priors, values * 0


def analyst(evaluate: Evaluate = even) -> Analyst:
    return Analyst(evaluate, "even", 512)


def test_a_win_rate_belongs_to_the_side_to_move() -> None:
    analysis = analyst(confident).analyze(OPENING, visits=1)
    assert [position.win_rate for position in analysis.positions] == pytest.approx([0.6] * 5)
    assert analysis.black_win_rates == pytest.approx([0.6, 0.4, 0.6, 0.4, 0.6])
    assert [(move.number, str(move.move), move.side) for move in analysis.moves] == [
        (1, "7g7f", BLACK), (2, "3c3d", WHITE), (3, "8h2b+", BLACK), (4, "3a2b", WHITE),
    ]  # fmt: skip
    # 60 % before the move, 40 % after it, unless the search would have played it.
    assert [move.loss for move in analysis.moves] == pytest.approx(
        [0.0 if move.is_best else 0.2 for move in analysis.moves]
    )
    assert (analysis.network, analysis.visits) == ("even", 1)


def test_a_missed_mate_is_a_loss_and_the_mate_is_named() -> None:
    missed = analyst().analyze(GameRecord(moves("G*5d 5a4a"), GOLD_MATES), visits=200).moves[0]
    assert (missed.before.win_rate, missed.before.mate) == (1.0, 1)
    assert missed.before.line == moves("G*5b")
    assert missed.loss > 0.1
    played = analyst().analyze(GameRecord(moves("G*5b"), GOLD_MATES), visits=200).moves[0]
    assert (played.loss, played.is_best, played.after.win_rate) == (0.0, True, 0.0)
    assert played.after.win_rate_of(BLACK) == 1.0


def test_a_loss_is_never_negative_and_none_with_the_best_move() -> None:
    best, other = moves("7g7f 2g2f")
    before = PositionValue(BLACK, 0.5, None, (best,))
    assert ReviewedMove(1, other, before, PositionValue(WHITE, 0.9)).loss == pytest.approx(0.4)
    assert ReviewedMove(1, other, before, PositionValue(WHITE, 0.2)).loss == 0.0
    assert ReviewedMove(1, best, before, PositionValue(WHITE, 0.9)).loss == 0.0


def test_the_rules_decide_where_they_can() -> None:
    drawn = analyst(confident).analyze(GameRecord(moves(SHUFFLE)), visits=1)
    assert drawn.black_win_rates[-1] == 0.5
    assert drawn.positions[-1].line == ()
    declarable = analyst().analyze(GameRecord(moves("5a5b"), DECLARABLE), visits=5).moves[0]
    assert (declarable.before.win_rate, declarable.before.line) == (1.0, ())


def test_a_resigned_game_is_searched_to_its_end() -> None:
    resigned = GameRecord(OPENING.moves, outcome=Outcome(WHITE, Reason.RESIGNATION))
    assert analyst(confident).analyze(resigned, visits=1).positions[-1].win_rate == pytest.approx(0.6)


def test_positions_are_searched_in_portions_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = analyst().analyze(OPENING, visits=40)
    monkeypatch.setattr(game_analysis, "POSITIONS_AT_ONCE", 2)
    told: list[tuple[int, int]] = []
    parts = analyst().analyze(OPENING, visits=40, progress=lambda values, of: told.append((len(values), of)))
    assert parts == whole
    assert told == [(0, 5), (2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize(("trained", "share"), [(512, 3 / 512), (2, 3 / 6), (None, 0.0)])
def test_the_network_sees_an_end_that_is_never_near(trained: int | None, share: float) -> None:
    seen = []

    def watching(positions: Positions) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        seen.append(float(positions.planes[:, 43].max()))
        return even(positions)

    Analyst(watching, "watching", trained).analyze(GameRecord(moves("7g7f 3c3d 2g2f")), visits=1)
    assert max(seen) == pytest.approx(share, abs=1e-4)


def test_a_line_begins_with_a_legal_move() -> None:
    for position, move in zip(analyst().analyze(OPENING, visits=30).positions, OPENING.moves, strict=False):
        assert isinstance(move, Move)
        assert len(position.line) >= 1
