"""The move generator against tables of perft counts."""

import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import PERFT_NODES, table

from keisei import _native
from keisei.shogi import START_SFEN, NotationError, ShogiGame, perft

# Counted with rsshogi, whose generator is independent of ours; not in the table.
MORE = [
    ("4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1", [525, 2410]),
    ("ln2k1gn1/r1s1gsn2/1ppl4l/p2ppp1pp/1P+b1P1p2/P2P1P2g/3b1GPPP/6K1L/2S3RNS w p 62", [60, 1201, 66390]),
    ("4grbnl/lB1k2g2/1ps2s3/P1Pp1ppGp/3Pp2P1/4P1P2/1PS2PNRP/p1+n1G3L/L2SK3N b 2P 91", [41, 1482, 62837]),
    ("2r2gs2/l+B3g1P1/1g4nkl/1p1p3p1/L1pn1ppNp/p1b1p3L/PPN1G1s2/5R1SS/4K4 b 6p 141", [50, 3051, 167298]),
]

CASES = [
    (sfen, depth, int(n)) for sfen, counts in table("perft.tsv") for depth, n in enumerate(counts.split(), 1)
]
CASES += [(sfen, depth, n) for sfen, counts in MORE for depth, n in enumerate(counts, 1)]


@pytest.mark.parametrize(("sfen", "depth", "nodes"), [case for case in CASES if case[2] <= PERFT_NODES])
def test_perft_equals_the_table(sfen: str, depth: int, nodes: int) -> None:
    assert perft(sfen, depth) == nodes


def test_start_position_reaches_depth_5_also_in_slow_builds() -> None:
    assert (START_SFEN, 5, 19861490) in [case for case in CASES if case[2] <= PERFT_NODES]


def test_writing_the_last_moves_down_counts_the_same() -> None:
    """bench/rules.py measures both ways."""
    for sfen, depth, nodes in CASES:
        if nodes < 1_000_000:
            assert _native.perft(sfen, depth, write_last=True) == nodes


def test_divide_names_every_first_move_and_sums_to_perft() -> None:
    counts = perft(START_SFEN, 3, divide=True)
    assert list(counts) == ShogiGame().legal_moves()
    assert sum(counts.values()) == 25470
    game = ShogiGame()
    for move, count in counts.items():
        game.push(move)
        assert perft(game.sfen(), 2) == count
        game.pop()


def test_depth_0_is_one_and_a_depth_out_of_reach_is_refused() -> None:
    assert perft(START_SFEN, 0) == 1
    for depth in (-1, 101, 20_000):
        with pytest.raises(ValueError, match=f"depth is {depth}, expected 0 to 100"):
            perft("4k4/9/9/9/9/9/9/9/4K4 b - 1", depth)
    with pytest.raises(ValueError, match="depth is 0, expected at least 1"):
        perft(START_SFEN, 0, divide=True)


def test_divide_counts_moves_also_where_the_game_would_be_over() -> None:
    counts = perft("4k4/9/9/9/9/9/9/9/4K4 b - 1000000", 2, divide=True)
    assert sum(counts.values()) == perft("4k4/9/9/9/9/9/9/9/4K4 b - 1000000", 2) == 25


def test_a_bad_position_is_refused() -> None:
    with pytest.raises(NotationError):
        perft("startpos", 1)


def test_perft_lets_other_threads_run() -> None:
    started, finished = threading.Event(), threading.Event()

    def count() -> None:
        started.set()
        perft(START_SFEN, 5)
        finished.set()

    thread = threading.Thread(target=count)
    thread.start()
    started.wait()
    turns = 0
    while not finished.is_set():
        turns += 1
        time.sleep(0.0005)
    thread.join()
    assert turns > 10  # with the GIL held this loop would hardly run at all


@pytest.mark.parametrize("depth", [5, 9])
def test_python_ends_cleanly_while_a_daemon_thread_counts(depth: int) -> None:
    """Depth 5 finishes while Python shuts down, depth 9 never."""
    code = f"""
import atexit, threading, time
from keisei.shogi import START_SFEN, ShogiGame, perft
class Late:
    def __del__(self): time.sleep(0.5); ShogiGame().legal_moves()
late = Late()
atexit.register(lambda: ShogiGame().legal_moves())
threading.Thread(target=perft, args=(START_SFEN, {depth}), daemon=True).start()
time.sleep(0.01)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "starts", [30, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_python_ends_cleanly_while_daemon_threads_wait_for_its_lock(starts: int) -> None:
    """Short counts: when the shutdown begins, threads are on their way back into Python."""
    code = """
import random, threading, time
from keisei.shogi import START_SFEN, perft
def count():
    while True: perft(START_SFEN, 2)
for _ in range(6): threading.Thread(target=count, daemon=True).start()
time.sleep(random.random() / 50)
"""
    for _ in range(starts):
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("divide", [False, True])
def test_ctrl_c_stops_a_count_that_would_take_hours(divide: bool) -> None:
    # A shell may have left Ctrl-C ignored; a terminal does not.
    code = f"""
import signal
from keisei.shogi import START_SFEN, perft
signal.signal(signal.SIGINT, signal.default_int_handler)
print("on", flush=True)
perft(START_SFEN, 10, divide={divide})
"""
    command = [sys.executable, "-P", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
