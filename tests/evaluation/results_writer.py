"""A process that stores games: python results_writer.py FILE NAME COUNT BATCH; COUNT 0 means forever.

After each batch it prints how many games it has stored, so that acknowledged games can be counted.
"""

import sys
from itertools import count
from pathlib import Path

from keisei.evaluation.matches.results_store import ResultsStore, StoredGame


def game(black: str, pair: int) -> StoredGame:
    """Return a game whose result follows from its pair."""
    winner = (0, 1, None)[pair % 3]
    return StoredGame(black, "random", "test", 7, pair, winner, "checkmate", 50 + pair % 100)


def main() -> None:
    path, name, number, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    print("ready", flush=True)
    sys.stdin.readline()
    new = 0
    with ResultsStore.open(path) as results:
        for start in range(0, number, size) if number else count(0, size):
            new += results.add(game(name, pair) for pair in range(start, start + size))
            print(start + size, new, flush=True)


if __name__ == "__main__":
    main()
