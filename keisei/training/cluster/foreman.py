"""Foreman: an actor on a node of the cluster that starts a site there and passes messages on, unread.

The site, a process of its own, has the node's workers, so that nothing of Ray is in them. The foreman needs
no state: if one of the two is gone, the other one ends, and the learner has the work done elsewhere.
"""

import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
from typing import Any

import numpy as np

from keisei.training.cluster.messages import ClusterKind, frame, pack
from keisei.training.parallel.wire import Wire

_CODE = "import sys; from keisei.training.cluster.site import main; main(*map(int, sys.argv[1:]))"
_POLLED = frame(ClusterKind.POLLED, pack({}))


class Foreman:
    """One node's foreman. start: the message that tells the site what to play. about: for whoever asks."""

    def __init__(self, start: bytes, about: dict[str, Any]) -> None:
        self._about = about
        mine, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            command = [sys.executable, "-P", "-c", _CODE, str(descriptor), str(os.getpid())]
            # The command is our own; nothing in it comes from elsewhere.
            self._site = subprocess.Popen(command, pass_fds=[descriptor], start_new_session=True)  # nosec B603
        self._wire = Wire(mine, ClusterKind)
        self._sending, self._arrived = threading.Lock(), threading.Condition()
        self._inbox: list[bytes] = []
        self._ended = False
        threading.Thread(target=self._receive, daemon=True).start()
        self.post(start)

    def post(self, data: bytes) -> None:
        """Pass whole messages on to the site."""
        with self._sending, contextlib.suppress(ConnectionError):
            self._wire.socket.sendall(data)

    def weights(self, references: list[Any]) -> None:
        """Fetch a message with weights, once for this node, and pass it on."""
        import ray  # only here: learner and sites do without

        self.post(ray.get(references[0]).tobytes())

    def poll(self, seconds: float) -> Any:
        """Return what the site has sent, waiting up to so many seconds for it.

        Bytes as an array, which Ray maps instead of copying. The site's end is an EOFError.
        """
        self.post(_POLLED)
        with self._arrived:
            self._arrived.wait_for(lambda: self._inbox or self._ended, seconds)
            data, self._inbox = b"".join(self._inbox), []
            if self._ended and not data:
                raise EOFError(f"the site ended with exit code {self._site.wait()}")
        return np.frombuffer(data, np.uint8)

    def about(self) -> dict[str, Any]:
        """Return whom this node plays for, and since when."""
        return self._about

    def _receive(self) -> None:
        """Take in whole messages: two polls may be answered at the same time, in any order."""
        while True:
            select.select([self._wire.socket], [], [])
            try:
                found = [frame(kind, body) for kind, body in self._wire.receive()]
            except EOFError:
                found = []
                self._ended = True
            with self._arrived:
                self._inbox += found
                self._arrived.notify_all()
            if self._ended:
                return
