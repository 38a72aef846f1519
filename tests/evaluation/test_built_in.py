import itertools

import numpy as np
import numpy.typing as npt
import pytest
from evaluation_play import VALUES, drawn, greedy_moves, wins_at_once
from reference import flip_sfen, flip_usi

from keisei.core.policy import Choice
from keisei.evaluation import (
    AlphaBetaPlayer,
    GreedyPlayer,
    MaterialPlayer,
    NetworkPlayer,
    Player,
    RandomPlayer,
    Turn,
)
from keisei.shogi import START_SFEN, Move, ShogiGame, encoding
from keisei.shogi.positions import Positions

FULL_HAND = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"
PAWN_DROP_TRAP = "7nk/R8/p8/9/9/9/9/9/4K4 b P 1"  # P*1b would be mate

# A position, and all the moves that win at once.
WINS = {
    "a drop": ("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", {"G*5b"}),
    "a drop where a pawn's is forbidden": (PAWN_DROP_TRAP.replace("b P", "b LP"), {"L*1b"}),
    "a pawn that steps": ("7nk/R8/8P/9/9/9/9/9/4K4 b - 1", {"1c1b", "1c1b+", "9b1b", "9b1b+"}),
    "a promotion": ("4k4/9/4P4/4L4/9/9/9/9/4K4 b - 1", {"5c5b+"}),
    "a discovered check": ("8k/6G2/9/9/8S/9/9/9/4K3R b - 1", {"1e2d", "1e2f"}),
    "a double check": ("3gk4/3p5/4G1K2/4L4/9/9/9/9/9 b - 1", {"5c4b"}),
    "a stalemate": ("k8/9/9/1+R7/9/9/9/9/4K4 b - 1", {"8d8c"}),
    "a mate that takes less than another move": ("4k4/4p4/4P4/4L4/9/r8/R8/9/4K4 b - 1", {"5c5b+"}),
}


def choice_of(actions: list[int]) -> Choice:
    zeros = np.zeros(len(actions), np.float32)
    return Choice(np.array(actions, np.int32), zeros, zeros)


class FakePolicy:
    """A policy for the largest action; above temperature 0 for the one that the random number selects."""

    def __init__(self) -> None:
        self.seen: list[Positions] = []

    def select_action(
        self, positions: Positions, uniforms: npt.NDArray[np.float64], temperature: float
    ) -> Choice:
        self.seen.append(positions)
        lists = [positions.legal(row) for row in range(len(positions))]
        if temperature == 0:
            return choice_of([legal.max() for legal in lists])
        return choice_of([legal[int(draw * len(legal))] for legal, draw in zip(lists, uniforms, strict=True)])


def everyone() -> list[Player]:
    return [
        RandomPlayer(3),
        GreedyPlayer(3),
        MaterialPlayer(3),
        AlphaBetaPlayer(1, 3),
        NetworkPlayer(FakePolicy(), "max", 3),
        NetworkPlayer(FakePolicy(), "drawing", 3, temperature=1.0),
    ]


def in_play(count: int, plies: int, starts: list[str] | None = None) -> list[Turn]:
    """Return games after this many random moves, or at their end; each has a different number."""
    turns = [
        Turn(ShogiGame((starts or [START_SFEN])[number % len(starts or "1")]), 100 + number)
        for number in range(count)
    ]
    for _ in range(plies):
        step(turns)
    return turns


def step(turns: list[Turn]) -> None:
    """Play a random move in every game; a finished game starts over."""
    for index, (turn, move) in enumerate(zip(turns, RandomPlayer(9).choose(turns), strict=True)):
        turn.game.push(move)
        if turn.game.outcome() is not None:
            turns[index] = Turn(ShogiGame(turn.game.start_sfen), turn.number + 1000)


def chosen_move(player: Player, sfen: str, declaration: str = "27") -> str:
    return answer(player, ShogiGame(sfen, declaration=declaration))


def answer(player: Player, game: ShogiGame) -> str:
    (move,) = player.choose([Turn(game, 0)])
    return str(move)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("what", WINS)
