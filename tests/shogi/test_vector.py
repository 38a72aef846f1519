"""The vector of games: those that ShogiGame plays, for any number of threads, saved and restored exactly."""

import copy
import os
import pickle
import random
import struct
import subprocess
import sys
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from keisei.shogi import START_SFEN, Color, NotationError, Reason, RulesError, ShogiGame, encoding
from keisei.shogi.records import read_csa, read_kif, write_csa, write_kif
from keisei.shogi.vector import Batch, FinishedGame, VectorGames

Actions = npt.NDArray[np.int32]

# An even game, full hands, and few pieces with a check at hand: games of every kind and end.
STARTS = [
    START_SFEN,
    "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1",
    "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1",
    "3k5/9/9/4+R4/4+b4/9/9/9/4K4 b - 31",
    "4k4/9/4P4/9/9/9/9/9/4K4 b G 1",
    "+P+P+PK1+P+P+P+P/+P+P+P6/9/9/9/9/9/9/3k5 w RB8Prb 10",
    "5K3/9/9/9/9/9/9/6+p+p+p/+p+p+p+p1k+p+p+p b RBrb8p 10",
]


# No player resigns here, and the rest comes only from records of games played elsewhere.
RECORDS_ONLY = set(list(Reason)[list(Reason).index(Reason.RESIGNATION) :])


