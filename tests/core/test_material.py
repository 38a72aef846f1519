"""Material against a count of the pieces, along games of both colours."""

import random

import numpy as np
import pytest

from keisei.core.material import leads_at_length, material, material_gains
from keisei.core.segment import Segment, SegmentShape
from keisei.shogi import Color, ShogiGame
from keisei.shogi.encoding import pack, pack_sfens

WORTH = {"P": 1, "L": 3, "N": 4, "S": 5, "G": 6, "B": 8, "R": 10, "K": 0}
WORTH |= {"+P": 7, "+L": 6, "+N": 6, "+S": 6, "+B": 10, "+R": 12}
SQUARES = [f"{file}{rank}" for file in range(1, 10) for rank in "abcdefghi"]
# An even game, and one with full hands and promotions available.
STARTS = [
    None,
    "4k4/P8/1N7/9/4b4/4R4/9/7p1/4K4 b RBGS2N2L5Pgs2l5p 1",
    "4k4/9/9/9/4b4/4R4/9/9/4K4 w 2G2g9P8p 1",
]


def counted(game: ShogiGame, color: Color) -> int:
    """Return that side's material, less the other's."""
    balance = 0
    for square in SQUARES:
        piece = game.piece_at(square)
        if piece is not None:
            balance += WORTH[piece.upper()] * (1 if piece.isupper() == (color == Color.BLACK) else -1)
    for side in Color:
        hand = sum(WORTH[piece.upper()] * count for piece, count in game.hand(side).items())
        balance += hand if side == color else -hand
    return balance


@pytest.mark.parametrize("start", STARTS)
def test_it_is_the_count_of_the_pieces_in_every_position(start: str | None) -> None:
    kinds = set()
    for seed in range(4):
        choose, game = random.Random(seed), ShogiGame(start, max_moves=None)
        packed, expected, gains, kind = [pack([game])], [counted(game, game.turn)], [], []
        while len(packed) < 120 and game.outcome() is None:
            move = choose.choice(game.legal_moves())
            before, mover = counted(game, game.turn), game.turn
            taken = game.piece_at(move.to_square)
            kind.append(
                (mover, "drop" if move.dropped else "promotion" if move.promotes else "move", bool(taken))
            )
            game.push(move)
            packed.append(pack([game]))
            expected.append(counted(game, game.turn))
            gains.append(counted(game, mover) - before)
        rows = np.concatenate(packed)
        assert material(rows).dtype == np.float32
        assert material(rows).tolist() == expected
        kinds |= set(kind)

        steps = len(gains)
        segment = Segment.empty(SegmentShape(steps, 1))
        segment.packed[:, 0], segment.after[:] = rows[:-1], rows[-1:]
        assert material_gains(segment)[:, 0].tolist() == gains
        for gain, (_, what, captured) in zip(gains, kind, strict=True):
            assert gain == 0 if what == "drop" else gain >= 0
            assert captured == (gain > 0) or what == "promotion"
    assert {(color, what) for color, what, _ in kinds} == {
        (color, what) for color in Color for what in ("move", "drop", "promotion")
    }
    assert {(color, taken) for color, _, taken in kinds} >= {(color, True) for color in Color}


def test_a_capture_by_hand() -> None:
    # Black's pawn takes a promoted pawn and promotes: +7 off the board, +1 in hand, +6 for the promotion.
    game = ShogiGame("4k4/9/4+p4/4P4/9/9/9/9/4K4 b - 1")
    before = pack([game])
    game.push("5d5c+")
    segment = Segment.empty(SegmentShape(1, 1))
    segment.packed[0], segment.after[:] = before, pack([game])
    assert material(before).tolist() == [1 - 7]
    assert material(pack([game])).tolist() == [-(7 + 1)]
    assert material_gains(segment).tolist() == [[14]]


def test_the_move_that_ends_a_game_gains_nothing_and_streams_are_apart() -> None:
    sfens = ["4k4/9/9/9/9/9/9/9/4K4 b R 1", "4k4/9/9/9/9/9/9/9/4K4 w R 1", "4k4/9/9/9/9/9/9/9/4K4 b r2b 1"]
    segment = Segment.empty(SegmentShape(2, 2))
    first, second, third = pack_sfens(sfens)
    segment.packed[:, 0], segment.after[0] = [first, second], first  # +10, -10 and again +10
    segment.packed[:, 1], segment.after[1] = [third, first], second  # -26, then another game: +10, -10
    segment.ended[:, 1] = [True, False]
    assert material_gains(segment).tolist() == [[0, 0], [0, 0]]
    segment.ended[:] = False
    assert material_gains(segment).tolist() == [[0, 16], [0, 0]]
    segment.after[1] = third  # White is to move now, so -26 would be White's loss
    segment.ended[1, 0] = True
    assert material_gains(segment).tolist() == [[0, 16], [0, 16]]


def test_who_leads_where_a_game_reached_its_maximum_length() -> None:
    """Black is a rook up; the games end by length, by repetition, by mate and not at all."""
    ahead, behind = "4k4/9/9/9/9/9/9/9/4K3R b - 10", "4k4/9/9/9/9/9/9/9/4K3R w - 10"
    segment = Segment.empty(SegmentShape(2, 4))
    for t, sfen in enumerate((behind, ahead)):
        segment.packed[t] = np.concatenate(
            [pack_sfens([sfen], max_moves=limit) for limit in (10, 99, 10, 10)]
        )
    segment.ended[:] = [[True, True, True, False], [True, True, True, False]]
    segment.rewards[:, 2] = 1
    lead = np.tanh(np.float32(1.0))
    assert leads_at_length(segment) == pytest.approx(np.array([[-lead, 0, 0, 0], [lead, 0, 0, 0]]))
