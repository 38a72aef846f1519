"""The `keisei` command: one module per group of commands, loaded when one of them is called."""

import os
import signal
from types import FrameType

__all__ = ["main"]


def main() -> None:
    """Run the command line; a signal while it is being loaded ends it at once, without a traceback."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(signum) is not signal.SIG_IGN:  # as under nohup
            signal.signal(signum, _leave)
    from keisei.cli.app import run_command_line  # here, so that signals are handled first

    run_command_line()


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on, as Python does, and SIGTERM end the process."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _leave:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(signum: int, _frame: FrameType | None) -> None:
    os._exit(128 + signum)