class RandomPlayers:
    """Choose among the legal actions: the same for the same seed and the same batches."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, batch: Batch) -> Actions:
        first, last = batch.offsets[:-1], batch.offsets[1:]
        where = first + (self._random.random(len(first)) * (last - first)).astype(np.int32)
        return batch.actions[where]


class HabitualPlayers(RandomPlayers):
    """Mostly the same move when a position comes back; such games soon repeat themselves."""

    def __call__(self, batch: Batch) -> Actions:
        actions = super().__call__(batch)
        for slot in np.flatnonzero(self._random.random(len(actions)) < 0.9).tolist():
            place = batch.packed[slot, 8:].copy()
            place[14] &= 1  # of the flags, the side
            legal = batch.legal(slot)
            actions[slot] = legal[zlib.crc32(place.tobytes()) % len(legal)]
        return actions


def arrays(batch: Batch) -> list[bytes]:
    """All that a step has written."""
    assert batch.planes is not None
    assert batch.mask is not None
    legal = batch.actions[: batch.offsets[-1]]
    written = [batch.rewards, batch.ended, batch.packed, batch.offsets, legal, batch.planes, batch.mask]
    return [array.tobytes() for array in written]


def replay(game: FinishedGame, max_moves: int | None, declaration: str) -> ShogiGame:
    """Play a finished game again, one move at a time; it must not be over before its last move."""
    again = ShogiGame(game.start_sfen, max_moves=max_moves, declaration=declaration)
    for move in game.moves:
        assert not again.can_declare()
        again.push(move)  # refuses if the game is over
    if again.can_declare():
        again.declare()
    return again


@pytest.mark.parametrize("threads", [1, 2])
def test_ten_thousand_games_are_those_of_shogi_game(threads: int) -> None:
    reasons: Counter[str] = Counter()
    for declaration, max_moves, plies, games_wanted, players in [
        ("27", 120, 0, 4000, RandomPlayers(1)),
        ("24", 200, 3, 2000, RandomPlayers(2)),
        ("try", 90, 6, 1500, RandomPlayers(3)),
        ("off", 512, 0, 1000, RandomPlayers(4)),
        ("27", 300, 2, 1500, HabitualPlayers(5)),
    ]:
        games = VectorGames(
            96,
            threads=threads,
            seed=7,
            max_moves=max_moves,
            declaration=declaration,
            starts=STARTS,
            random_plies=plies,
        )
        batch, seen = Batch.empty(96, planes=False), 0
        chosen: list[list[int]] = [[] for _ in range(96)]
        games.observe(batch)
        while seen < games_wanted:
            actions = players(batch)
            finished = games.step(actions, batch)
            for slot, action in enumerate(actions.tolist()):
                chosen[slot].append(action)
            ended = [game.slot for game in finished]
            assert np.flatnonzero(batch.ended).tolist() == ended
            assert not batch.rewards[~batch.ended].any()
            for game in finished:
                again = replay(game, max_moves, declaration)
                assert again.outcome() == game.outcome
                assert encoding.pack([again])[0].tobytes() == game.final_position.tobytes()
                assert reward_of_last_mover(game) == batch.rewards[game.slot]
                assert chosen_moves(chosen[game.slot], game) == list(game.moves[game.opening :])
                chosen[game.slot] = []
                reasons[game.outcome.reason] += 1
            seen += len(finished)
    assert reasons.keys() == set(Reason) - RECORDS_ONLY, reasons
    assert sum(reasons.values()) >= 10_000


def mover_of_ply(game: FinishedGame, ply: int) -> Color:
    first = Color.WHITE if " w " in game.start_sfen else Color.BLACK
    return first if ply % 2 == 0 else first.opponent


def reward_of_last_mover(game: FinishedGame) -> int:
    winner = game.outcome.winner
    if winner is None:
        return 0
    return 1 if winner is mover_of_ply(game, len(game.moves) - 1) else -1


def chosen_moves(actions: list[int], game: FinishedGame) -> list[object]:
    return [
        encoding.move_of(action, mover_of_ply(game, game.opening + i)) for i, action in enumerate(actions)
    ]


def test_what_is_seen_is_what_shogi_game_shows() -> None:
    games, batch = VectorGames(8, seed=3, starts=STARTS, max_moves=100), Batch.empty(8, mask=True)
    players = RandomPlayers(4)
    games.observe(batch)
    for _ in range(300):
        shadows = [games.game(slot) for slot in range(8)]
        packed = encoding.pack(shadows)
        assert np.array_equal(batch.packed, packed)
        assert batch.planes is not None
        assert batch.mask is not None
        assert np.array_equal(batch.planes, encoding.planes(packed))
        assert np.array_equal(batch.mask, encoding.legal_mask(packed))
        for slot, shadow in enumerate(shadows):
            legal = [encoding.action_of(move, shadow.turn) for move in shadow.legal_moves()]
            assert batch.legal(slot).tolist() == legal
        games.step(players(batch), batch)


@pytest.mark.parametrize("other", [2, 3, 8])
def test_the_number_of_threads_changes_nothing(other: int) -> None:
    one, many = (
        VectorGames(37, threads=threads, seed=5, starts=STARTS, random_plies=4, max_moves=60)
        for threads in (1, other)
    )
    batches = [Batch.empty(37, mask=True) for _ in range(2)]
    players = RandomPlayers(2)
    one.observe(batches[0])
    many.observe(batches[1])
    for _ in range(400):
        assert arrays(batches[0]) == arrays(batches[1])
        actions = players(batches[0])
        ends = [games.step(actions, batch) for games, batch in zip((one, many), batches, strict=True)]
        assert [(game.slot, game.number, game.moves, game.outcome) for game in ends[0]] == [
            (game.slot, game.number, game.moves, game.outcome) for game in ends[1]
        ]
    assert one.save() == many.save()


def test_only_what_is_wanted_is_written() -> None:
    games, batch = VectorGames(4), Batch.empty(4, planes=False)
    games.observe(batch)
    total = int(batch.offsets[-1])
    assert total == 4 * 30
    assert not batch.actions[total:].any()
    assert batch.planes is None


def fields_of(batch: Batch) -> dict[str, Any]:
    return {field: getattr(batch, field) for field in Batch.__dataclass_fields__}


@pytest.mark.parametrize(
    "absent",
    [["rewards", "ended"], ["packed"], ["planes"], ["packed", "planes"], ["offsets", "actions"], ["mask"]],
)
def test_an_array_that_is_not_wanted_changes_nothing_in_the_others(absent: list[str]) -> None:
    whole, part = (VectorGames(6, seed=2, starts=STARTS, max_moves=40) for _ in range(2))
    batch = Batch.empty(6, mask=True)
    some = fields_of(Batch.empty(6, mask=True)) | dict.fromkeys(absent)
    whole.observe(batch)
    part.observe(Batch(**some))
    players = RandomPlayers(1)
    for _ in range(60):
        actions = players(batch)
        assert len(whole.step(actions, batch)) == len(part.step(actions, Batch(**some)))
        for name in some.keys() - {*absent, "actions"}:
            assert np.array_equal(some[name], getattr(batch, name)), name


@pytest.mark.parametrize("absent", ["offsets", "actions"])
def test_offsets_and_actions_are_wanted_both_or_not_at_all(absent: str) -> None:
    half = Batch(**(fields_of(Batch.empty(2)) | {absent: None}))
    with pytest.raises(ValueError, match="offsets and actions are wanted both or not at all"):
        VectorGames(2).observe(half)


def test_what_the_arrays_held_before_does_not_matter() -> None:
    clean, used = Batch.empty(6, mask=True), Batch.empty(6, mask=True)
    for array in fields_of(used).values():
        array[:] = 1
    for batch in (clean, used):
        games = VectorGames(6, seed=2, starts=STARTS)
        games.observe(batch)
        games.step(RandomPlayers(1)(batch), batch)
    assert arrays(used) == arrays(clean)


# ---------------------------------------------------------------------------- how games begin


def splitmix(state: int) -> tuple[int, int]:
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return state, z ^ z >> 31


class Stream:
    """The random stream of a game, written down a second time."""

    def __init__(self, seed: int, number: int) -> None:
        _, mixed = splitmix(seed)
        _, self._state = splitmix((mixed + number) % 2**64)

    def below(self, n: int) -> int:
        self._state, value = splitmix(self._state)
        return (value >> 32) * n >> 32


def beginning(seed: int, number: int, starts: list[str], plies: int) -> ShogiGame:
    stream = Stream(seed, number)
    game = ShogiGame(starts[stream.below(len(starts))] if len(starts) > 1 else starts[0])
    for _ in range(plies):
        moves = game.legal_moves()
        game.push(moves[stream.below(len(moves))])
        if game.outcome() or game.can_declare():
            game.pop()
            break
    return game


@pytest.mark.parametrize(
    ("starts", "plies"), [([START_SFEN], 0), ([START_SFEN], 7), (STARTS, 0), (STARTS, 12)]
)
def test_a_beginning_depends_on_seed_and_number_alone(starts: list[str], plies: int) -> None:
    seed = 2**64 - 3
    games = VectorGames(40, threads=2, seed=seed, starts=starts, random_plies=plies, first_number=1000)
    assert games.numbers == list(range(1000, 1040))
    for slot, number in enumerate(games.numbers):
        game, expected = games.game(slot), beginning(seed, number, starts, plies)
        assert (game.start_sfen, game.history) == (expected.start_sfen, expected.history)
    # and so do those of the games that follow
    batch, players = Batch.empty(40), RandomPlayers(9)
    games.observe(batch)
    followed = 0
    for _ in range(150):
        for ended in games.step(players(batch), batch):
            number = games.numbers[ended.slot]
            assert number == ended.number + 40
            expected = beginning(seed, number, starts, plies)
            assert games.game(ended.slot).history == expected.history
            followed += 1
    assert followed > 0


def test_two_vectors_share_one_sequence_of_games() -> None:
    whole = VectorGames(6, seed=1, random_plies=9)
    halves = [VectorGames(3, seed=1, random_plies=9, first_number=3 * i, stride=6) for i in range(2)]
    histories = [half.game(slot).history for half in halves for slot in range(3)]
    assert histories == [whole.game(slot).history for slot in range(6)]
    assert [number for half in halves for number in half.numbers] == whole.numbers


def test_the_games_of_a_slot_are_a_stride_apart() -> None:
    games, batch = VectorGames(3, max_moves=1, first_number=5, stride=100), Batch.empty(3)
    players = RandomPlayers(1)
    games.observe(batch)
    numbers = [[game.number for game in games.step(players(batch), batch)] for _ in range(3)]
    assert numbers == [[5, 6, 7], [105, 106, 107], [205, 206, 207]]


def test_a_vector_has_the_rules_of_shogi_game_unless_told_others() -> None:
    games, game = VectorGames(3), ShogiGame()
    assert (games.max_moves, games.declaration) == (game.max_moves, game.declaration) == (512, "27")
    assert (games.seed, games.threads, games.numbers) == (0, 1, [0, 1, 2])


def test_seeds_give_different_openings() -> None:
    openings = {str(VectorGames(1, seed=seed, random_plies=4).game(0).history) for seed in range(50)}
    assert len(openings) > 45


# ------------------------------------------------------------------------------- how they end


def play_line(start: str, line: str, **rules: Any) -> tuple[list[float], list[FinishedGame]]:
    """The rewards of a line of USI moves in one game, and the games that ended."""
    games, batch = VectorGames(1, starts=[start], **rules), Batch.empty(1)
    rewards: list[float] = []
    ended: list[FinishedGame] = []
    for move in line.split():
        action = encoding.action_of(move, games.game(0).turn)
        ended += games.step(np.array([action], np.int32), batch)
        rewards.append(float(batch.rewards[0]))
    return rewards, ended


def test_the_reward_is_the_movers() -> None:
    mate, [game] = play_line("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", "G*5b")
    assert (mate, str(game.outcome)) == ([1], "black wins by checkmate")
    mate, [game] = play_line("4k4/9/9/9/9/9/4p4/9/4K4 w g 1", "G*5h")
    assert (mate, str(game.outcome)) == ([1], "white wins by checkmate")


def test_who_repeats_a_perpetual_check_has_lost() -> None:
    # Black checks all the time; White's king makes the fourth occurrence, Black's check another one.
    start = "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1"
    circle = "5a4a 5d4d 4a5a 4d5d"
    rewards, [game] = play_line(start, " ".join([circle] * 3))
    assert str(game.outcome) == "white wins by perpetual check"
    assert rewards == [0] * 11 + [-1]
    assert mover_of_ply(game, 11) is Color.BLACK


def test_a_draw_rewards_nobody() -> None:
    rewards, [game] = play_line(START_SFEN, " ".join(["2h3h 8b7b 3h2h 7b8b"] * 3))
    assert (rewards, str(game.outcome)) == ([0] * 12, "draw by repetition")
    rewards, [game] = play_line(START_SFEN, "7g7f 3c3d", max_moves=2)
    assert (rewards, str(game.outcome)) == ([0, 0], "draw by maximum length")


def test_a_side_that_may_declare_after_the_others_move_has_won() -> None:
    start = "+P+P+P1K+P+P+P+P/+P+P+P6/9/9/9/9/9/9/4k4 w RB8Prb 10"
    rewards, [game] = play_line(start, "5i5h")
    assert (rewards, str(game.outcome)) == ([-1], "black wins by declaration")
    rewards, ended = play_line(start, "5i5h", declaration="off")
    assert (rewards, ended) == ([0], [])


def test_finished_games_become_records() -> None:
    games, batch = VectorGames(40, seed=2, starts=STARTS, max_moves=90), Batch.empty(40, planes=False)
    players, reasons = HabitualPlayers(3), set()
    games.observe(batch)
    for _ in range(500):
        for game in games.step(players(batch), batch):
            record = game.record(black="Keisei", white="Random")
            for again in (read_csa(write_csa(record)), read_kif(write_kif(record))):
                assert (again.moves, again.black, again.white) == (game.moves, "Keisei", "Random")
                assert again.outcome == game.outcome
            reasons.add(game.outcome.reason)
    assert reasons >= set(Reason) - RECORDS_ONLY - {Reason.PERPETUAL_CHECK}  # which is rare


# ------------------------------------------------------------------- what is refused, and how


def test_an_illegal_action_is_named_and_nothing_is_played_anywhere() -> None:
    games, batch = VectorGames(5, seed=1, first_number=70), Batch.empty(5, mask=True)
    games.observe(batch)
    before, saved = arrays(batch), games.save()
    actions = RandomPlayers(0)(batch)
    actions[3] = encoding.action_of("7g7e", Color.BLACK)
    message = f"illegal action {actions[3]} \\(7g7e\\) in slot 3, game 73, position {START_SFEN}"
    with pytest.raises(RulesError, match=message):
        games.step(actions, batch)
    for impossible in (-1, 13_527, 2**31 - 1, -(2**31)):
        actions[3] = impossible
        with pytest.raises(RulesError, match=f"illegal action {impossible}, expected 0 to 13526 in slot 3"):
            games.step(actions, batch)
    assert (arrays(batch), games.save()) == (before, saved)


@pytest.mark.parametrize("threads", [1, 3])
def test_of_several_illegal_actions_the_first_is_named_as_its_mover_sees_it(threads: int) -> None:
    whites = VectorGames(6, threads=threads, starts=[START_SFEN.replace(" b ", " w ")])
    actions = np.full(6, encoding.action_of("3c3d", Color.WHITE), np.int32)
    actions[[2, 3, 5]] = encoding.action_of("3c3e", Color.WHITE)
    with pytest.raises(RulesError, match=r"\(3c3e\) in slot 2, game 2"):
        whites.step(actions, Batch.empty(6))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "count is 0, expected 1 to 3579139"),
        ({"count": 2.0}, "count is 2.0, expected an integer"),
        ({"count": 2**40}, "count is 1099511627776, expected"),
        ({"seed": -1}, "seed is -1, expected 0 to 18446744073709551615"),
        ({"seed": None}, "seed is None, expected an integer"),
        ({"stride": 0}, "stride is 0, expected 1 to"),
        ({"starts": START_SFEN}, "expected a list of SFENs"),
        ({"threads": 0}, "threads is 0, expected at least 1"),
        ({"random_plies": -1}, "random_plies is -1, expected at least 0"),
        ({"max_moves": 0}, "max_moves is 0"),
        ({"declaration": "28"}, "declaration '28' is none of"),
        ({"starts": []}, "starts is empty"),
        ({"starts": [START_SFEN, "4k4"]}, r"starts\[1\]: bad sfen '4k4'"),
        ({"starts": [START_SFEN, "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"]}, "is over, checkmate"),
        ({"starts": [START_SFEN.replace(" 1", " 513")]}, "is over, maximum length"),
        ({"starts": ["+P+P+P1K+P+P+P+P/+P+P+P6/9/9/9/9/9/9/4k4 b RB8Prb 10"]}, "is over, declaration"),
    ],
)
def test_an_impossible_vector_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VectorGames(**({"count": 4} | options))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("rewards", np.zeros(4, np.float64)),
        ("ended", np.zeros(5, np.bool_)),
        ("packed", np.zeros((4, 103), np.uint8)),
        ("packed", np.zeros((4, 208), np.uint8)[:, ::2]),
        ("offsets", np.zeros(4, np.int32)),
        ("actions", np.zeros(4 * 599, np.int32)),
        ("planes", np.zeros((4, 46, 81), np.float32)),
        ("planes", np.broadcast_to(np.float32(0), (4, 46, 9, 9))),
        ("mask", np.zeros((4, 13_527), np.uint8)),
        ("mask", [True]),
    ],
)
def test_an_array_that_does_not_fit_is_refused_by_name(name: str, wrong: object) -> None:
    games, good = VectorGames(4), Batch.empty(4, mask=True)
    games.observe(good)
    before = games.save()
    with pytest.raises(ValueError, match=f"^{name}: expected a writable C-contiguous"):
        games.step(RandomPlayers(1)(good), Batch(**(fields_of(good) | {name: wrong})))
    assert games.save() == before


def test_only_texts_are_starts_and_only_slots_have_games() -> None:
    wrong: Any = [START_SFEN, 3]
    with pytest.raises(TypeError, match=r"starts\[1\]: expected an SFEN text"):
        VectorGames(4, starts=wrong)
    games = VectorGames(4)
    for slot in (-1, 4):
        with pytest.raises(IndexError, match=f"slot is {slot}, expected 0 to 3"):
            games.game(slot)
    with pytest.raises(ValueError, match="threads is 0, expected at least 1"):
        VectorGames.restore(games.save(), threads=0)


def test_actions_that_cannot_be_written_are_played() -> None:
    games, batch = VectorGames(4), Batch.empty(4)
    games.observe(batch)
    actions = RandomPlayers(1)(batch)
    actions.setflags(write=False)
    games.step(actions, batch)
    assert encoding.turns(batch.packed).all()


@pytest.mark.parametrize("wrong", [np.zeros(4, np.int64), np.zeros(3, np.int32), np.zeros((4, 1), np.int32)])
def test_actions_that_do_not_fit_are_refused(wrong: Actions) -> None:
    games = VectorGames(4)
    with pytest.raises(ValueError, match="actions"):
        games.step(wrong, Batch.empty(4))


def test_arrays_that_lie_over_each_other_hurt_nobody_else() -> None:
    room = np.zeros(8 * 600 + 40_000, np.int32)
    actions = room[: 8 * 600]
    fresh = Batch.empty(8)
    batch = Batch(fresh.rewards, fresh.ended, fresh.packed, actions[:9], actions)
    games = VectorGames(8, threads=2)
    for _ in range(200):
        games.observe(batch)
    assert not room[8 * 600 :].any()


def test_offsets_and_actions_are_wanted_together() -> None:
    games, batch = VectorGames(2), Batch.empty(2)
    alone = Batch(batch.rewards, batch.ended, batch.packed, batch.offsets, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="offsets and actions are wanted both or not at all"):
        games.observe(alone)


def test_a_slot_that_is_not_there_is_an_error() -> None:
    games, batch = VectorGames(2), Batch.empty(2)
    for slot in (-1, 2):
        with pytest.raises(IndexError, match=f"slot is {slot}, expected 0 to 1"):
            games.game(slot)
        with pytest.raises(IndexError, match=f"slot is {slot}, expected 0 to 1"):
            batch.legal(slot)


def test_threads_that_the_system_does_not_give_are_an_error() -> None:
    code = """
