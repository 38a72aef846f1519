"""Keep the fork server's socket off the disk: a process that is killed cannot remove it any more.

The socket is made in a directory of its own, which is removed at once; this process keeps it open, and
connects to it by its file descriptor. That takes Linux; elsewhere it stays where multiprocessing has it.
"""

import os
import sys
import tempfile
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.process import current_process
from typing import Any

_OPEN_FILES = "/proc/self/fd"


def ensure_running() -> None:
    """Start the fork server if there is none."""
    server: Any = getattr(forkserver, "_forkserver", None)
    if sys.platform != "linux" or not os.path.isdir(_OPEN_FILES) or server is None or _runs(server):
        forkserver.ensure_running()
        return
    config: dict[str, Any] = getattr(current_process(), "_config")  # noqa: B009 # of multiprocessing
    before, former = config.get("tempdir"), server._forkserver_address or ""
    with tempfile.TemporaryDirectory(prefix="keisei-") as folder:
        config["tempdir"] = folder
        try:
            forkserver.ensure_running()
        finally:
            config["tempdir"] = before
        socket = os.open(server._forkserver_address, os.O_PATH)
        server._forkserver_address = f"{_OPEN_FILES}/{socket}"
    if former.startswith(_OPEN_FILES):
        os.close(int(former.rpartition("/")[2]))


def _runs(server: Any) -> bool:
    """Return whether there is a fork server that has not ended; multiprocessing itself waits for its end."""
    if server._forkserver_pid is None:
        return False
    with suppress(ChildProcessError):
        found = os.waitid(os.P_PID, server._forkserver_pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is None
    return True
