"""The engine against rsshogi, an independent engine, in random play: legal moves, check, mate, repetition."""

import random
from collections import Counter

import pytest

rsshogi_core = pytest.importorskip("rsshogi.core", reason="rsshogi has no build for this Python")

from keisei.shogi import START_SFEN, Color, Move, Reason, ShogiGame  # noqa: E402

# Even, full hands, and kings in the open: rare in random play from the start.
STARTS = [
    START_SFEN,
    "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1",
    "4k4/9/4p4/9/9/9/4P4/9/4K4 b RBrb 1",
    "3gkg3/9/9/9/9/9/9/9/3GKG3 w 2r2b 1",
]
# Few pieces and a check at hand: games that go round in circles.
CIRCLES = [
    "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1",
    "4k4/9/9/9/4+r4/9/9/9/4K4 b - 1",
    "3k5/9/9/4+R4/4+b4/9/9/9/4K4 b - 1",
    START_SFEN,
]


def any_move(game: ShogiGame, choose: random.Random, seed: int) -> Move:
    del seed
    return choose.choice(game.legal_moves())


def habitual_move(game: ShogiGame, choose: random.Random, seed: int) -> Move:
    """Choose mostly the same move when a position recurs, and in half of the games a check if there is one.

    Such games soon repeat themselves.
    """
    moves = game.legal_moves()
    random.Random(seed ^ game.key).shuffle(moves)
    if seed % 2:
        moves.sort(key=lambda move: not gives_check(game, move))
    return moves[0] if choose.random() < 0.9 else choose.choice(moves)


def gives_check(game: ShogiGame, move: Move) -> bool:
    game.push(move)
    check = game.is_check()
    game.pop()
    return check


def compare_play(positions: int, seed: int, circling: bool) -> Counter[str]:
    """Play games in both engines until this many positions are compared; return what was seen."""
    choose = random.Random(seed)
    seen: Counter[str] = Counter()
    choose_move = habitual_move if circling else any_move
    while seen["positions"] < positions:
        start = choose.choice(CIRCLES if circling else STARTS)
        game, board = ShogiGame(start, max_moves=400, declaration="off"), rsshogi_core.Board(start)
        for_this_game = choose.getrandbits(64)
        history = [(game.key, game.is_check())]
        while True:
            seen["positions"] += 1
            seen["checks"] += game.is_check()
            assert game.is_check() == board.is_in_check(), game.sfen()
            assert game.sfen() == board.to_sfen()
            assert board.is_repetition(3) == (game.earlier_occurrences == 3), game.sfen()
            legal = [move.to_usi() for move in board.legal_moves()]
            if game.outcome() is not None:
                compare_ends(game, board.repetition_state().to_usi(), history, legal, seen)
                break
            moves = [str(move) for move in game.legal_moves()]
            assert sorted(moves) == sorted(legal), game.sfen()
            move = choose_move(game, choose, for_this_game)
            game.push(move)
            board.apply_usi(str(move))
            history.append((game.key, game.is_check()))
    return seen


def compare_ends(
    game: ShogiGame, theirs: str, history: list[tuple[int, bool]], legal: list[str], seen: Counter[str]
) -> None:
    outcome = game.outcome()
    assert outcome is not None
    seen[outcome.reason] += 1
    mated = outcome.reason in (Reason.CHECKMATE, Reason.NO_LEGAL_MOVE)
    assert mated == (not legal)
    if mated:
        assert outcome.winner == game.turn.opponent
    elif outcome.reason == Reason.MAXIMUM_LENGTH:
        assert len(history) - 1 == 400
    else:
        winner = outcome.winner
        assert theirs == ("rep_draw" if winner is None else "rep_win" if winner == game.turn else "rep_lose")
        occurrences = [ply for ply, (key, _) in enumerate(history) if key == game.key]
        assert len(occurrences) == 4
        assert (winner, outcome.reason) == by_checks_since(game, history, occurrences[0])
        seen["otherwise by the last round alone"] += (
            winner != by_checks_since(game, history, occurrences[2])[0]
        )


def by_checks_since(
    game: ShogiGame, history: list[tuple[int, bool]], first: int
) -> tuple[Color | None, Reason]:
    """Return the verdict on a repetition, given the moves after position `first`."""
    last_mover = all(check for _, check in history[:first:-2])
    side_to_move = all(check for _, check in history[-2:first:-2])
    if last_mover == side_to_move:
        return None, Reason.REPETITION
    return (game.turn if last_mover else game.turn.opponent), Reason.PERPETUAL_CHECK


def test_100000_positions_of_random_play_agree() -> None:
    seen = compare_play(100_000, seed=1, circling=False)
    assert seen["checks"] > 5_000
    assert seen[Reason.CHECKMATE] > 100
    assert seen[Reason.NO_LEGAL_MOVE] > 10


def test_100000_positions_of_games_that_turn_in_circles_agree() -> None:
    seen = compare_play(100_000, seed=1, circling=True)
    assert seen[Reason.PERPETUAL_CHECK] > 50
    assert seen[Reason.REPETITION] > 50
    assert seen["otherwise by the last round alone"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("circling", [False, True])
@pytest.mark.parametrize("seed", [2, 3])
def test_4_million_positions_agree(seed: int, circling: bool) -> None:
    seen = compare_play(1_000_000, seed, circling)
    assert seen[Reason.CHECKMATE] > 100
    if circling:
        assert seen[Reason.PERPETUAL_CHECK] > 100
        assert seen[Reason.REPETITION] > 100
        assert seen["otherwise by the last round alone"] > 0