import resource
from keisei.shogi.vector import VectorGames
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))  # each thread takes 8 MB of addresses
try:
    VectorGames(2000, threads=2000)
except RuntimeError as error:
    print("refused:", error)
VectorGames(2, threads=2)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("refused: "), (done.returncode, done.stdout, done.stderr)
    assert done.returncode == 0


def test_arrays_at_odd_addresses_are_fine() -> None:
    games, batch = VectorGames(3), Batch.empty(3)
    room = np.zeros(3 * 104 + 1, np.uint8)
    odd = Batch(batch.rewards, batch.ended, room[1:].reshape(3, 104), batch.offsets, batch.actions)
    games.observe(odd)
    assert encoding.unpack_sfens(odd.packed) == [START_SFEN] * 3


# ----------------------------------------------------------------------------- save and restore


def advance(games: VectorGames, batch: Batch, players: RandomPlayers, steps: int) -> list[object]:
    seen: list[object] = []
    for _ in range(steps):
        finished = games.step(players(batch), batch)
        seen += [
            arrays(batch),
            [(game.number, game.outcome, game.opening, game.start_sfen, game.moves) for game in finished],
        ]
    return seen


COPIES: list[Callable[[VectorGames], VectorGames]] = [
    lambda games: VectorGames.restore(games.save(), threads=3),
    lambda games: pickle.loads(pickle.dumps(games)),
    copy.deepcopy,
]


