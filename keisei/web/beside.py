"""The page beside a training: a process that ends when the one that started it does, however that ends.

    with page_beside(Path("runs")) as address: ...

The training binds the port, so the address is known at once; the process is
`python -m keisei.web.beside DIRECTORY FD`, and its stdin ends with its parent.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from keisei.web.address import LOOPBACK, address_of, listen

_END_SECONDS = 5.0


@contextmanager
def page_beside(directory: Path) -> Iterator[str]:
    """Serve the runs in a directory, on this machine alone, until the block ends; yields the address."""
    with listen(LOOPBACK, None) as server:
        descriptor = server.fileno()
        process = subprocess.Popen(  # nosec B603 # our own module, no shell
            [sys.executable, "-P", "-m", "keisei.web.beside", str(directory.absolute()), str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[descriptor],
            start_new_session=True,  # Ctrl-C is for the training, which saves before it ends the page
        )
        address = address_of(server, LOOPBACK, None)
    try:
        yield address
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Serve until stdin ends."""
    directory, descriptor = sys.argv[1:]
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    server: Any = import_module("keisei.web.server")
    server.serve_runs([], Path(directory), socket.socket(fileno=int(descriptor)))


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
