"""SelfPlayWorker: a process that plays and learns, with its own games and network, and one thread.

All its state is in what it has delivered: each segment comes with the games as they are after it, so another
process can take over as if nothing had happened. It does not outlive the learner.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from contextlib import suppress
from multiprocessing import forkserver, parent_process
from multiprocessing.connection import wait
from typing import Any

from keisei.config.schema import AppConfig
from keisei.core.device import keep_freed_memory
from keisei.core.gradient_step import GradientWriter
from keisei.core.native_gradients import gradients_on_cpu
from keisei.core.native_policy import policy_on_cpu
from keisei.core.numerics import Numerics
from keisei.core.self_play import SelfPlay, segment_shape
from keisei.training.parallel.communication import (
    Activity,
    Failure,
    Kind,
    LearnerGoneError,
    Ticket,
    Word,
    WorkerEnd,
    read_games,
    read_ticket,
)
from keisei.training.parallel.model_sync import WeightsReader
from keisei.training.parallel.parent_death import die_with_parent
from keisei.training.parallel.step_memory import LearnTask

_BEAT_SECONDS = 0.2  # between two signs of life of a waiting worker
_PHASES = {
    "env": Word.ENV_NANOSECONDS,
    "inference": Word.INFERENCE_NANOSECONDS,
    "sampling": Word.SAMPLING_NANOSECONDS,
}


class _StopPlaying(Exception):  # noqa: N818  (not an error)
    """The learner wants the worker to stop."""


class _NewGames(Exception):  # noqa: N818  (not an error)
    """The learner has sent other games: the unfinished segment no longer counts."""


class SelfPlayWorker:
    """A worker that plays one segment per ticket."""

    def __init__(self, end: WorkerEnd, weights: WeightsReader, config: AppConfig, numerics: Numerics) -> None:
        self.end = end
        self._weights = weights
        self._config = config
        self.policy = policy_on_cpu(config, numerics)
        self._numerics = numerics
        self._gradients: GradientWriter | None = None  # until the learner asks for a share
        self._self_play: SelfPlay | None = None  # until the learner sends games
        self._tickets: deque[Ticket] = deque()
        self._paused = False
        self._stepped_at = self._heard_at = 0  # nanoseconds

    def run(self) -> None:
        """Play until the learner sends STOP."""
        self.end.report(Kind.READY)
        try:
            while True:
                try:
                    self._play(self._next_ticket())
                except _NewGames:
                    continue
        except _StopPlaying:
            self.end.report(Kind.STOPPED)

    def _play(self, ticket: Ticket) -> None:
        """Play a ticket's segment with the newest weights and deliver it."""
        assert self._self_play is not None, "a ticket before the games"
        games, clock = self._self_play.games, self.policy.clock
        began_at = time.thread_time_ns()
        with clock("transport"):
            version = self._weights.refresh(self.policy.load_arrays)
            self.end.write(Word.WEIGHTS_VERSION, version)
            self.end.write(Word.STATE, Activity.PLAYING)
            size = segment_shape(self._config, ticket.steps, len(games)).nbytes
            memory = self.end.memory_of(ticket)
            if memory is None:
                memory = memoryview(bytearray(size))
            memory = memory[:size]
        self._stepped_at = 0
        self.end.add(Word.TRANSPORT_NANOSECONDS, time.thread_time_ns() - began_at)
        collected = self._self_play.rollout(
            self.policy,
            ticket.steps,
            before_step=self.before_step,
            before_batch=self.before_batch,
            memory=memory,
        )
        self._count_step()
        ended_at = time.thread_time_ns()
        self.end.add(Word.GAMES, len(collected.finished))
        for phase, seconds in clock.lap().items():
            if phase in _PHASES:
                self.end.add(_PHASES[phase], int(seconds * 1e9))
        with clock("transport"):
            self.end.write(Word.STATE, Activity.WAITING)
            saved = self._self_play.save()
            self.end.deliver(ticket, version, memory, len(games), collected.results, saved)
        self.end.add(Word.TRANSPORT_NANOSECONDS, time.thread_time_ns() - ended_at)

    def before_step(self) -> None:
        """Give a sign of life and handle the learner's messages, before each move of the games."""
        began_at = time.thread_time_ns()
        if self._stepped_at:
            self._count_step()
        assert self._self_play is not None
        with self.policy.clock("transport"):
            self.end.write(Word.GAME_NUMBER, self._self_play.games.numbers[0])
            self._hear(0.0)
        self.end.add(Word.TRANSPORT_NANOSECONDS, time.thread_time_ns() - began_at)
        with self.policy.clock("wait"):
            while self._paused:
                self.end.write(Word.STATE, Activity.PAUSED)
                self._hear(_BEAT_SECONDS)
                self.end.write(Word.STATE, Activity.PLAYING)
        self._stepped_at = time.perf_counter_ns()

    def before_batch(self) -> None:
        """Give a sign of life before each evaluation of a search; now and then, handle messages."""
        now = time.perf_counter_ns()
        if now - self._heard_at > _BEAT_SECONDS * 1e9:
            with self.policy.clock("transport"):
                self._hear(0.0)
        else:
            self.end.add(Word.BEATS, 1)

    def _learn(self, task: LearnTask) -> None:
        """Leave a share's gradients in the step memory, unless the learner has gone on without them."""
        memory, before = self.end.step_memory, self.end.read(Word.STATE)
        assert memory is not None, "a share, but no memory for it"
        began_at = time.perf_counter_ns()
        self.end.write(Word.STATE, Activity.LEARNING)
        with self.policy.clock("learning"):
            if self._gradients is None:
                self._gradients = self.make_gradients()
            self._gradients.load_flat(memory.weights)
            share = memory.share_of(task)
            if memory.is_current(task):
                self._gradients.write_gradients(share, memory.gradients_of(self.end.worker))
        spent = time.perf_counter_ns() - began_at
        self.end.add(Word.LEARNING_NANOSECONDS, spent)
        self.end.add(Word.BUSY_NANOSECONDS, spent)
        self.end.write(Word.STATE, before)
        self.end.report_learned(task.sequence)

    def make_gradients(self) -> GradientWriter:
        """Return what computes shares, made on first use."""
        return gradients_on_cpu(self._config, self._numerics)

    def _count_step(self) -> None:
        """Count the move just made in every game."""
        assert self._self_play is not None
        self.end.add(Word.STEPS, len(self._self_play.games))
        self.end.add(Word.BUSY_NANOSECONDS, time.perf_counter_ns() - self._stepped_at)
        self._stepped_at = 0

    def _next_ticket(self) -> Ticket:
        self.end.write(Word.STATE, Activity.WAITING)
        while self._paused or not self._tickets:
            self.end.write(Word.STATE, Activity.PAUSED if self._paused else Activity.WAITING)
            self._hear(_BEAT_SECONDS)
        return self._tickets.popleft()

    def _hear(self, timeout: float) -> None:
        """Give a sign of life and handle the learner's messages, waiting up to `timeout` seconds for one."""
        self.end.add(Word.BEATS, 1)
        self._heard_at = time.perf_counter_ns()
        games = None
        with self.policy.clock("wait"):
            messages = self.end.receive(timeout)
        for kind, body in messages:
            if kind is Kind.PLAY:
                self._tickets.append(read_ticket(body))
            elif kind is Kind.LEARN:
                self._learn(LearnTask.unpack(body))
            elif kind is Kind.GAMES:
                self._tickets.clear()
                games = read_games(body)
                self._self_play = SelfPlay.restore(games, self._config.env)
                self.end.report(Kind.GAMES_TAKEN)
            elif kind in (Kind.PAUSE, Kind.RESUME):
                self._paused = kind is Kind.PAUSE
            elif kind is Kind.STOP:
                raise _StopPlaying
        if games is not None:
            raise _NewGames