@pytest.mark.parametrize("again", COPIES)
def test_restored_games_go_on_exactly(again: Callable[[VectorGames], VectorGames]) -> None:
    rules: dict[str, Any] = {"max_moves": 70, "declaration": "24"}
    rules |= {"first_number": 4, "stride": 60}
    games = VectorGames(20, seed=11, starts=STARTS, random_plies=5, **rules)
    batch = Batch.empty(20, mask=True)
    games.observe(batch)
    advance(games, batch, RandomPlayers(1), 150)
    other, other_batch = again(games), Batch.empty(20, mask=True)
    assert (other.save(), other.numbers) == (games.save(), games.numbers)
    assert (other.seed, other.max_moves, other.declaration, len(other)) == (11, 70, "24", 20)
    other.observe(other_batch)
    assert arrays(other_batch)[2:] == arrays(batch)[2:]
    players = RandomPlayers(2), RandomPlayers(2)
    assert advance(games, batch, players[0], 150) == advance(other, other_batch, players[1], 150)


@pytest.mark.parametrize("declaration", ["27", "24", "try", "off"])
@pytest.mark.parametrize("max_moves", [None, 1, 999_998])
def test_rules_and_numbering_are_restored(declaration: str, max_moves: int | None) -> None:
    games = VectorGames(2, max_moves=max_moves, declaration=declaration, first_number=2**64 - 5, stride=7)
    other = VectorGames.restore(games.save())
    assert (other.declaration, other.max_moves) == (declaration, max_moves)
    numbers = []
    for vector in (games, other):
        batch, players = Batch.empty(2, planes=False), RandomPlayers(1)
        vector.observe(batch)
        for _ in range(0 if max_moves != 1 else 3):
            vector.step(players(batch), batch)
        numbers.append(vector.numbers)
    assert numbers[0] == numbers[1]
    assert numbers[0][0] == (2**64 - 5 if max_moves != 1 else 2**64 - 5 + 3 * 7) % 2**64