def test_greedy_plays_what_wins_at_once(what: str, flip: bool) -> None:
    sfen, winning = WINS[what]
    if flip:
        sfen, winning = flip_sfen(sfen), {flip_usi(move) for move in winning}
    game = ShogiGame(sfen)
    assert {str(move) for move in game.legal_moves() if wins_at_once(game, move)} == winning
    seen = {chosen_move(GreedyPlayer(seed), sfen) for seed in range(30)}
    assert seen == winning


@pytest.mark.parametrize("flip", [False, True])
def test_greedy_takes_a_pawn_where_the_mate_by_a_dropped_pawn_is_forbidden(flip: bool) -> None:
    sfen, best = PAWN_DROP_TRAP, {"9b9c", "9b9c+"}
    if flip:
        sfen, best = flip_sfen(sfen), {flip_usi(move) for move in best}
    assert {chosen_move(GreedyPlayer(seed), sfen) for seed in range(30)} == best


def test_greedy_plays_the_king_s_try() -> None:
    sfen = "9/3pK4/9/9/9/9/9/9/k8 b - 1"
    assert chosen_move(GreedyPlayer(1), sfen, "try") == "5b5a"
    assert chosen_move(GreedyPlayer(1), sfen, "27") == "5b6b"  # takes the pawn


def test_greedy_completes_a_repetition_that_the_opponent_s_checks_have_lost() -> None:
    game = ShogiGame("3k5/9/9/4+R4/9/9/9/9/4K4 b - 1")
    cycle = ["5d6d", "6a5a", "6d5d", "5a6a"] * 3
    for move in cycle[:-1]:
        game.push(move)
    assert {answer(GreedyPlayer(seed), game) for seed in range(30)} == {"5a6a"}


@pytest.mark.parametrize("flip", [False, True])
def test_greedy_takes_the_more_valuable_of_two_pieces(flip: bool) -> None:
    for one, other in itertools.product(VALUES, repeat=2):
        row = "4" + "".join(
            f"+{piece[1].lower()}" if piece[0] == "+" else piece.lower() for piece in (one, other)
        )
        sfen = f"8k/9/9/{row}3/4G4/9/9/9/1K7 b - 1"
        best = {"5e5d"} if VALUES[one] > VALUES[other] else {"5e4d"}
        if VALUES[one] == VALUES[other]:
            best = {"5e5d", "5e4d"}
        if flip:
            sfen, best = flip_sfen(sfen), {flip_usi(move) for move in best}
        assert {chosen_move(GreedyPlayer(seed), sfen) for seed in range(12)} == best, (one, other)


@pytest.mark.parametrize("starts", [None, [FULL_HAND, flip_sfen(FULL_HAND)]])
def test_greedy_is_its_definition_in_positions_of_random_play(starts: list[str] | None) -> None:
    turns = in_play(8, 0, starts)
    checked = winning = captures = 0
    for _ in range(120):
        for (game, number), move in zip(pairs(turns), GreedyPlayer(3).choose(turns), strict=True):
            best = greedy_moves(game)
            checked += 1
            winning += wins_at_once(game, best[0])
            captures += game.piece_at(best[0].to_square) is not None
            assert move == drawn(best, game, 3, number), game.sfen()
        step(turns)
    assert checked == 960
    assert captures > 300
    assert winning > 20 or not starts


def test_random_draws_from_the_legal_moves_by_game_and_ply() -> None:
    turns = in_play(8, 40)
    for (game, number), move in zip(pairs(turns), RandomPlayer(4).choose(turns), strict=True):
        assert move == drawn(game.legal_moves(), game, 4, number)


@pytest.mark.parametrize(
    "player", [RandomPlayer(1), GreedyPlayer(1), MaterialPlayer(1)], ids=lambda player: player.name
)
def test_equal_moves_are_equally_probable(player: Player) -> None:
    turns = [Turn(ShogiGame(), number) for number in range(3000)]
    _, counts = np.unique([str(move) for move in player.choose(turns)], return_counts=True)
    assert len(counts) == 30
    assert ((counts > 60) & (counts < 140)).all()  # 100 each, give or take four deviations


