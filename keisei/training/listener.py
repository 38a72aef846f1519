"""Who is told of a run: consoles, metrics files, a log, a page. All of them are listeners.

The loop calls `start` once, `update` after each update and `close` at the end; `notice` comes whenever there
is something to say, also before `start` and from a signal's handler. An OSError that a listener raises ends
the run, saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from keisei.training.parallel.worker_status import WorkerStatus

if TYPE_CHECKING:  # loads torch, which is not needed to read and to plot metrics
    from keisei.core.self_play import GameResult, SavedGames


@dataclass(frozen=True)
class RunFacts:
    """What is known before the first update; device names device, threads, precision and layout."""

    run_path: str
    total_steps: int
    start_step: int
    parameters: int
    device: str
    seed: int

    def __str__(self) -> str:
        return (
            f"run {self.run_path}, seed {self.seed}, {self.parameters:,} parameters, {self.device}; "
            f"moves {self.start_step:,} to {self.total_steps:,}"
        )


@dataclass(frozen=True)
class Update:
    """What an update brought.

    step: the moves trained on so far. metrics: by the names of keisei.training.metrics. workers: as they are
    now, none without worker processes. finished: the games that ended. saved_games: the games that go on, one
    entry for each vector of them.
    """

    step: int
    metrics: Mapping[str, float]
    workers: tuple[WorkerStatus, ...] = ()
    finished: tuple[GameResult, ...] = field(default=(), repr=False)
    saved_games: tuple[SavedGames, ...] = field(default=(), repr=False)


class Listener(Protocol):
    """Is told of a run."""

    def start(self, facts: RunFacts) -> None:
        """Begin, before the first update."""

    def update(self, update: Update) -> None:
        """Take in an update."""

    def notice(self, text: str) -> None:
        """Take in one line that a person should see now."""

    def sync(self) -> None:
        """Bring to the disk what was told so far; a checkpoint is about to be written that builds on it."""

    def close(self) -> None:
        """Finish, and give back what was taken; a second call does nothing."""


class SilentListener:
    """Does nothing. A base for listeners that need only some of the calls."""

    def start(self, facts: RunFacts) -> None:
        """Do nothing."""

    def update(self, update: Update) -> None:
        """Do nothing."""

    def notice(self, text: str) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Listeners:
    """Tells several listeners, in their order. They are closed in the reverse order, each of them."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = list(listeners)
        self._early: list[str] | None = []  # notices before the start, told right after it

    def add(self, listener: Listener) -> None:
        """Tell one more, from the start on."""
        self._listeners.append(listener)

    def start(self, facts: RunFacts) -> None:
        """Start all of them, and pass on the notices that came before."""
        for listener in self._listeners:
            listener.start(facts)
        early, self._early = self._early or [], None
        for text in early:
            self.notice(text)

    def update(self, update: Update) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener.update(update)

    def notice(self, text: str) -> None:
        """Tell all of them, now or when they are started."""
        if self._early is not None:
            self._early.append(text)
            return
        for listener in self._listeners:
            listener.notice(text)

    def sync(self) -> None:
        """Sync all of them."""
        for listener in self._listeners:
            listener.sync()

    def close(self) -> None:
        """Close all of them, also when one fails, and tell them nothing more."""
        listeners, self._listeners = self._listeners, []
        with ExitStack() as stack:
            for listener in listeners:
                stack.callback(listener.close)