class Named(VectorGames):
    """A subclass as users write them."""


def test_class_threads_and_rules_are_kept() -> None:
    games = Named(4, threads=3, max_moves=44, declaration="try")
    assert type(games.game(0)) is ShogiGame
    assert (games.game(0).max_moves, games.game(0).declaration) == (44, "try")
    for other in (
        copy.deepcopy(games),
        pickle.loads(pickle.dumps(games)),
        Named.restore(games.save(), threads=3),
    ):
        assert (type(other), other.threads) == (Named, 3)


def test_a_record_has_the_random_moves_too() -> None:
    games, batch = VectorGames(1, random_plies=3, max_moves=4), Batch.empty(1)
    assert batch.mask is None
    games.observe(batch)
    [game] = games.step(RandomPlayers(1)(batch), batch)
    assert (game.opening, len(game.moves), game.record().moves) == (3, 4, game.moves)


def fnv(data: bytes) -> bytes:
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    return struct.pack("<Q", total)


def saved_games() -> bytes:
    games, batch = VectorGames(2, seed=1, random_plies=2), Batch.empty(2, mask=True)
    games.observe(batch)
    advance(games, batch, RandomPlayers(1), 10)
    return games.save()


def test_a_subclass_keeps_its_attributes_in_a_copy() -> None:
    class Named(VectorGames):
        pass

    games = Named(2)
    games.name = "x"  # type: ignore[attr-defined]
    assert copy.deepcopy(games).name == "x"  # type: ignore[attr-defined]


