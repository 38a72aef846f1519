"""python bench/rules.py [--rounds 5]: the rules: perft, random play from Python, copies; one thread.

Peers: cshogi and rsshogi (Python loops), fairy-stockfish (perft, a separate process). Keisei checks for
repetition, mate and maximum length at every move; the peers are not asked to.
"""

import contextlib
import functools
import importlib
import random
import subprocess
from contextlib import ExitStack

import command_line
from contest import Contender, Contest, TakeTurn, measured, plain
from results import fairy_stockfish_path
from settings import Peers, Scale

from keisei import _native
from keisei.shogi import START_SFEN, ShogiGame

PERFT = {4: 719_731, 5: 19_861_490}  # nodes from the start position by depth
PLIES = 200


def contests(scale: Scale, peers: Peers) -> list[Contest]:
    """Return the contests of the rules."""
    depth = 4 if scale.is_tiny else 5
    million = PERFT[depth] / 1e6
    counting = [
        Contender("keisei, last ply written out", plain(lambda: million * keisei_perft(depth, True))),
        Contender(
            "keisei, last ply only counted", plain(lambda: million * keisei_perft(depth, False)), partial=True
        ),
    ]
    path = fairy_stockfish_path()
    if peers.has("fairy-stockfish"):
        assert path is not None
        engine = functools.partial(_open_fairy_stockfish, path, depth)
        counting.append(Contender("fairy-stockfish, written out", engine, peer="fairy-stockfish"))
    # A turn of at least 50 ms unless the scale is tiny, measured on 2 cores: about a microsecond a move.
    games = 2 if scale.is_tiny else scale.of(1_000, least=400)
    loops = {"keisei": keisei_loop, "cshogi": cshogi_loop, "rsshogi": rsshogi_loop}
    playing = [
        # Two games before the first turn: imports are not timed.
        Contender(name, plain(functools.partial(loop, games), functools.partial(loop, 2)), peer=peer)
        for name, loop in loops.items()
        if not (peer := "" if name == "keisei" else name) or peers.has(peer)
    ]
    copies = 200 if scale.is_tiny else scale.of(400_000, least=200_000)
    copying = [
        Contender(
            f"keisei, after {plies} moves",
            plain(functools.partial(keisei_copies, plies, copies), functools.partial(_game_after, plies)),
        )
        for plies in (0, 100)
    ]
    return [
        Contest("rules/perft", f"perft {depth} from the start position", "million nodes/s", counting),
        Contest("rules/play", "random play from Python: legal_moves() and push()", "moves/s", playing),
        Contest("rules/copy", "copy() of a game", "copies/s", copying),
    ]


def keisei_perft(depth: int, write_last: bool) -> float:
    """Count from the start position."""
    assert _native.perft(START_SFEN, depth, write_last) == PERFT[depth]
    return 1


class FairyStockfish:
    """The peer process, ready to count; it writes out the last ply's moves."""

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

    def perft(self, depth: int) -> float:
        """Count, and return million nodes."""
        nodes = int(self._ask(f"go perft {depth}", "Nodes searched").split()[-1])
        assert nodes == PERFT[depth]
        return nodes / 1e6

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate(timeout=10)


def _open_fairy_stockfish(path: str, depth: int, stack: ExitStack) -> TakeTurn:
    engine = stack.enter_context(contextlib.closing(FairyStockfish(path)))
    return lambda: measured(lambda: engine.perft(depth))


def keisei_loop(games: int) -> float:
    """Play random moves and return how many; repetition, mate and length are checked at every move."""
    choose, moves_played = random.Random(1), 0
    for _ in range(games):
        game = ShogiGame(max_moves=PLIES)
        while moves := game.legal_moves():
            game.push(moves[int(choose.random() * len(moves))])
            moves_played += 1
    return moves_played


def cshogi_loop(games: int) -> float:
    """Do the same with cshogi, without checking for repetition."""
    cshogi = importlib.import_module("cshogi")
    choose, moves_played = random.Random(1), 0
    for _ in range(games):
        board = cshogi.Board()
        for _ in range(PLIES):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(moves[int(choose.random() * len(moves))])
            moves_played += 1
    return moves_played


def rsshogi_loop(games: int) -> float:
    """Do the same with rsshogi, without checking for repetition."""
    core = importlib.import_module("rsshogi.core")
    choose, moves_played = random.Random(1), 0
    for _ in range(games):
        board = core.Board()
        for _ in range(PLIES):
            moves = board.legal_moves()
            if not moves:
                break
            board.apply_move(moves[int(choose.random() * len(moves))])
            moves_played += 1
    return moves_played


@functools.cache
def _game_after(plies: int) -> ShogiGame:
    choose, game = random.Random(2), ShogiGame()
    while len(game.history) < plies:
        game.push(choose.choice(game.legal_moves()))
    return game


def keisei_copies(plies: int, count: int) -> float:
    """Copy a game with this many moves."""
    game = _game_after(plies)
    for _ in range(count):
        game.copy()
    return count


if __name__ == "__main__":
    command_line.main({"rules": contests}, __doc__)
