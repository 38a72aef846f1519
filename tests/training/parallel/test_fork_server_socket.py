"""The fork server's socket: nothing of it is left on the disk, however its process ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.parallel

START = """
import os, signal
from multiprocessing import forkserver, get_context
from keisei.training.parallel.fork_server_socket import ensure_running

def play(text):
    ensure_running()
    process = get_context("forkserver").Process(target=print, args=(text,), kwargs={"flush": True})
    process.start()
    process.join()
"""
FORK_SERVER = "forkserver._forkserver._forkserver_pid"


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START + code],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    done = run("play('one'); play('two'); os.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    assert (done.stdout, done.returncode) == ("one\ntwo\n", -signal.SIGKILL), done.stderr
    assert os.listdir(tmp_path) == []


def test_another_fork_server_takes_the_place_of_one_that_was_killed(tmp_path: Path) -> None:
    kill = (
        f"os.kill({FORK_SERVER}, signal.SIGKILL); os.waitid(os.P_PID, {FORK_SERVER}, os.WEXITED | os.WNOWAIT)"
    )
    count = "print(len(os.listdir('/proc/self/fd')), os.listdir(os.environ['TMPDIR']), flush=True)"
    done = run(f"play('one'); {count}; {kill}; play('two'); {count}", tmp_path)
    one, before, two, after = done.stdout.splitlines()
    assert (one, two, before) == ("one", "two", after), done.stderr
    assert before.endswith(" []")
    assert (done.returncode, done.stderr, os.listdir(tmp_path)) == (0, "", [])
