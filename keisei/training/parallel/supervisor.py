"""Supervisor: starts, listens to and replaces the worker processes. `supervise` is the whole event loop."""

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from typing import Any

from keisei.config.schema import AppConfig
from keisei.core.numerics import Numerics
from keisei.core.self_play import SavedGames
from keisei.training.parallel.communication import (
    Activity,
    DamagedError,
    Failure,
    Kind,
    Word,
    WorkerCommunicator,
    WorkerSegment,
    read_failure,
)
from keisei.training.parallel.ledger import Ledger
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_statistics import ParallelStatistics
from keisei.training.parallel.self_play_worker import SelfPlayWorker, work
from keisei.training.parallel.supervised_worker import (
    SupervisedWorker,
    Supervision,
    cause_of_death,
    resident_bytes,
)
from keisei.training.parallel.worker_status import WorkerStatus

_LEAVE_SECONDS = 2.0  # for a worker to end by itself
_SAME_FAILURES = 3


class WorkerError(RuntimeError):
    """Workers cannot play: the same exception ended them again and again before any had delivered a thing."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"workers fail at their start: {failure.error}")
        self.failure = failure
        self.add_note(f"in the worker:\n{failure.traceback}")


class Supervisor:
    """The workers, each in its place; what they deliver is put into `queue`.

    start: what a process is started with beside its end of the channel: the kind of worker, config, formats
    and further arguments.
    """

    def __init__(
        self,
        games: Sequence[SavedGames],
        communicator: WorkerCommunicator,
        synchronizer: ModelSynchronizer,
        start: tuple[type[SelfPlayWorker], AppConfig, Numerics, tuple[Any, ...]],
        *,
        timeout: float,
        supervision: Supervision,
        notice: Callable[[str], None],
    ) -> None:
        self.places = [SupervisedWorker(worker, saved, supervision) for worker, saved in enumerate(games)]
        self.queue: deque[WorkerSegment] = deque()
        self.ledger = Ledger()
        self.history = ParallelStatistics(len(games))
        self.paused = False
        self._communicator, self._synchronizer = communicator, synchronizer
        self._start = start
        self._timeout, self._supervision, self._notice = timeout, supervision, notice
        self._failures_at_start: Counter[str] = Counter()
        self._anything_delivered = False
        self._context = multiprocessing.get_context("forkserver")
        preload = ["keisei.training.parallel.self_play_worker"]
        # Else the kernel would take the end of this thread for the end of the process.
        if threading.current_thread() is threading.main_thread():
            preload.insert(0, "keisei.training.parallel.fork_server_first")
        self._context.set_forkserver_preload(preload)

    def supervise(self, timeout: float) -> None:
        """Take in what workers have sent and replace those that are gone; wait so long for one to send."""
        for place in self.places:
            if place.is_due():
                self._launch(place)
        due = [place.due_at - time.monotonic() for place in self.places if place.process is None]
        sentinels = [place.process.sentinel for place in self.places if place.process is not None]
        self._communicator.wait(sentinels, min([timeout, *due]))
        for place in self.there():
            self._look_at(place)
        self.history.looked(len(self.queue))

    def there(self) -> Iterator[SupervisedWorker]:
        """Go through the places that have a process now."""
        for place in self.places:
            if place.process is not None:
                yield place

    def command(self, command: Kind) -> None:
        """Send PAUSE or RESUME to all, those that are started later included."""
        self.paused = command is Kind.PAUSE
        for place in self.places:
            if place.phase == "running":
                self._communicator.send_command(place.worker, command)

    def begin(self, games: Sequence[SavedGames]) -> None:
        """Let all go on with other games; what they owe is forgotten."""
        for place, begun in zip(self.places, games, strict=True):
            place.saved = place.played = begun
            place.owed = 0
            if place.phase == "running":
                self._send_games(place)

    def dismiss(self) -> None:
        """End all processes, by force where they do not end by themselves."""
        for place in self.there():
            self._communicator.send_command(place.worker, Kind.STOP)
        deadline = time.monotonic() + _LEAVE_SECONDS
        try:
            for place in self.there():
                assert place.process is not None
                place.process.join(max(0.0, deadline - time.monotonic()))
        finally:  # also if somebody presses Ctrl-C once more
            for place in self.there():
                self._remove(place, "shutdown")

    def status(self, place: SupervisedWorker) -> WorkerStatus:
        """Return what is known of a worker now."""
        steps, games, version = self.history.totals[place.worker]
        utilization = 0.0
        state, pid = place.state(None), None
        if place.process is not None:
            words = {word: self._communicator.word(place.worker, word) for word in Word}
            steps, games = steps + words[Word.STEPS], games + words[Word.GAMES]
            version = max(version, words[Word.WEIGHTS_VERSION])
            utilization = self.history.utilization(place.worker, words[Word.BUSY_NANOSECONDS])
            state, pid = place.state(words[Word.STATE]), place.process.pid
        return WorkerStatus(
            worker=place.worker,
            state=state,
            incarnation=place.incarnation,
            pid=pid,
            utilization=utilization,
            steps=steps,
            games=games,
            weights_version=version,
            restarts=max(0, place.incarnation),
            memory_bytes=resident_bytes(pid),
            last_error=place.last_error,
        )

    def seconds(self, place: SupervisedWorker) -> dict[str, float]:
        """Return what the process in a place has spent its time with, nothing if there is none."""
        if place.process is None:
            return {}
        return {
            name.removesuffix("_NANOSECONDS").lower(): self._communicator.word(place.worker, word) / 1e9
            for name, word in Word.__members__.items()
            if name.endswith("_NANOSECONDS")
        }

    def _launch(self, place: SupervisedWorker) -> None:
        """Start a process in a place; a machine that cannot is one more reason to wait and try again."""
        try:
            end = self._communicator.open(place.worker, place.incarnation + 1)
        except OSError as error:  # no memory
            self._notice(f"worker {place.worker} cannot be started ({error}); {self._then(place)}")
            return
        worker, config, numerics, arguments = self._start
        process = self._context.Process(
            target=work,
            args=(worker, end, self._synchronizer.reader(), config, numerics, *arguments),
            name=f"keisei worker {place.worker}",
            daemon=True,
        )
        try:
            _ensure_fork_server()
            with _fork_server_answers_within(self._supervision.start_seconds):
                process.start()
        except (OSError, EOFError) as error:  # no process to be had, or the fork server died over it
            self._communicator.close(place.worker)
            self._notice(f"worker {place.worker} cannot be started ({error}); {self._then(place)}")
            return
        end.close()
        self.ledger.begin(place.worker)
        self.history.mark(place.worker, 0)
        place.started(process)
        self.history.restarts += place.incarnation > 0

    def _look_at(self, place: SupervisedWorker) -> None:
        """Take in what a worker has sent; find out whether it is gone."""
        process = place.process
        assert process is not None
        died = not process.is_alive()  # before reading: what it sent before it died is read
        try:
            for kind, body in self._communicator.receive(place.worker):
                self._hear(place, kind, body)
                if place.process is None:
                    return
        except EOFError:
            process.join(1.0)
            died = True
        except DamagedError as error:
            self._replace(place, "damaged", f"sent something damaged ({error})")
            return
        if died:
            self._replace(place, "died", f"died ({cause_of_death(process.exitcode)})")
        elif place.is_silent(self._sign_of_life(place.worker), self._timeout):
            seconds = place.patience(self._timeout)
            self._replace(place, "hung", f"gave no sign of life for {seconds:g} s and was killed")

    def _sign_of_life(self, worker: int) -> int:
        """Return a number that changes as long as a worker does what it should.

        Beats alone will not do for one that says it waits although it was asked to play: that one has to
        deliver.
        """
        waits = self._communicator.word(worker, Word.STATE) == Activity.WAITING
        if waits and self._communicator.has_tickets(worker):
            return -1 - self._communicator.word(worker, Word.STEPS)
        return self._communicator.word(worker, Word.BEATS)

    def _hear(self, place: SupervisedWorker, kind: Kind, body: bytes) -> None:
        """Act on a message of a worker; DamagedError if it is none that it can have to say now."""
        worker = place.worker
        if kind is Kind.READY:
            if place.phase != "starting":
                raise DamagedError("READY, though it was ready")
            was_on_trial, seconds = place.on_trial, place.is_ready()
            if seconds is not None:
                self.history.replacement_seconds.append(seconds)
            if was_on_trial:
                self._notice(f"worker {worker} is back")
            self._send_games(place)
            if self.paused:
                self._communicator.send_command(worker, Kind.PAUSE)
        elif kind is Kind.GAMES_TAKEN:
            if not place.games_sent:
                raise DamagedError("GAMES_TAKEN, though it was sent none")
            place.games_sent -= 1
            self._communicator.void_tickets(worker)
            self.ledger.shown(worker, self._communicator.word(worker, Word.STEPS))
            self.ledger.abandon(worker, "reset")
        elif kind is Kind.SEGMENT:
            self._receive_segment(place, self._communicator.take_segment(worker, body))
        elif kind is Kind.FAILED:
            failure = read_failure(body)
            place.last_error = failure.traceback
            self._replace(place, "failed", f"failed ({failure.error})")
            self._failures_at_start[failure.error] += 1
            if not self._anything_delivered and self._failures_at_start[failure.error] >= _SAME_FAILURES:
                raise WorkerError(failure)
        elif kind is not Kind.STOPPED:
            raise DamagedError(f"{kind.name}, which only the learner says")

    def _receive_segment(self, place: SupervisedWorker, one: WorkerSegment) -> None:
        steps = len(one.segment)
        self.ledger.shown(place.worker, self._communicator.word(place.worker, Word.STEPS))
        self.ledger.delivered(place.worker, steps)
        if place.games_sent:  # it was played before the worker heard of other games
            self.ledger.discard_queued(steps, "reset")
            return
        self.queue.append(one)
        place.played = one.saved
        place.owed = max(0, place.owed - 1)
        place.has_delivered = True
        self._anything_delivered = True

    def _send_games(self, place: SupervisedWorker) -> None:
        place.games_sent += 1
        self._communicator.send_games(place.worker, place.played)

    def _replace(self, place: SupervisedWorker, reason: str, what: str) -> None:
        """Remove a worker's process and say so, and when there will be another one."""
        version = self._communicator.word(place.worker, Word.WEIGHTS_VERSION)
        game = self._communicator.word(place.worker, Word.GAME_NUMBER)
        has_played = self._communicator.word(place.worker, Word.STEPS) > 0
        self._remove(place, reason)
        when = f"in game {game} with weights version {version}" if has_played else "before its first move"
        self._notice(f"worker {place.worker} {what} {when}; {self._then(place)}")

    def _then(self, place: SupervisedWorker) -> str:
        """Decide how it goes on in a place without a process, and say it."""
        seconds, limits = place.ended(), self._supervision
        if seconds is not None:
            return f"restart {place.incarnation + 1} in {seconds:g} s"
        return (
            f"given up after {limits.restarts} restarts in {limits.window_seconds / 60:g} minutes, "
            f"tried again in {limits.retry_seconds:g} s"
        )

    def _remove(self, place: SupervisedWorker, reason: str) -> None:
        """End a process, if it has not ended, and count what it has done."""
        process, worker = place.process, place.worker
        assert process is not None
        process.kill()
        process.join(_LEAVE_SECONDS)
        self.history.ended(self.status(place))
        self.ledger.shown(worker, self._communicator.word(worker, Word.STEPS))
        self.ledger.end(worker, reason)
        self._communicator.close(worker)
        place.process = None
        if process.exitcode is not None:
            process.close()


@contextmanager
def _fork_server_answers_within(seconds: float) -> Iterator[None]:
    """Kill a fork server that is stopped or hangs, so that who waits for it inside gets an EOFError."""
    pid = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    if pid is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _ensure_fork_server() -> None:
    """Start the fork server, if there is none, deaf to what a terminal sends to every process of the run.

    By itself it is so only against SIGINT, and only after it has loaded torch.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        for start in (resource_tracker.ensure_running, forkserver.ensure_running):
            signal.pthread_sigmask(
                signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP)
            )  # the tracker unblocks one
            start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