def test_restart_begins_as_a_new_vector_would() -> None:
    games, batch = VectorGames(5, seed=1, starts=STARTS, random_plies=3), Batch.empty(5, mask=True)
    games.observe(batch)
    advance(games, batch, RandomPlayers(1), 40)
    games.restart(seed=9, first_number=100)
    other = VectorGames(5, seed=9, starts=STARTS, random_plies=3, first_number=100)
    assert games.save() == other.save()


def test_an_opening_longer_than_its_game_is_refused() -> None:
    saved = bytearray(VectorGames(1).save()[:-8])  # ends with number, start, opening and number of moves
    saved[-8:-4] = struct.pack("<i", 1)
    with pytest.raises(NotationError, match="a slot that cannot be"):
        VectorGames.restore(bytes(saved) + fnv(bytes(saved)))


def test_bytes_that_promise_more_games_than_they_hold_are_refused_at_once() -> None:
    saved = bytearray(VectorGames(1).save()[:-8])
    assert saved[15:19] == struct.pack("<i", 1)  # behind the first line: the slots
    saved[15:19] = struct.pack("<i", 10)
    with pytest.raises(NotationError, match="a plan that cannot be"):
        VectorGames.restore(bytes(saved) + fnv(bytes(saved)))


def test_damaged_bytes_are_refused() -> None:
    saved = saved_games()
    assert saved[-8:] == fnv(saved[:-8])
    for length in range(len(saved)):
        with pytest.raises(NotationError, match="bad saved games"):
            VectorGames.restore(saved[:length])
    for place in range(len(saved)):
        damaged = bytearray(saved)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(NotationError, match="bad saved games"):
            VectorGames.restore(bytes(damaged))


