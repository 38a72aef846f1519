"""Listeners receive the events of a run: consoles, metrics files, a log, a page.

The loop calls `start` once, `update` after each update and `close` at the end; `notice` may be called at any
time, even before `start` and from a signal handler. An OSError from a listener ends the run, after a
checkpoint.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from keisei.training.parallel.worker_status import WorkerStatus

if TYPE_CHECKING:  # loads torch, which is not needed to read and plot metrics
    from keisei.core.self_play import GameResult, Played, SavedGames


@dataclass(frozen=True)
class RunFacts:
    """Facts known before the first update.

    run_path: None if nothing is saved. device: names the device, threads, precision and layout.
    evaluate_every: so many moves; 0 for none on the way.
    """

    run_path: str | None
    total_steps: int
    start_step: int
    parameters: int
    device: str
    seed: int
    evaluate_every: int = 0

    @property
    def where(self) -> str:
        """The run's path, if it has one."""
        return self.run_path or "without a directory"

    @property
    def how_to_stop(self) -> str:
        """What Ctrl-C does, and how to go on from there."""
        if self.run_path is None:
            return "Ctrl-C stops; nothing is saved"
        return f"Ctrl-C saves; resume with: keisei train --resume {shlex.quote(self.run_path)}"

    def __str__(self) -> str:
        return (
            f"run {self.where}, seed {self.seed}, {self.parameters:,} parameters, "
            f"{self.device}; moves {self.start_step:,} to {self.total_steps:,}"
        )


@dataclass(frozen=True)
class Update:
    """The result of an update.

    step: moves trained on so far. metrics: named as in keisei.training.metrics. workers: their current
    status, empty without worker processes. finished: games that ended. saved_games: games in progress, one
    entry per vector of games. played: the moves learned from, those of each vector in their order.
    """

    step: int
    metrics: Mapping[str, float]
    workers: tuple[WorkerStatus, ...] = ()
    finished: tuple[GameResult, ...] = field(default=(), repr=False)
    saved_games: tuple[SavedGames, ...] = field(default=(), repr=False)
    played: tuple[Played, ...] = field(default=(), repr=False)


class Listener(Protocol):
    """A receiver of a run's events."""

    def start(self, facts: RunFacts) -> None:
        """Start, before the first update."""

    def update(self, update: Update) -> None:
        """Receive an update."""

    def notice(self, text: str) -> None:
        """Receive one line that the user should see now."""

    def match(self, text: str) -> None:
        """Receive the result of an evaluation's match in one line; the next update has its figures."""

    def sync(self) -> None:
        """Flush everything to disk: a checkpoint that relies on it is about to be written."""

    def close(self) -> None:
        """Finish and release resources; a second call does nothing."""


class SilentListener:
    """A listener that does nothing; a base class for those that need only some of the calls."""

    def start(self, facts: RunFacts) -> None:
        """Do nothing."""

    def update(self, update: Update) -> None:
        """Do nothing."""

    def notice(self, text: str) -> None:
        """Do nothing."""

    def match(self, text: str) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Listeners:
    """Several listeners as one, called in order and closed in reverse order."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = list(listeners)
        self._early: list[str] | None = []  # notices before start, passed on right after it

    def add(self, listener: Listener) -> None:
        """Add a listener; call this before start."""
        self._listeners.append(listener)

    def start(self, facts: RunFacts) -> None:
        """Start all of them and pass on earlier notices."""
        for listener in self._listeners:
            listener.start(facts)
        early, self._early = self._early or [], None
        for text in early:
            self.notice(text)

    def update(self, update: Update) -> None:
        """Update all of them."""
        for listener in self._listeners:
            listener.update(update)

    def notice(self, text: str) -> None:
        """Pass the notice to all of them, now or once they are started."""
        if self._early is not None:
            self._early.append(text)
            return
        for listener in self._listeners:
            listener.notice(text)

    def match(self, text: str) -> None:
        """Pass the result to all of them."""
        for listener in self._listeners:
            listener.match(text)

    def sync(self) -> None:
        """Sync all of them."""
        for listener in self._listeners:
            listener.sync()

    def close(self) -> None:
        """Close all of them, even if one fails, and drop them."""
        listeners, self._listeners = self._listeners, []
        with ExitStack() as stack:
            for listener in listeners:
                stack.callback(listener.close)
