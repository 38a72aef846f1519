"""python bench/rules.py [--rounds 5]: speed of the rules, side by side with other engines.

Every round runs all contestants one after the other, so that load on the machine hits all of them; figures
are medians, ratios are medians of the ratios within a round. Peers: cshogi and rsshogi (Python loops) and
fairy-stockfish (perft, a separate process); those not installed are named and skipped.
One thread.
"""

import importlib
import random
import shutil
import subprocess
import sys
import time

from side_by_side import Contenders, report, rounds_from_arguments

from keisei import _native
from keisei.shogi import START_SFEN, ShogiGame

PERFT_DEPTH = 5
PERFT_NODES = 19_861_490
GAMES, PLIES = 60, 200


def keisei_perft(write_last: bool) -> float:
    """Return million nodes per second from the start position."""
    start = time.perf_counter()
    assert _native.perft(START_SFEN, PERFT_DEPTH, write_last) == PERFT_NODES
    return PERFT_NODES / (time.perf_counter() - start) / 1e6


class FairyStockfish:
    """The peer process, ready to count."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask("uci", "uciok")
        self._ask("setoption name UCI_Variant value shogi\nposition startpos\nisready", "readyok")

    def _ask(self, command: str, until: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(until):
                return line
        raise RuntimeError(f"fairy-stockfish exited before it printed {until!r}")

    def perft(self) -> float:
        """Return million nodes per second; it writes out the last ply's moves."""
        start = time.perf_counter()
        nodes = int(self._ask(f"go perft {PERFT_DEPTH}", "Nodes searched").split()[-1])
        assert nodes == PERFT_NODES
        return nodes / (time.perf_counter() - start) / 1e6


def keisei_loop() -> float:
    """Return moves per second of random play; repetition, mate and length are checked at every move."""
    choose, moves_played = random.Random(1), 0
    start = time.perf_counter()
    for _ in range(GAMES):
        game = ShogiGame(max_moves=PLIES)
        while moves := game.legal_moves():
            game.push(moves[int(choose.random() * len(moves))])
            moves_played += 1
    return moves_played / (time.perf_counter() - start)


def cshogi_loop() -> float:
    """Do the same with cshogi, without checking for repetition."""
    cshogi = importlib.import_module("cshogi")
    choose, moves_played = random.Random(1), 0
    start = time.perf_counter()
    for _ in range(GAMES):
        board = cshogi.Board()
        for _ in range(PLIES):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(moves[int(choose.random() * len(moves))])
            moves_played += 1
    return moves_played / (time.perf_counter() - start)


def rsshogi_loop() -> float:
    """Do the same with rsshogi, without checking for repetition."""
    core = importlib.import_module("rsshogi.core")
    choose, moves_played = random.Random(1), 0
    start = time.perf_counter()
    for _ in range(GAMES):
        board = core.Board()
        for _ in range(PLIES):
            moves = board.legal_moves()
            if not moves:
                break
            board.apply_move(moves[int(choose.random() * len(moves))])
            moves_played += 1
    return moves_played / (time.perf_counter() - start)


def keisei_copy(plies: int) -> float:
    """Return copies per second of a game with this many moves."""
    choose, game = random.Random(2), ShogiGame()
    while len(game.history) < plies:
        game.push(choose.choice(game.legal_moves()))
    start = time.perf_counter()
    for _ in range(20_000):
        game.copy()
    return 20_000 / (time.perf_counter() - start)


def installed(module: str) -> bool:
    """Return whether a peer can be imported; print a line if not."""
    try:
        importlib.import_module(module)
    except ImportError:
        print(f"{module} is not installed: skipped (pip install {module})")
        return False
    return True


def main() -> None:
    """Run all contests."""
    rounds = rounds_from_arguments(__doc__)

    counting: Contenders = {
        "keisei, last ply written out": lambda: keisei_perft(True),
        "keisei, last ply only counted": lambda: keisei_perft(False),
    }
    if path := shutil.which("fairy-stockfish") or shutil.which("fairy-stockfish", path="/usr/games"):
        counting["fairy-stockfish, written out"] = FairyStockfish(path).perft
    else:
        print("fairy-stockfish is not installed: skipped (apt-get install fairy-stockfish)")
    playing: Contenders = {"keisei": keisei_loop}
    if installed("cshogi"):
        playing["cshogi"] = cshogi_loop
    if installed("rsshogi.core"):
        playing["rsshogi"] = rsshogi_loop
    copying: Contenders = {
        "keisei, after 0 moves": lambda: keisei_copy(0),
        "keisei, after 100 moves": lambda: keisei_copy(100),
    }

    report(f"perft {PERFT_DEPTH} from the start position, bulk-counted", "million nodes/s", counting, rounds)
    report("random play from Python: legal_moves() and push()", "moves/s", playing, rounds)
    report("copy() of a game", "copies/s", copying, rounds)
    game = ShogiGame()
    print(f"\na game object takes {sys.getsizeof(game):,} bytes, with room for {game.max_moves} moves")


if __name__ == "__main__":
    main()