# Where the parts of saved_games() begin, and struct's letter for them.
PARTS = {
    "slots": (15, "<i"),
    "max_moves": (19, "<i"),
    "declaration": (23, "<B"),
    "random_plies": (48, "<i"),
    "starts": (52, "<I"),
    "start of slot 0": (56 + 104 + 8, "<I"),
    "opening of slot 0": (56 + 104 + 12, "<i"),
    "moves of slot 0": (56 + 104 + 16, "<I"),
    "first move of slot 0": (56 + 104 + 20, "<H"),
}


def forge(saved: bytes, part: str, value: int) -> bytes:
    data = bytearray(saved[:-8])
    where, letter = PARTS[part]
    struct.pack_into(letter, data, where, value)
    return bytes(data) + fnv(bytes(data))


def test_the_parts_of_saved_games_are_where_they_are_said_to_be() -> None:
    saved = saved_games()
    found = {part: struct.unpack_from(letter, saved, where)[0] for part, (where, letter) in PARTS.items()}
    del found["first move of slot 0"]
    assert list(found.values()) == [2, 512, 1, 2, 1, 0, 2, 12]
    for part, value in found.items():
        assert forge(saved, part, value) == saved


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("slots", 1, "bytes beyond the end"),
        ("slots", 3, "too short"),
        ("slots", -1, "a plan that cannot be"),
        ("slots", 2**31 - 1, "a plan that cannot be"),
        ("max_moves", 0, "a plan that cannot be"),
        ("max_moves", 1_000_000, "a plan that cannot be"),
        ("max_moves", 12, "a game that is over"),
        ("declaration", 4, "a plan that cannot be"),
        ("random_plies", -1, "a plan that cannot be"),
        ("starts", 0, "a plan that cannot be"),
        ("starts", 2**32 - 1, "a plan that cannot be"),
        ("start of slot 0", 1, "a slot that cannot be"),
        ("opening of slot 0", -1, "a slot that cannot be"),
        ("opening of slot 0", 13, "a slot that cannot be"),
        ("moves of slot 0", 2**32 - 1, "a move that is not legal"),
        ("first move of slot 0", 0, "a move that is not legal"),
    ],
)
def test_saved_games_that_cannot_be_are_refused(part: str, value: int, message: str) -> None:
    with pytest.raises(NotationError, match=f"^bad saved games: {message}$"):
        VectorGames.restore(forge(saved_games(), part, value))


def test_saved_games_of_another_version_or_of_no_slot_are_refused() -> None:
    saved = saved_games()
    other = saved[:-8].replace(b"keisei games 1\n", b"keisei games 2\n")
    with pytest.raises(NotationError, match="they do not begin as saved games of this version do"):
        VectorGames.restore(other + fnv(other))
    with pytest.raises(NotationError, match="a plan that cannot be"):
        VectorGames.restore(forge(saved[: 56 + 104] + bytes(8), "slots", 0))


def test_a_start_that_is_over_is_refused_also_where_no_slot_plays_from_it() -> None:
    later = START_SFEN.replace(" 1", " 101")
    games = next(
        games
        for games in (VectorGames(1, seed=seed, starts=[START_SFEN, later]) for seed in range(50))
        if games.game(0).start_sfen == START_SFEN
    )
    VectorGames.restore(forge(games.save(), "max_moves", 101))
    with pytest.raises(NotationError, match=r"a game cannot start from .* it is over, maximum length"):
        VectorGames.restore(forge(games.save(), "max_moves", 100))


def test_a_saved_game_in_which_a_side_may_declare_is_refused() -> None:
    games, batch = VectorGames(1, starts=[STARTS[5]], declaration="off"), Batch.empty(1)
    games.step(np.array([encoding.action_of("6i6h", Color.WHITE)], np.int32), batch)
    with pytest.raises(NotationError, match="a game that is over"):
        VectorGames.restore(forge(games.save(), "declaration", 1))


