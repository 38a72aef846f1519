"""BridgeProcess: the learner's end of the bridge, and its successive processes.

The learner stays alive and able to play whatever becomes of Ray: nothing here waits for the bridge, except
`receive` as long as it may, and the end of it.
"""

import io
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from keisei.config.config_errors import ConfigError
from keisei.training.cluster.access import ray_environment
from keisei.training.cluster.messages import ClusterKind, pack
from keisei.training.parallel.wire import DamagedError, Wire

_CODE = "import sys; from keisei.training.cluster.bridge import main; main(*map(int, sys.argv[1:]))"
_LONGEST_LOOK = (
    1.0  # seconds of silence that one look may add: a learner that slept must not blame the bridge
)
_CONNECT_SECONDS = 120.0  # of silence before a bridge that is not connected yet is replaced
_FIRST_BACKOFF, _LONGEST_BACKOFF = 1.0, 30.0
_LEAVE_SECONDS = 6.0
_LAST_BYTES = 2000


class BridgeProcess:
    """The bridge to the cluster at this address. Nothing runs before `start_if_due`.

    errors: where Ray's own words go; a temporary file if None. patience: seconds of silence before a
    bridge that is connected is replaced.
    """

    def __init__(self, address: str, *, insecure: bool, errors: Path | None, patience: float) -> None:
        self._address, self._insecure, self._errors = address, insecure, errors
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: Wire[ClusterKind] | None = None
        self._due_at, self._failures = 0.0, 0
        self._silent_seconds, self._looked_at, self._connected = 0.0, 0.0, False
        self._gone = ""
        self._log: IO[bytes] = io.BytesIO()

    @property
    def is_running(self) -> bool:
        """Whether there is a process to post messages to."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The process, None if there is none."""
        return None if self._process is None else self._process.pid

    @property
    def has_failed(self) -> bool:
        """Whether the last process has ended by itself, and no other one is connected yet."""
        return self._failures > 0

    def start_if_due(self, connect: Mapping[str, Any], start: bytes) -> bool:
        """Start a process, unless the last one has only just failed; return whether there is a new one.

        connect, start: the fields of the CONNECT message, and the body of the START message for sites.
        """
        if self._process is not None or time.monotonic() < self._due_at:
            return False
        try:
            mine = self._begin()
        except OSError as error:  # no memory, descriptors or room on the disk
            self._end(f"no process can be started: {error}")
            return False
        self._wire = Wire(mine, ClusterKind)
        self._silent_seconds, self._looked_at, self._connected = 0.0, time.monotonic(), False
        self._wire.post(ClusterKind.CONNECT, pack({**connect, "address": self._address}))
        self._wire.post(ClusterKind.START, start)
        return True

    def _begin(self) -> socket.socket:
        """Start a process; return this end of the channel to it."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        with ExitStack() as stack:
            mine, theirs = socket.socketpair()
            stack.enter_context(theirs)
            stack.callback(mine.close)
            log = stack.enter_context(self._open_log())
            self._log.close()
            self._log = os.fdopen(os.dup(log.fileno()), "rb")
            command = [sys.executable, "-P", "-c", _CODE, str(theirs.fileno()), str(int(in_main_thread))]
            # The command is our own; nothing in it comes from elsewhere.
            self._process = subprocess.Popen(  # nosec B603
                command,
                env=ray_environment(self._address, insecure=self._insecure),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            return mine.dup()

    def post(self, kind: ClusterKind, body: bytes) -> None:
        """Send a message without waiting; nothing if there is no process."""
        if self._wire is not None:
            self._wire.post(kind, body)

    def release(self, node: int, hire: int, seconds: float) -> None:
        """Have a node's foreman ended, and no other one hired for so many seconds."""
        self.post(ClusterKind.RELEASE, pack({"node": node, "hire": hire, "seconds": seconds}))

    def receive(self, timeout: float) -> list[tuple[ClusterKind, bytes]]:
        """Return what has arrived, waiting up to `timeout` seconds for the first message."""
        if self._wire is None:
            time.sleep(min(timeout, max(0.0, self._due_at - time.monotonic())))
            return []
        select.select([self._wire.socket], [self._wire.socket] if self._wire.unsent else [], [], timeout)
        self._wire.flush()
        now = time.monotonic()
        self._silent_seconds += min(now - self._looked_at, _LONGEST_LOOK)
        self._looked_at = now
        try:
            messages = self._wire.receive()
        except (EOFError, DamagedError) as error:
            self._end(self._how_it_ended() if isinstance(error, EOFError) else str(error))
            return []
        if messages:
            self._silent_seconds = 0.0
            if messages[0][0] is not ClusterKind.REFUSED:
                self._connected, self._failures = True, 0
        elif self._silent_seconds > (self._patience if self._connected else _CONNECT_SECONDS):
            self._end(f"it gave no sign of life for {self._silent_seconds:.0f} s")
        return messages

    def refused(self, text: str, *, fatal: bool) -> None:
        """Note why the cluster cannot be used; ConfigError if that is a user's mistake."""
        self._end(text)
        if fatal:
            raise ConfigError(f"training.parallel.cluster: {text}")

    def why_gone(self) -> str:
        """Return, once, why the process has ended; "" if it has not."""
        why, self._gone = self._gone, ""
        return why

    def leave(self) -> None:
        """Ask the process to end everything in the cluster, and end it by force if it does not."""
        if self._process is None:
            return
        self.post(ClusterKind.LEAVE, pack({}))
        deadline = time.monotonic() + _LEAVE_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            assert self._wire is not None
            self._wire.flush()
            time.sleep(0.01)
        self._close()

    def _open_log(self) -> IO[bytes]:
        return tempfile.TemporaryFile() if self._errors is None else self._errors.open("a+b")

    def _end(self, why: str) -> None:
        self._gone = why
        self._failures += 1
        self._due_at = time.monotonic() + min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2.0 ** (self._failures - 1))
        self._close()

    def _close(self) -> None:
        process, wire = self._process, self._wire
        self._process = self._wire = None
        if process is not None and wire is not None:
            process.kill()
            process.wait()
            wire.socket.close()
            self._log.close()

    def _how_it_ended(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "its channel is closed"
        ended = f"its process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
        lines = self._last_words().splitlines()
        return f"{ended}: {lines[-1].strip()}" if lines else ended

    def _last_words(self) -> str:
        """Return the end of what Ray has written."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LAST_BYTES))
        return self._log.read().decode(errors="replace").strip()
