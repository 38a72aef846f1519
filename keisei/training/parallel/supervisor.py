"""Supervisor: starts, polls and replaces the worker processes. `supervise` is the whole event loop."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from types import FunctionType
from typing import Any

from keisei.config.schema import AppConfig
from keisei.core.device import cores
from keisei.core.numerics import Numerics
from keisei.training.parallel import fork_server_socket
from keisei.training.parallel.communication import (
    Activity,
    Failure,
    Kind,
    Word,
    WorkerCommunicator,
    read_failure,
)
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_statistics import ParallelStatistics
from keisei.training.parallel.segment_orders import SegmentOrders
from keisei.training.parallel.self_play_worker import SelfPlayWorker, work
from keisei.training.parallel.supervised_worker import (
    SupervisedWorker,
    Supervision,
    cause_of_death,
    resident_bytes,
)
from keisei.training.parallel.wire import DamagedError
from keisei.training.parallel.worker_shares import ShareTasks
from keisei.training.parallel.worker_status import WorkerStatus

_COMMAND = "keisei.cli"  # where the `keisei` command begins
_LEAVE_SECONDS = 2.0  # for a worker to exit by itself
_SAME_FAILURES = 3
_FEWEST_AT_ONCE = 4  # processes that start side by side, on one core too


class WorkerError(RuntimeError):
    """Workers cannot play: the same exception kept ending them before any had delivered anything."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"workers fail on startup: {failure.error}")
        self.failure = failure
        self.add_note(f"in the worker:\n{failure.traceback}")