def test_forged_bytes_are_games_or_refused() -> None:
    saved, choose, accepted = saved_games()[:-8], random.Random(1), 0
    for _ in range(3000):
        forged = bytearray(saved)
        for _ in range(choose.randint(1, 3)):
            place = choose.randrange(15, len(forged))
            forged[place] = choose.randrange(256)
        forged = forged[: choose.randrange(16, len(forged))] if choose.random() < 0.1 else forged
        data = bytes(forged)
        try:
            games = VectorGames.restore(data + fnv(data))
        except NotationError:
            continue
        accepted += 1
        batch = Batch.empty(len(games), mask=True)
        games.observe(batch)
        advance(games, batch, RandomPlayers(1), 3)
    assert accepted


# ------------------------------------------------------------------------- threads and processes


def test_a_second_thread_is_refused() -> None:
    games, batch = VectorGames(3000, threads=2), Batch.empty(3000, planes=False)
    games.observe(batch)
    refusals: list[str] = []
    done = threading.Event()

    def meddle() -> None:
        while not done.is_set():
            try:
                games.save()
            except RuntimeError as error:
                refusals.append(str(error))

    meddler = threading.Thread(target=meddle)
    meddler.start()
    players = RandomPlayers(1)
    try:
        for _ in range(2000):
            try:
                games.step(players(batch), batch)
            except RuntimeError as error:
                refusals.append(str(error))
            if len(refusals) > 3:
                break
    finally:
        done.set()
        meddler.join()
    assert set(refusals) == {"these games are in use by another thread"}


def long_calls() -> dict[str, Callable[[], object]]:
    packed = np.repeat(encoding.pack_sfens(STARTS), 30_000, axis=0)
    games, batch = VectorGames(20_000, random_plies=20), Batch.empty(20_000, planes=False, mask=True)
    saved = games.save()
    games.observe(batch)
    actions = RandomPlayers(1)(batch)
    return {
        "decode": lambda: encoding.unpack_sfens(packed),
        "legal": lambda: encoding.legal_actions(packed),
        "begin": lambda: VectorGames(20_000, random_plies=20),
        "restore": lambda: VectorGames.restore(saved),
        "step": lambda: games.step(actions, batch),
    }


def test_native_work_lets_other_threads_run() -> None:
    """Another thread notes the time again and again, also in the middle of a call."""
    done, times = threading.Event(), [0.0]

    def note_times() -> None:
        while not done.is_set():
            times.append(time.perf_counter())
            time.sleep(0.0005)

    other = threading.Thread(target=note_times)
    other.start()
    try:
        for name, call in long_calls().items():
            begin = time.perf_counter()
            call()
            end = time.perf_counter()
            middle = (begin + end) / 2
            reach = (end - begin) / 4
            assert any(abs(moment - middle) < reach for moment in times), (name, end - begin)
    finally:
        done.set()
        other.join()


def test_a_forked_process_plays_on() -> None:
    games, batch = VectorGames(64, threads=2, seed=2), Batch.empty(64)
    games.observe(batch)
    games.step(RandomPlayers(1)(batch), batch)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of what is tested here
        child = os.fork()
    if child == 0:
        games.step(RandomPlayers(2)(batch), batch)
        helpers = len(os.listdir("/proc/self/task")) - 1
        os.write(writing, encoding.pack([games.game(5)]).tobytes())
        del games
        os._exit(0 if helpers == 1 else 3)
    games.step(RandomPlayers(2)(batch), batch)
    assert os.read(reading, 104) == encoding.pack([games.game(5)]).tobytes()
    assert os.waitpid(child, 0) == (child, 0)
    os.close(reading)
    os.close(writing)


def test_a_forked_process_lets_go_of_games_that_it_has_not_played() -> None:
    games = VectorGames(4, threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of what is tested here
        child = os.fork()
    if child == 0:
        del games
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)


def resident_kilobytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def growth(steps: int) -> int:
    """Kilobytes that memory grows while so many moves are played, after a start."""
    games, batch, players = VectorGames(64, threads=2, seed=1), Batch.empty(64, mask=True), RandomPlayers(1)
    games.observe(batch)
    before = 0
    for step in range(steps // 64):
        games.step(players(batch), batch)
        if step == 3000:
            before = resident_kilobytes()
    return resident_kilobytes() - before


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_memory_does_not_grow_with_the_steps() -> None:
    assert growth(600_000) < 2_000


@pytest.mark.slow
def test_memory_does_not_grow_over_ten_million_steps() -> None:
    assert growth(10_000_000) < 2_000
