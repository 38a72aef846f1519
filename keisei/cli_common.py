"""What the doors share: how a mistake is told, and what is set before torch is loaded."""

import os
import sys
from typing import NoReturn


def refuse(*messages: str) -> NoReturn:
    """Tell a user's mistake, a line for each message, and leave with exit code 2."""
    for message in messages:
        print(f"keisei: {message}", file=sys.stderr)
    sys.exit(2)


def let_threads_sleep() -> None:
    """Let torch's threads spin for microseconds only when they wait; to be called before torch is loaded.

    By default they spin for milliseconds, and then one other busy process on 2 cores makes training ten times
    slower. Measured on 2 cores: 5,000 turns cost nothing on a quiet machine, and half the speed beside a busy
    process; fewer cost inference.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "5000")
