"""Foreman without Ray: a site of its own that ends or falls silent, and what is told of it."""

import os
import signal
import time
from collections.abc import Callable

import pytest
from parallel_play import PATIENCE, small_config
from small_cluster import is_alive

from keisei.training.cluster.foreman import Foreman
from keisei.training.cluster.messages import ClusterKind, frame, pack

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(600)]


def poll(foreman: Foreman, at_first_message: Callable[[], None]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if len(foreman.poll(0.1)):
            at_first_message()


def poll_until_it_ends(foreman: Foreman, at_first_message: Callable[[], None] = lambda: None) -> str:
    with pytest.raises(EOFError) as info:
        poll(foreman, at_first_message)
    foreman._errors.close()
    foreman._wire.socket.close()
    return str(info.value)


def test_the_last_words_of_a_site_that_cannot_start_are_told() -> None:
    foreman = Foreman(frame(ClusterKind.START, b"damaged and more"), {}, 600.0, 600.0)
    assert poll_until_it_ends(foreman) == (
        "the site ended with exit code 1: keisei.training.parallel.wire.DamagedError: "
        "a message does not match its checksum"
    )


def test_a_site_that_does_not_start_is_killed() -> None:
    begun = frame(ClusterKind.START, bytes(1_000_000))[:1000]  # it waits for the rest
    foreman = Foreman(begun, {}, 0.5, 600.0)
    assert poll_until_it_ends(foreman) == "the site gave no sign of life for 0.5 s"
    assert not is_alive(foreman._site.pid)


def test_a_site_that_falls_silent_is_killed() -> None:
    config = small_config(1)
    start = {
        "config": config.model_dump(mode="json"),
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
    foreman = Foreman(frame(ClusterKind.START, pack(start)), {}, 600.0, 2.0)
    text = poll_until_it_ends(foreman, lambda: os.kill(foreman._site.pid, signal.SIGSTOP))
    assert text == "the site gave no sign of life for 2 s"
    assert not is_alive(foreman._site.pid)
