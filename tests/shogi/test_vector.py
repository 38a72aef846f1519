"""The vector of games: the same games as ShogiGame's, their starts and ends, and bad input."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from vector_play import STARTS, Actions, HabitualPlayers, RandomPlayers, arrays

from keisei.shogi import START_SFEN, Color, Reason, RulesError, ShogiGame, encoding
from keisei.shogi.records import read_csa, read_kif, write_csa, write_kif
from keisei.shogi.vector import Batch, FinishedGame, VectorGames

# Nobody resigns here, and the rest occur only in records of games played elsewhere.
RECORDS_ONLY = set(list(Reason)[list(Reason).index(Reason.RESIGNATION) :])


def replay(game: FinishedGame, max_moves: int | None, declaration: str) -> ShogiGame:
    """Replay a finished game one move at a time; it must not be over before its last move."""
    again = ShogiGame(game.start_sfen, max_moves=max_moves, declaration=declaration)
    for move in game.moves:
        assert not again.can_declare()
        again.push(move)  # fails if the game is over
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
    with pytest.raises(ValueError, match="expected both offsets and actions, or neither"):
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


# --------------------------------------------------------------------------------- how games start


def splitmix(state: int) -> tuple[int, int]:
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return state, z ^ z >> 31


class Stream:
    """A second implementation of a game's random stream."""

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


# ------------------------------------------------------------------------------------ how they end


def play_line(start: str, line: str, **rules: Any) -> tuple[list[float], list[FinishedGame]]:
    """Return the rewards of a line of USI moves in one game, and the games that ended."""
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
    # Black checks all the time; White's king move brings the fourth occurrence, Black's check another one.
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


def test_a_record_has_the_random_moves_too() -> None:
    games, batch = VectorGames(1, random_plies=3, max_moves=4), Batch.empty(1)
    assert batch.mask is None
    games.observe(batch)
    [game] = games.step(RandomPlayers(1)(batch), batch)
    assert (game.opening, len(game.moves), game.record().moves) == (3, 4, game.moves)


# ------------------------------------------------------------------------------------- bad input


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
        ({"declaration": "28"}, "declaration is '28', expected"),
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


def test_a_slot_that_is_not_there_is_an_error() -> None:
    games, batch = VectorGames(2), Batch.empty(2)
    for slot in (-1, 2):
        with pytest.raises(IndexError, match=f"slot is {slot}, expected 0 to 1"):
            games.game(slot)
        with pytest.raises(IndexError, match=f"slot is {slot}, expected 0 to 1"):
            batch.legal(slot)


def test_arrays_at_odd_addresses_are_fine() -> None:
    games, batch = VectorGames(3), Batch.empty(3)
    room = np.zeros(3 * 104 + 1, np.uint8)
    odd = Batch(batch.rewards, batch.ended, room[1:].reshape(3, 104), batch.offsets, batch.actions)
    games.observe(odd)
    assert encoding.unpack_sfens(odd.packed) == [START_SFEN] * 3
