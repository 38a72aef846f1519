"""The vector of games with threads and processes: the same results, no data races, no growth."""

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from vector_play import STARTS, RandomPlayers, arrays

from keisei.shogi import encoding
from keisei.shogi.vector import Batch, VectorGames


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


def test_threads_that_the_system_does_not_give_are_an_error() -> None:
    code = """
import resource
from keisei.shogi.vector import VectorGames
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))  # each thread reserves 8 MB of address space
try:
    VectorGames(2000, threads=2000)
except RuntimeError as error:
    print("refused:", error)
VectorGames(2, threads=2)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("refused: "), (done.returncode, done.stdout, done.stderr)
    assert done.returncode == 0


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
    players = RandomPlayers(1)
    games.observe(batch)
    return {
        "decode": lambda: encoding.unpack_sfens(packed),
        "legal": lambda: encoding.legal_actions(packed),
        "begin": lambda: VectorGames(20_000, random_plies=20),
        "restore": lambda: VectorGames.restore(saved),
        "observe": lambda: games.observe(batch),
        "step": lambda: games.step(players(batch), batch),
    }


def test_native_work_lets_other_threads_run() -> None:
    """Another thread records the time over and over, also in the middle of a call."""
    done, times = threading.Event(), [0.0]

    def note_times() -> None:
        while not done.is_set():
            times.append(time.perf_counter())
            time.sleep(0.0005)

    def is_seen_in_the_middle_of(call: Callable[[], object]) -> bool:
        begin = time.perf_counter()
        call()
        end = time.perf_counter()
        return any(abs(moment - (begin + end) / 2) < (end - begin) / 4 for moment in times)

    other = threading.Thread(target=note_times)
    other.start()
    try:
        for name, call in long_calls().items():  # on a busy machine it may not run the first time
            assert any(is_seen_in_the_middle_of(call) for _ in range(10)), name
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
    """Return the memory growth in kilobytes over this many moves, after a warm-up."""
    games, batch, players = VectorGames(64, threads=2, seed=1), Batch.empty(64, mask=True), RandomPlayers(1)
    games.observe(batch)
    before = 0
    for step in range(steps // 64):
        games.step(players(batch), batch)
        if step == 3000:
            before = resident_kilobytes()
    return resident_kilobytes() - before


def test_memory_does_not_grow_with_the_steps() -> None:
    assert growth(600_000) < 2_000


@pytest.mark.slow
def test_memory_does_not_grow_over_ten_million_steps() -> None:
    assert growth(10_000_000) < 2_000
