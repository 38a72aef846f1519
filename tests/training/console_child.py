"""A run of 50 updates with a console, in its own process: console_child.py MODE HALFWAY WORKERS.

HALFWAY is what happens after 25 updates: "wait" for a line on stdin, "raise", "interrupt" or "exit".
WORKERS is how many worker processes the run pretends to have.
"""

import os
import signal
import sys

from fake_run import FACTS, GAMES, STEPS, UPDATES, fake_metrics, fake_parallel_metrics, fake_workers

from keisei.training.console import Mode, make_console
from keisei.training.listener import Update


def main(mode: Mode, halfway: str, workers: int) -> None:
    console = make_console(mode, sys.stdout)
    console.start(FACTS)
    for update in range(1, UPDATES + 1):
        statuses = fake_workers(update, workers)
        metrics = fake_parallel_metrics(update, statuses) if workers else fake_metrics(update)
        console.update(Update(update * STEPS, metrics, tuple(statuses), saved_games=(GAMES,)))
        if update == UPDATES // 2:
            console.notice("halfway there")
            print("printed by someone else")
            if halfway == "wait":
                sys.stdin.readline()
            elif halfway == "raise":
                raise RuntimeError("the trainer fell over")
            elif halfway == "interrupt":
                signal.signal(signal.SIGINT, signal.default_int_handler)
                os.kill(os.getpid(), signal.SIGINT)
            elif halfway == "exit":
                sys.exit(3)
    console.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))  # type: ignore[arg-type]