class Supervisor:
    """The processes of all workers; what they deliver goes to `orders`.

    start: what a process gets besides its end of the channel: worker class, config, numeric formats and
    further arguments. shares: is told of gradients, None if workers only play.
    """

    def __init__(
        self,
        workers: int,
        orders: SegmentOrders,
        communicator: WorkerCommunicator,
        synchronizer: ModelSynchronizer,
        statistics: ParallelStatistics,
        start: tuple[type[SelfPlayWorker], AppConfig, Numerics, tuple[Any, ...]],
        *,
        shares: ShareTasks | None,
        timeout: float,
        supervision: Supervision,
        notice: Callable[[str], None],
        log: Callable[[str], None],
    ) -> None:
        self._workers = [SupervisedWorker(number, supervision) for number in range(workers)]
        self._orders, self._communicator, self._synchronizer = orders, communicator, synchronizer
        self._statistics = statistics
        self._start, self._shares = start, shares
        self._timeout, self._supervision = timeout, supervision
        self._notice, self._log = notice, log
        self._paused = False
        self._failures_at_start: Counter[str] = Counter()
        self._anything_delivered = False
        self._context = multiprocessing.get_context("forkserver")
        preload = ["keisei.training.parallel.self_play_worker"]
        if not self._start[2].native or _main_may_load_torch():
            preload.append("keisei.core.network_policy")  # torch, which workers would each load themselves
        # In another thread the kernel would take the end of that thread for the end of the process.
        if threading.current_thread() is threading.main_thread():
            preload.insert(0, "keisei.training.parallel.fork_server_first")
        self._context.set_forkserver_preload(preload)

    # Commands

    def supervise(self, timeout: float, wake: Collection[int] = ()) -> None:
        """Receive what workers have sent, waiting up to `timeout` seconds, and replace those gone.

        wake: file descriptors that end the wait when they can be read.
        """
        self._launch_some()
        # Those that are due by now wait for others to be ready, which wakes this process.
        later = [
            worker.due_at - time.monotonic()
            for worker in self._workers
            if worker.process is None and not worker.is_due()
        ]
        sentinels = [worker.process.sentinel for worker in self._workers if worker.process is not None]
        self._communicator.wait([*sentinels, *wake], min([timeout, *later]))
        for worker in self._with_process():
            self._look_at(worker)
        self._statistics.looked(self._orders.waiting)

    def pause(self) -> None:
        """Pause all workers, including those started later."""
        self._command(Kind.PAUSE)

    def resume(self) -> None:
        """Resume all workers."""
        self._command(Kind.RESUME)

    def dismiss(self) -> None:
        """End all processes, by force if necessary."""
        for worker in self._with_process():
            self._communicator.send_command(worker.number, Kind.STOP)
        deadline = time.monotonic() + _LEAVE_SECONDS
        try:
            for worker in self._with_process():
                assert worker.process is not None
                worker.process.join(max(0.0, deadline - time.monotonic()))
        finally:  # even after another Ctrl-C
            for worker in self._with_process():
                self._remove(worker, "shutdown")

    # Status

    @property
    def paused(self) -> bool:
        """Whether the workers are paused."""
        return self._paused

    @property
    def running(self) -> list[int]:
        """The workers that can be asked to play now."""
        return [worker.number for worker in self._workers if worker.phase == "running"]

    @property
    def reliable(self) -> list[int]:
        """The workers that play or soon will, so that their segments are worth waiting for."""
        return [worker.number for worker in self._workers if worker.can_be_relied_on()]

    def statuses(self) -> list[WorkerStatus]:
        """Return the current status of each worker."""
        return [self._status(worker) for worker in self._workers]

    def seconds(self) -> list[dict[str, float]]:
        """Return how each worker's processes have spent their time so far, by phase."""
        return [self._seconds(worker) for worker in self._workers]

    def mark_utilization(self) -> None:
        """Measure the workers' utilization from now on."""
        for worker in self._with_process():
            busy = self._communicator.word(worker.number, Word.BUSY_NANOSECONDS)
            self._statistics.mark(worker.number, busy)

    def _with_process(self) -> Iterator[SupervisedWorker]:
        for worker in self._workers:
            if worker.process is not None:
                yield worker

    def _status(self, worker: SupervisedWorker) -> WorkerStatus:
        steps, games, version = self._statistics.totals[worker.number]
        utilization = 0.0
        state, pid = worker.state(None), None
        if worker.process is not None:
            words = {word: self._communicator.word(worker.number, word) for word in Word}
            steps, games = steps + words[Word.STEPS], games + words[Word.GAMES]
            version = max(version, words[Word.WEIGHTS_VERSION])
            utilization = self._statistics.utilization(worker.number, words[Word.BUSY_NANOSECONDS])
            state, pid = worker.state(words[Word.STATE]), worker.process.pid
        return WorkerStatus(
            worker=worker.number,
            state=state,
            incarnation=worker.incarnation,
            pid=pid,
            utilization=utilization,
            steps=steps,
            games=games,
            weights_version=version,
            restarts=max(0, worker.incarnation),
            memory_bytes=resident_bytes(pid),
            last_error=worker.last_error,
        )

    def _seconds(self, worker: SupervisedWorker) -> dict[str, float]:
        before, seconds = self._statistics.seconds[worker.number], {}
        for name, word in Word.__members__.items():
            if name.endswith("_NANOSECONDS"):
                phase = name.removesuffix("_NANOSECONDS").lower()
                shown = 0 if worker.process is None else self._communicator.word(worker.number, word)
                seconds[phase] = before.get(phase, 0.0) + shown / 1e9
        return seconds

    # Processes

    def _command(self, command: Kind) -> None:
        self._paused = command is Kind.PAUSE
        for number in self.running:
            self._communicator.send_command(number, command)

    def _launch_some(self) -> None:
        """Start processes that are due, as long as not too many are starting: they share the cores.

        So the caller gets to look for signals now and then, however many workers there are.
        """
        starting = sum(worker.phase == "starting" for worker in self._workers)
        room = max(0, processes_at_once() - starting)
        for worker in [worker for worker in self._workers if worker.is_due()][:room]:
            self._launch(worker)

    def _launch(self, worker: SupervisedWorker) -> None:
        """Start a process; if the machine cannot, wait and try again later."""
        try:
            end = self._communicator.open(worker.number, worker.incarnation + 1)
        except OSError as error:  # no memory
            self._notice(f"worker {worker.number} cannot be started ({error}); {self._then(worker)}")
            return
        player, config, numerics, arguments = self._start
        process = self._context.Process(
            target=work,
            args=(player, end, self._synchronizer.reader(), config, numerics, *arguments),
            name=f"keisei worker {worker.number}",
            daemon=True,
        )
        try:
            _ensure_fork_server()
            with _fork_server_answers_within(self._supervision.start_seconds):
                process.start()
        except (OSError, EOFError) as error:  # no more processes, or the fork server died trying
            self._communicator.close(worker.number)
            self._notice(f"worker {worker.number} cannot be started ({error}); {self._then(worker)}")
            return
        end.close()
        worker.started(process)
        self._orders.process_started(worker.number)
        self._statistics.started(worker.number, replaces=worker.incarnation > 0)

    def _look_at(self, worker: SupervisedWorker) -> None:
        """Receive what a worker has sent; replace it if it is gone."""
        process = worker.process
        assert process is not None
        # Checked before reading, so that everything it sent before it died is read.
        died = not process.is_alive()
        try:
            for kind, body in self._communicator.receive(worker.number):
                self._hear(worker, kind, body)
                if worker.process is None:
                    return
        except EOFError:
            process.join(1.0)
            died = True
        except DamagedError as error:
            self._replace(worker, "damaged", f"sent damaged data ({error})")
            return
        if died:
            self._replace(worker, "died", f"died ({cause_of_death(process.exitcode)})")
        elif worker.is_silent(self._sign_of_life(worker.number), self._timeout):
            seconds = worker.patience(self._timeout)
            self._replace(worker, "hung", f"gave no sign of life for {seconds:g} s and was killed")

    def _sign_of_life(self, number: int) -> int:
        """Return a number that keeps changing while a worker does its job.

        Beats are not enough for a worker that claims to be waiting although it has a ticket: it must play.
        """
        waits = self._communicator.word(number, Word.STATE) == Activity.WAITING
        if waits and self._communicator.tickets(number):
            return -1 - self._communicator.word(number, Word.STEPS)
        return self._communicator.word(number, Word.BEATS)

    def _hear(self, worker: SupervisedWorker, kind: Kind, body: bytes) -> None:
        """Handle a worker's message; raise DamagedError if it may not send that now."""
        if kind is Kind.READY:
            self._is_ready(worker)
        elif kind is Kind.GAMES_TAKEN:
            self._orders.games_taken(worker.number)
        elif kind is Kind.SEGMENT:
            if self._orders.receive(worker.number, body):
                worker.has_delivered = self._anything_delivered = True
        elif kind is Kind.LEARNED:
            if self._shares is None:
                raise DamagedError("LEARNED, but workers only play")
            self._shares.learned(worker.number, body)
        elif kind is Kind.FAILED:
            failure = read_failure(body)
            worker.last_error = failure.traceback
            self._log(f"worker {worker.number}, process {worker.incarnation}:\n{failure.traceback}")
            self._replace(worker, "failed", f"failed ({failure.error})")
            self._failures_at_start[failure.error] += 1
            if not self._anything_delivered and self._failures_at_start[failure.error] >= _SAME_FAILURES:
                raise WorkerError(failure)
        elif kind is not Kind.STOPPED:
            raise DamagedError(f"{kind.name}, which only the learner sends")

    def _is_ready(self, worker: SupervisedWorker) -> None:
        """Send a ready process its games, and PAUSE if the workers are paused."""
        if worker.phase != "starting":
            raise DamagedError("READY, but it was ready already")
        was_on_trial, seconds = worker.on_trial, worker.is_ready()
        if seconds is not None:
            self._statistics.replacement_seconds.append(seconds)
        if was_on_trial:
            self._notice(f"worker {worker.number} is back")
        self._orders.send_games(worker.number)
        if self._paused:
            self._communicator.send_command(worker.number, Kind.PAUSE)

    def _replace(self, worker: SupervisedWorker, reason: str, what: str) -> None:
        """Remove a worker's process and report it, with the time of the next attempt."""
        version = self._communicator.word(worker.number, Word.WEIGHTS_VERSION)
        game = self._communicator.word(worker.number, Word.GAME_NUMBER)
        has_played = self._communicator.word(worker.number, Word.STEPS) > 0
        self._remove(worker, reason)
        when = f"in game {game} with weights version {version}" if has_played else "before its first move"
        self._notice(f"worker {worker.number} {what} {when}; {self._then(worker)}")

    def _then(self, worker: SupervisedWorker) -> str:
        """Decide what happens to a worker without a process, and return it in words."""
        seconds, limits = worker.ended(), self._supervision
        if seconds is not None:
            return f"restart {worker.incarnation + 1} in {seconds:g} s"
        self._orders.cancel(worker.number)
        return (
            f"given up after {limits.restarts} restarts in {limits.window_seconds / 60:g} minutes, "
            f"retrying in {limits.retry_seconds:g} s"
        )

    def _remove(self, worker: SupervisedWorker, reason: str) -> None:
        """End a process if it is still running, and count what it did."""
        process = worker.process
        assert process is not None
        process.kill()
        process.join(_LEAVE_SECONDS)
        self._statistics.ended(self._status(worker), self._seconds(worker))
        self._orders.process_ended(worker.number, reason)
        if self._shares is not None:
            self._shares.process_ended(worker.number)
        self._communicator.close(worker.number)
        worker.process = None
        if process.exitcode is not None:
            process.close()


def processes_at_once() -> int:
    """Return how many processes may be starting at the same time."""
    return max(_FEWEST_AT_ONCE, 2 * cores())


@contextmanager
def _fork_server_answers_within(seconds: float) -> Iterator[None]:
    """Kill the fork server if it is stopped or hung, so that code waiting for it inside gets an EOFError."""
    pid = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    if pid is None:
        yield
        return

    def kill() -> None:
        with suppress(ProcessLookupError):  # it has ended meanwhile, and another one is being started
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # otherwise its thread would linger


def _ensure_fork_server() -> None:
    """Start the fork server if needed, with the signals that a terminal sends to all processes blocked.

    By itself it ignores only SIGINT, and only after it has loaded torch.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        for start in (resource_tracker.ensure_running, fork_server_socket.ensure_running):
            # Each time: starting the tracker unblocks one of them.
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
            start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _main_may_load_torch() -> bool:
    """Return whether the main module may load torch; every new process imports that module again.

    The `keisei` command does not, and a notebook's or `python -c`'s module is not imported.
    """
    main = vars(sys.modules["__main__"])
    command = any(isinstance(value, FunctionType) and value.__module__ == _COMMAND for value in main.values())
    return "__file__" in main and not command