@pytest.mark.parametrize("player", everyone(), ids=lambda player: player.name)
def test_a_choice_does_not_depend_on_the_other_games(player: Player) -> None:
    turns = in_play(12, 90)
    before = [turn.game.sfen() for turn in turns]
    alone = [player.choose([turn])[0] for turn in turns]
    some = [7, 0, 11, 3]
    assert [*player.choose(turns)] == alone
    assert [*player.choose([turns[index] for index in some])] == [alone[index] for index in some]
    copies = [Turn(turn.game.copy(), turn.number) for turn in turns]
    assert [*player.choose(copies)] == alone
    assert [turn.game.sfen() for turn in turns] == before
    assert [*player.choose([])] == []


def test_the_material_player_promotes_where_the_greedy_one_does_not_see_it() -> None:
    sfen = "4k4/9/9/9/9/9/9/3R5/4K4 b - 1"  # no piece to take, no mate; the rook can promote
    assert {chosen_move(MaterialPlayer(seed), sfen) for seed in range(20)} <= {
        str(move) for move in ShogiGame(sfen).legal_moves() if move.promotes
    }
    assert len({chosen_move(GreedyPlayer(seed), sfen) for seed in range(40)}) > 5


def test_alpha_beta_does_not_take_what_is_defended() -> None:
    sfen = "4k4/9/5s3/4p4/9/4R4/9/9/3K5 b - 1"  # the silver would take the rook
    assert chosen_move(MaterialPlayer(1), sfen) == "5f5d"
    assert chosen_move(AlphaBetaPlayer(2, 1), sfen) != "5f5d"


def test_a_network_sees_the_positions_of_its_games_in_one_call() -> None:
    turns = in_play(12, 90)
    policy, some = FakePolicy(), [turns[index] for index in (7, 0, 11, 3)]
    NetworkPlayer(policy, "max", 1).choose(some)
    (seen,) = policy.seen
    packed = encoding.pack([turn.game for turn in some])
    own_offsets, own_actions = encoding.legal_actions(packed)
    assert (seen.planes == encoding.planes(packed)).all()
    assert seen.planes.dtype == np.float32
    assert seen.offsets.dtype == seen.actions.dtype == np.int32
    assert seen.offsets.tolist() == own_offsets.tolist()
    assert seen.actions.tolist() == own_actions.tolist()


def test_a_network_draws_by_its_seed_above_temperature_0_only() -> None:
    turns = in_play(12, 90)
    chosen = {
        (seed, temperature): NetworkPlayer(FakePolicy(), "net", seed, temperature).choose(turns)
        for seed in (1, 2)
        for temperature in (0.0, 1.0)
    }
    assert chosen[1, 0.0] == chosen[2, 0.0] == [largest(turn.game) for turn in turns]
    assert chosen[1, 1.0] == RandomPlayer(1).choose(turns)
    assert chosen[2, 1.0] != chosen[1, 1.0]


def largest(game: ShogiGame) -> Move:
    return max(game.legal_moves(), key=lambda move: encoding.action_of(move, game.turn))


def pairs(turns: list[Turn]) -> list[tuple[ShogiGame, int]]:
    return [(turn.game, turn.number) for turn in turns]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"temperature is -0\.5, expected 0 or more"):
        NetworkPlayer(FakePolicy(), "net", 1, temperature=-0.5)
    with pytest.raises(ValueError, match="temperature is nan"):
        NetworkPlayer(FakePolicy(), "net", 1, temperature=float("nan"))
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"seed is {seed}, expected 0 to {2**64 - 1}"):
            RandomPlayer(seed)
        with pytest.raises(ValueError, match=f"seed is {seed}"):
            GreedyPlayer(seed)
    for depth in (0, 7):
        with pytest.raises(ValueError, match=f"depth is {depth}, expected 1 to 6"):
            AlphaBetaPlayer(depth, 1)
