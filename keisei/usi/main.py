"""The engine as a process: python -m keisei.usi.main CHECKPOINT [OPTION=VALUE ...]

Reads commands from standard input and answers on standard output, where nothing else is written. Exits with 0
on `quit`, at the end of input, or when nobody reads its answers; with 2 and one line on standard error if
there is no network to play with.
"""

import contextlib
import io
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from keisei.errors import NetworkError, UserError
from keisei.runs.checkpoint_format import CheckpointError
from keisei.runs.find import find_checkpoint, run_of
from keisei.usi.engine import Engine, Mind, Thinks
from keisei.usi.options import OPTION_NAMES, Options, options_from
from keisei.usi.protocol import ProtocolError

MAX_LINE_BYTES = 1 << 20  # room for a game of 100,000 moves

# A line and its time of arrival, None at the end of input, or an exception from another thread.
_Event = tuple[bytes | Exception | None, float]


def main(checkpoint: str, options: Mapping[str, str]) -> int:
    """Run the engine on a checkpoint (see find_checkpoint), and return the exit code.

    options: values by the names that the GUI sees; it shows them as the defaults.
    """
    try:
        return talk(network(find_checkpoint(checkpoint)), options)
    except UserError as mistake:
        return _refuse(mistake)


def network(checkpoint: Path) -> Mind:
    """Return a checkpoint's network, which is read when it is needed."""

    def load(options: Options) -> Thinks:
        from keisei.usi.thinking import Thinker  # here: `usi` is answered sooner

        return Thinker.load(checkpoint, options)

    run = run_of(checkpoint)
    name = f"{f'{run.name} ' if run else ''}{checkpoint.absolute().name}"
    return Mind(name, load, OPTION_NAMES)


def talk(mind: Mind, options: Mapping[str, str]) -> int:
    """Talk over standard input and output until the end, and return the exit code; options: as for main."""
    chosen = options_from(options, mind.options)
    answers = os.dup(1)
    with contextlib.suppress(OSError):  # there may be no standard error
        os.dup2(2, 1)  # what a library prints is not an answer
    with open(0, "rb", buffering=0, closefd=False) as stdin, open(answers, "wb", buffering=0) as stdout:
        return run_engine(mind, stdin, stdout, chosen)


def run_engine(mind: Mind, stdin: io.RawIOBase, stdout: io.RawIOBase, options: Options) -> int:
    """Talk over these streams until the end, and return the exit code.

    They are unbuffered: a buffer's lock, held by the reading thread, would block the exit of the process.
    """
    events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
    engine = Engine(
        mind,
        lambda line: _write(stdout, f"{line}\n".encode("ascii")),
        lambda error: events.put((error, 0.0)),
        options,
    )
    threading.Thread(target=_listen, args=(stdin, events, engine), name="listening", daemon=True).start()
    try:
        while not engine.has_quit:
            event, at = events.get()
            if isinstance(event, bytes):
                engine.handle(event.decode("utf-8", "replace"), at)
            elif isinstance(event, ProtocolError):
                engine.complain(event)
            elif event is None:
                engine.end_of_input()
            else:
                raise event
    except BrokenPipeError:  # the GUI is gone
        engine.close()
    except KeyboardInterrupt:
        engine.close()
        return 130
    except (CheckpointError, NetworkError) as error:
        with contextlib.suppress(BrokenPipeError):
            engine.complain(error)
        return _refuse(error)
    return 0


def _refuse(mistake: Exception) -> int:
    print(f"keisei: {mistake}", file=sys.stderr)
    return 2


def _write(stdout: io.RawIOBase, data: bytes) -> None:
    while data:
        data = data[stdout.write(data) or 0 :]


def _listen(stdin: io.RawIOBase, events: "queue.SimpleQueue[_Event]", engine: Engine) -> None:
    for line in _lines(stdin):
        if engine.loading and line.strip() == b"quit":
            os._exit(0)  # loading cannot be interrupted, and there is nothing to save
        too_long = ProtocolError(f"expected lines of at most {MAX_LINE_BYTES} bytes, given a longer one")
        events.put((too_long if len(line) > MAX_LINE_BYTES else line, time.monotonic()))
    events.put((None, 0.0))


def _lines(stdin: io.RawIOBase) -> Iterator[bytes]:
    """Yield the lines without their ends; one that is too long is cut, but still too long."""
    rest = b""
    while True:
        try:
            data = stdin.read(1 << 16)
        except OSError:  # a terminal that was closed
            data = b""
        *lines, rest = (rest + (data or b"\n")).split(b"\n")
        yield from lines
        rest = rest[: MAX_LINE_BYTES + 1]
        if not data:
            return


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all("=" in argument for argument in sys.argv[2:]):
        print("keisei: expected CHECKPOINT [OPTION=VALUE ...]", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], dict(argument.split("=", 1) for argument in sys.argv[2:])))
