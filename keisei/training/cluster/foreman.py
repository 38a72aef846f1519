"""Foreman: an actor on a node of the cluster that starts a site there and passes messages on, unread.

The site, a process of its own, has the node's workers, so that nothing of Ray is in them. The foreman needs
no state: if one of the two is gone, the other one ends, and the learner has the work done elsewhere.
"""

import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np

from keisei.training.cluster.messages import ClusterKind, frame, pack
from keisei.training.parallel.wire import DamagedError, Wire

_CODE = "import sys; from keisei.training.cluster.site import main; main(*map(int, sys.argv[1:]))"
_SHOWN_SECONDS = 0.2  # between two signs for the site that it is listened to
_LOOK_SECONDS = 0.5  # of silence that one look at the site adds: a foreman that was stopped must not blame it
_LAST_BYTES = 2000
_POLLED = frame(ClusterKind.POLLED, pack({}))


class Foreman:
    """One node's foreman. start: the message that tells the site what to play. about: for whoever asks.

    start_seconds: until the site has started its first workers. patience: seconds without a message from
    then on until it is killed.
    """

    def __init__(self, start: bytes, about: dict[str, Any], start_seconds: float, patience: float) -> None:
        self._about, self._start_seconds, self._patience = about, start_seconds, patience
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 # as long as this actor is there
        mine, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            command = [sys.executable, "-P", "-c", _CODE, str(descriptor), str(os.getpid())]
            # The command is our own; nothing in it comes from elsewhere.
            self._site = subprocess.Popen(  # nosec B603
                command, stderr=self._errors, pass_fds=[descriptor], start_new_session=True
            )
        self._wire = Wire(mine, ClusterKind)
        self._changed = threading.Condition()  # what has arrived, what is unsent, or that the site has ended
        self._inbox: list[bytes] = []
        self._ended, self._why_killed = False, ""
        self._shown_at = 0.0
        work = (self._receive, self._send_rest)  # until the site has ended
        self._threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in self._threads:
            thread.start()
        self.post(start)

    def post(self, data: bytes | memoryview) -> None:
        """Pass whole messages on to the site, without waiting: a site that is stopped reads nothing."""
        with self._changed:
            self._wire.post_raw(data)
            if self._wire.unsent:
                self._changed.notify_all()

    def weights(self, message: Any) -> None:
        """Pass a message with weights on, an array that Ray has fetched once for this node.

        It waits until the site has them or is gone, so that no more than one version waits for the site.
        """
        self.post(message.data)
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not self._wire.unsent)

    def poll(self, seconds: float) -> Any:
        """Return what the site has sent, waiting up to so many seconds for it.

        Bytes as an array, which Ray maps instead of copying. The site's end is an EOFError.
        """
        if time.monotonic() - self._shown_at > _SHOWN_SECONDS:
            self._shown_at = time.monotonic()
            self.post(_POLLED)
        with self._changed:
            self._changed.wait_for(lambda: self._inbox or self._ended, seconds)
            data, self._inbox = b"".join(self._inbox), []
            if self._ended and not data:
                raise EOFError(self._how_it_ended())
        return np.frombuffer(data, np.uint8)

    def about(self) -> dict[str, Any]:
        """Return whom this node plays for, and since when."""
        return self._about

    def _send_rest(self) -> None:
        """Send what did not fit into the socket, as soon as the site has read some of it."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._wire.unsent)
                if self._ended:
                    return
            select.select([], [self._wire.socket], [], _LOOK_SECONDS)
            with self._changed:
                self._wire.flush()
                self._changed.notify_all()

    def _receive(self) -> None:
        """Take in whole messages, as two polls may be answered at once; kill a site that is silent."""
        limit, silent_seconds = self._start_seconds, 0.0
        while True:
            if not select.select([self._wire.socket], [], [], _LOOK_SECONDS)[0]:
                silent_seconds += _LOOK_SECONDS
                if silent_seconds > limit:
                    self._why_killed = f"the site gave no sign of life for {limit:g} s"
                    self._site.kill()
                continue
            try:
                messages = self._wire.receive()
                found = [frame(kind, body) for kind, body in messages]
                silent_seconds = 0.0
                if any(kind is not ClusterKind.READY for kind, _ in messages):
                    limit = self._patience
            except (EOFError, DamagedError) as error:
                found = []
                self._ended = True
                if isinstance(error, DamagedError):
                    self._why_killed = f"the site sent damaged data ({error})"
                    self._site.kill()
            with self._changed:
                self._inbox += found
                self._changed.notify_all()
            if self._ended:
                return

    def _how_it_ended(self) -> str:
        """Return why the site is gone, with the last line that it has written."""
        code = self._site.wait()
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LAST_BYTES))
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        ended = self._why_killed or f"the site ended with exit code {code}"
        return f"{ended}: {last}" if last else ended
