"""Stacks: py-spy's output read, waiting left out, and a thread that samples without any permission."""

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from keisei.profiling.stacks import (
    PySpy,
    ThreadSampler,
    is_py_spy_allowed,
    parse_py_spy,
    read_stacks,
    waits,
    write_stacks,
)

RAW = """\
process 10:"python keisei train";0x7f (libc.so.6);main (app.py);run (loop.py);conv2d (libtorch.so) 3
process 10:"python keisei train";0x8f (libc.so.6);main (app.py);run (loop.py);conv2d (libtorch.so) 2
process 10:"python keisei train";process 11:"python -c main";work (worker.py);step (_native.so) 7
process 10:"python keisei train";process 11:"python -c main";work (worker.py);select (libc.so.6) 90
"""


def test_samples_go_to_the_innermost_process_without_waiting_and_without_the_interpreters_start() -> None:
    assert parse_py_spy(RAW) == {
        10: Counter({"main (app.py);run (loop.py);conv2d (libtorch.so)": 5}),
        11: Counter({"work (worker.py);step (_native.so)": 7}),
    }


def test_a_command_may_have_quotes_semicolons_and_lines_in_it() -> None:
    raw = 'process 1:"python -c print("x"); a\nb 3\nc";main (app.py);f (x.so) 4\n'
    raw += 'process 1:"y";main (app.py) 2\n'
    found = parse_py_spy(raw)[1]
    assert found["main (app.py)"] == 2
    assert sum(count for stack, count in found.items() if stack.endswith("main (app.py);f (x.so)")) == 4


def test_no_samples_are_no_stacks() -> None:
    assert parse_py_spy("") == parse_py_spy("\n") == {}


@pytest.mark.parametrize("line", ["main (app.py) 3", 'process 1:"x";main (app.py) many'])
def test_a_line_that_py_spy_would_not_write_is_an_error_that_shows_it(line: str) -> None:
    with pytest.raises(ValueError, match="expected a process, frames and a count"):
        parse_py_spy(line)


@pytest.mark.parametrize(
    ("stack", "does"),
    [
        ("run (loop.py);wait (multiprocessing/connection.py)", True),
        ("run (loop.py);poll (libc.so.6)", True),
        (
            "run (queue.py);acquire (libpython.so);PyThread_acquire_lock_timed (libpython.so)",
            True,
        ),
        ("run (worker.py);WorkerEnd.receive (communication.py)", True),
        ("poll (libc.so.6);run (loop.py)", False),
        ("run (loop.py);poll_weights (model.py)", False),
        ("run (loop.py);await_nothing (loop.py)", False),
    ],
)
def test_only_an_innermost_waiting_frame_makes_a_stack_wait(stack: str, does: bool) -> None:
    assert waits(stack) is does


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_the_thread_sees_what_the_main_thread_does() -> None:
    with ThreadSampler() as sampler:
        spin(0.5)
    seen = sum(count for stack, count in sampler.stacks.items() if "spin (" in stack)
    assert seen > 0.5 * sampler.stacks.total() > 2
    stack = next(stack for stack in sampler.stacks if "spin (" in stack)
    caller = "test_the_thread_sees_what_the_main_thread_does ("
    assert stack.index(caller) < stack.index("spin (")


def test_stacks_are_read_back_as_written(tmp_path: Path) -> None:
    stacks = Counter({"a (b c.py);d (e)": 3, "a (b c.py)": 1})
    write_stacks(tmp_path / "stacks.txt", stacks)
    assert (tmp_path / "stacks.txt").read_text() == "a (b c.py) 1\na (b c.py);d (e) 3\n"
    assert read_stacks(tmp_path / "stacks.txt") == stacks


BUSY = "import sys\ndef busy():\n while True: pass\nsys.stdout.write('x'); sys.stdout.flush(); busy()"


def test_py_spy_sees_another_process_where_it_may(tmp_path: Path) -> None:
    if not is_py_spy_allowed():
        pytest.skip("py-spy may not trace here")
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        try:
            with PySpy(process.pid, tmp_path) as spy:
                time.sleep(2)
        finally:
            process.kill()
    assert any("busy (" in stack for stack in spy.stacks[process.pid])


def test_py_spy_that_can_look_at_nothing_says_why(tmp_path: Path) -> None:
    if not is_py_spy_allowed():
        pytest.skip("py-spy may not trace here")
    nobody = subprocess.Popen([sys.executable, "-c", ""])
    nobody.wait()
    with PySpy(nobody.pid, tmp_path) as spy:
        time.sleep(1)
    assert spy.stacks == {}
    assert spy.problem.startswith("py-spy saw nothing: ")


def test_py_spy_ends_by_itself_should_nobody_end_it(tmp_path: Path) -> None:
    if not is_py_spy_allowed():
        pytest.skip("py-spy may not trace here")
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        try:
            with PySpy(process.pid, tmp_path, seconds=1) as spy:
                assert spy._process is not None
                assert spy._process.wait(60) == 0
        finally:
            process.kill()
    assert spy.problem == ""


def test_without_py_spy_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert not is_py_spy_allowed()
    with PySpy(os.getpid(), tmp_path) as spy:
        pass
    assert spy.problem == "py-spy is not installed: pip install py-spy"