def work(
    worker: type[SelfPlayWorker],
    end: WorkerEnd,
    weights: WeightsReader,
    config: AppConfig,
    numerics: Numerics,
    *arguments: Any,
) -> None:
    """Run a worker: the entry point of its process."""
    # A terminal sends these to every process of the run; the learner handles them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _die_with_learner()
    keep_freed_memory()
    try:
        worker(end, weights, config, numerics, *arguments).run()
    except LearnerGoneError:
        pass
    except BaseException as error:
        first_line = " ".join([f"{type(error).__name__}:", *str(error).splitlines()[:1]])
        with suppress(LearnerGoneError):
            end.report(Kind.FAILED, Failure(first_line, traceback.format_exc()))
        sys.exit(1)


def _die_with_learner() -> None:
    """Make this process end when the learner does, whatever ended it.

    A thread waits for the learner's end. It cannot end a process that is stopped or that holds the
    interpreter lock; the kernel does that when the fork server dies. The fork server dies with the learner
    unless a child keeps open the pipe by which it notices, so this process closes its copy.
    """
    learner = parent_process()
    assert learner is not None

    def watch() -> None:
        wait([learner.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="watch the learner", daemon=True).start()
    alive_fd = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_alive_fd", None)
    if sys.platform == "linux" and alive_fd is not None:
        os.close(alive_fd)
        forkserver._forkserver._forkserver_alive_fd = None  # type: ignore[attr-defined]
        die_with_parent()
