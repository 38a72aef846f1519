"""Saved and restored games: play continues exactly, and damaged data is rejected."""

import copy
import pickle
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from vector_play import STARTS, RandomPlayers, advance, arrays

from keisei.shogi import START_SFEN, Color, NotationError, ShogiGame, encoding
from keisei.shogi.vector import Batch, VectorGames

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
    with pytest.raises(NotationError, match="invalid slot"):
        VectorGames.restore(bytes(saved) + fnv(bytes(saved)))


def test_bytes_that_promise_more_games_than_they_hold_are_refused_at_once() -> None:
    saved = bytearray(VectorGames(1).save()[:-8])
    assert saved[15:19] == struct.pack("<i", 1)  # after the first line: the slots
    saved[15:19] = struct.pack("<i", 10)
    with pytest.raises(NotationError, match="invalid settings"):
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


# Offsets of the fields in saved_games(), and their struct format.
SLOT_0 = 56 + 104 + 12
PARTS = {
    "slots": (15, "<i"),
    "max_moves": (19, "<i"),
    "declaration": (23, "<B"),
    "random_plies": (48, "<i"),
    "starts": (52, "<I"),
    "share of scattered starts": (56 + 104, "<I"),
    "late starts": (56 + 104 + 8, "<I"),
    "hand of slot 0's start": (SLOT_0 + 8 + 8, "<B"),
    "late start of slot 0": (SLOT_0 + 8 + 104, "<B"),
    "opening of slot 0": (SLOT_0 + 8 + 105, "<i"),
    "moves of slot 0": (SLOT_0 + 8 + 109, "<I"),
    "first move of slot 0": (SLOT_0 + 8 + 113, "<H"),
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
    assert list(found.values()) == [2, 512, 1, 2, 1, 0, 0, 0, 0, 2, 12]
    for part, value in found.items():
        assert forge(saved, part, value) == saved


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("slots", 1, "extra bytes at the end"),
        ("slots", 3, "too short"),
        ("slots", -1, "invalid settings"),
        ("slots", 2**31 - 1, "invalid settings"),
        ("max_moves", 0, "invalid settings"),
        ("max_moves", 1_000_000, "invalid settings"),
        ("max_moves", 12, "a finished game"),
        ("declaration", 4, "invalid settings"),
        ("random_plies", -1, "invalid settings"),
        ("starts", 0, "invalid settings"),
        ("starts", 2**32 - 1, "invalid settings"),
        ("late starts", 2**32 - 1, ".*"),
        ("hand of slot 0's start", 19, ".*"),
        ("late start of slot 0", 2, "invalid slot"),
        ("opening of slot 0", -1, "invalid slot"),
        ("opening of slot 0", 13, "invalid slot"),
        ("moves of slot 0", 2**32 - 1, "illegal move"),
        ("first move of slot 0", 0, "illegal move"),
    ],
)
def test_saved_games_that_cannot_be_are_refused(part: str, value: int, message: str) -> None:
    with pytest.raises(NotationError, match=f"^bad saved games: {message}$"):
        VectorGames.restore(forge(saved_games(), part, value))


def test_saved_games_of_another_version_or_of_no_slot_are_refused() -> None:
    saved = saved_games()
    other = saved[:-8].replace(b"keisei games 3\n", b"keisei games 4\n")
    with pytest.raises(NotationError, match="not in the format of this version"):
        VectorGames.restore(other + fnv(other))
    with pytest.raises(NotationError, match="invalid settings"):
        VectorGames.restore(forge(saved[:SLOT_0] + bytes(8), "slots", 0))


def test_saved_games_from_before_scattered_starts_go_on() -> None:
    saved = saved_games()
    where = PARTS["share of scattered starts"][0]
    older = (saved[:where] + saved[where + 4 : -8]).replace(b"keisei games 3\n", b"keisei games 2\n")
    assert VectorGames.restore(older + fnv(older)).save() == saved


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
    with pytest.raises(NotationError, match="a finished game"):
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
