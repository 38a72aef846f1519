"""Foreman without Ray: a site of its own that ends or falls silent, and what is told of it."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from parallel_play import PATIENCE, small_config
from small_cluster import is_alive

from keisei.training.cluster.foreman import Foreman
from keisei.training.cluster.messages import ClusterKind, frame, pack, unpack
from keisei.training.parallel.wire import Wire

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(600)]

Message = tuple[ClusterKind, dict[str, Any]]


def start(**changes: Any) -> bytes:
    fields = {
        "config": small_config(1).model_dump(mode="json"),
        "numerics": {},
        "layout": [],
        "steps": 1,
        "candidates": 0,
        "supervision": {},
        "patience": 600.0,
        "workers": 1,
        "node": 0,
        "hire": 1,
    }
    return frame(ClusterKind.START, pack({**fields, **changes}))


def poll(foreman: Foreman) -> Iterator[Message]:
    """Yield what a site sends: the kind and the fields of each message."""
    here, there = socket.socketpair()
    wire = Wire(there, ClusterKind)
    with here, there:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            here.sendall(foreman.poll(0.1).data)
            for kind, body in wire.receive():
                yield kind, unpack(body)[0]


def poll_until_it_ends(
    foreman: Foreman, at_message: Callable[[ClusterKind], None] = lambda _: None
) -> tuple[str, list[Message]]:
    """Return how a site has ended, and what it has sent before."""
    messages = []
    try:
        for message in poll(foreman):
            messages.append(message)
            at_message(message[0])
    except EOFError as error:
        for thread in foreman._threads:
            thread.join()
        foreman._errors.close()
        foreman._wire.socket.close()
        return str(error), messages
    raise AssertionError(f"the site has not ended, and sent {messages}")


def at_status(action: Callable[[], None]) -> Callable[[ClusterKind], None]:
    return lambda kind: action() if kind is ClusterKind.STATUS else None


def test_the_last_words_of_a_site_that_cannot_start_are_told() -> None:
    foreman = Foreman(frame(ClusterKind.START, b"damaged and more"), {}, 600.0, 600.0)
    assert poll_until_it_ends(foreman) == (
        "the site ended with exit code 1: keisei.training.parallel.wire.DamagedError: "
        "a message does not match its checksum",
        [],
    )


def test_a_site_says_what_it_is_before_it_reads_what_another_version_may_have_sent() -> None:
    foreman = Foreman(start(config={"from": "another version"}), {}, 600.0, 600.0)
    text, told = poll_until_it_ends(foreman)
    assert text.startswith("the site ended with exit code 1")
    assert [kind for kind, _ in told] == [ClusterKind.READY, ClusterKind.FAILED]
    assert told[0][1]["facts"]["keisei"]


def test_a_site_that_does_not_start_is_killed() -> None:
    begun = frame(ClusterKind.START, bytes(1_000_000))[:1000]  # it waits for the rest
    foreman = Foreman(begun, {}, 0.5, 600.0)
    assert poll_until_it_ends(foreman) == ("the site gave no sign of life for 0.5 s", [])
    assert not is_alive(foreman._site.pid)


def test_a_site_has_the_time_of_a_start_until_its_workers_are_started() -> None:
    foreman = Foreman(start(), {}, 600.0, 0.01)
    text, _ = poll_until_it_ends(foreman, at_status(foreman._site.kill))
    assert text == "the site ended with exit code -9"


def test_a_site_that_falls_silent_is_killed() -> None:
    foreman = Foreman(start(), {}, 600.0, 2.0)
    text, _ = poll_until_it_ends(foreman, at_status(lambda: os.kill(foreman._site.pid, signal.SIGSTOP)))
    assert text == "the site gave no sign of life for 2 s"
    assert not is_alive(foreman._site.pid)


def test_a_foreman_does_not_wait_for_a_site_that_reads_nothing() -> None:
    foreman = Foreman(frame(ClusterKind.START, bytes(1_000_000))[:1000], {}, 600.0, 600.0)
    os.kill(foreman._site.pid, signal.SIGSTOP)
    for _ in range(10):
        foreman.post(bytes(1_000_000))
    assert len(foreman.poll(0.1)) == 0
    weights = threading.Thread(target=foreman.weights, args=(np.zeros(1000, np.uint8),))
    weights.start()
    foreman._site.kill()
    assert poll_until_it_ends(foreman)[0] == "the site ended with exit code -9"
    weights.join()
