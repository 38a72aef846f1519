"""Processes as the kernel sees them."""

import os
import subprocess
import sys
import time

from keisei.profiling.processes import (
    MemorySampler,
    ProcessTree,
    command_line,
    cpu_seconds,
    process_tree,
)

ENDED = 2**22 + 1  # beyond the largest process id


# A process whose command line names a fork server, and its children, in the order in which they started.
SERVER = """
import subprocess, sys
'multiprocessing.forkserver'
wait = [sys.executable, '-c', 'input()']
started = [subprocess.Popen(wait, stdin=subprocess.PIPE) for _ in range(3)]
print(*(child.pid for child in started), flush=True)
input()
for child in started:
    child.communicate(b'x')
"""


def test_workers_are_the_children_of_the_fork_server_in_the_order_in_which_they_started() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        pids = [int(pid) for pid in server.stdout.readline().split()]
        tree = process_tree(os.getpid())
        server.communicate(b"x")
    assert tree.learner == os.getpid()
    assert [pid for pid in tree.workers if pid in pids] == pids


def test_a_process_without_a_fork_server_has_no_workers() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process_tree(process.pid) == ProcessTree(process.pid, ())
        process.communicate(b"\n")
    assert ProcessTree(5, (8, 9)).names() == {5: "learner", 8: "worker 0", 9: "worker 1"}


def test_cpu_seconds_grow_with_work_and_an_ended_process_has_none() -> None:
    before = cpu_seconds(os.getpid())
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.05
    assert cpu_seconds(ENDED) == 0
    assert command_line(ENDED) == ""


def test_memory_is_sampled_over_time_and_growth_is_seen() -> None:
    code = "input(); block = b'x' * 50_000_000; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with MemorySampler(lambda: [process.pid, ENDED]) as memory:
            time.sleep(0.5)
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
            time.sleep(1)
        process.communicate(b"\n")
    assert list(memory.samples) == [process.pid]
    samples = memory.samples[process.pid]
    assert samples[-1][1] - samples[0][1] > 40_000_000
    assert [seconds for seconds, _ in samples] == sorted(seconds for seconds, _ in samples)
