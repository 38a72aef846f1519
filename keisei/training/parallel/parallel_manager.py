"""ParallelManager: worker processes that play, looked after, and what they have played.

    with ParallelManager(config, agent) as manager:
        while training:
            played = manager.collect_experiences(4096)
            ...                                            # the agent learns from [p.segment for p in played]
            manager.synchronize_models()

There are no threads here. Workers are looked after whenever one of the methods is called; who does something
long meanwhile calls `supervise` now and then, so that a worker that dies is replaced at once.
"""

import atexit
import multiprocessing
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from multiprocessing import forkserver, resource_tracker
from types import TracebackType
from typing import Any, Self

from keisei.config_schema import AppConfig, validated
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent
from keisei.core.segment import Segment
from keisei.shogi.encoding import PACKED_BYTES
from keisei.training.parallel.account import REASONS, Account, Ledger
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
from keisei.training.parallel.history import History
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.place import Place, Supervision, cause_of_death, resident_bytes
from keisei.training.parallel.plan import begin_games, number_of_workers
from keisei.training.parallel.self_play_worker import SelfPlayWorker, work
from keisei.training.parallel.status import WorkerStatus
from keisei.training.rollout import SavedGames, SelfPlay, next_number

_LOOK_SECONDS = 0.1  # between two looks at the workers' signs of life
_LEAVE_SECONDS = 2.0  # for a worker to end by itself
_SAME_FAILURES = 3
PATIENCE = Supervision()


class WorkerError(RuntimeError):
    """Workers cannot play: the same exception ended them again and again before they delivered anything."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"workers fail at their start: {failure.error}")
        self.failure = failure
        self.add_note(f"in the worker:\n{failure.traceback}")


def say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)


class ParallelManager:
    """Workers that play with an agent's weights.

    games: where the workers go on, one for each, as `save_games` returned them; new games if None.
    notice: is told, in one line, what a person should know. supervision: how patient to be with workers.
    worker: what plays, with further arguments for it; for those who want another one.
    """

    def __init__(
        self,
        config: AppConfig,
        agent: PPOAgent,
        *,
        games: Sequence[SavedGames] | None = None,
        notice: Callable[[str], None] = say,
        supervision: Supervision = PATIENCE,
        worker: type[SelfPlayWorker] = SelfPlayWorker,
        worker_arguments: Sequence[Any] = (),
    ) -> None:
        self.config = validated(config)
        self.agent = agent
        self._notice = notice
        self._supervision = supervision
        self._worker, self._worker_arguments = worker, tuple(worker_arguments)
        parallel, count = self.config.training.parallel, number_of_workers(self.config)
        self._streams = parallel.episodes_per_worker
        self._timeout, self._lag = parallel.worker_timeout, parallel.max_policy_lag
        self._oldest = parallel.max_policy_lag + parallel.model_sync_interval - 1  # in updates
        self._longest = -(-self.config.training.steps_per_epoch // (count * self._streams))
        saved = begin_games(self.config, count) if games is None else list(games)
        if len(saved) != count:
            raise ValueError(f"games of {len(saved)} workers for {count} workers")
        self._places = [Place(worker, games, supervision) for worker, games in enumerate(saved)]
        self._running = self._paused = False
        self._queue: deque[WorkerSegment] = deque()
        self._taken: list[WorkerSegment] = []  # from the queue, by a collection that is under way
        self._ledger = Ledger()
        self._start_failures: Counter[str] = Counter()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["keisei.training.parallel.self_play_worker"])
        self._synchronizer = ModelSynchronizer(
            agent.network, interval=parallel.model_sync_interval, compressed=parallel.compression_enabled
        )
        self._communicator = WorkerCommunicator(
            slots=parallel.queue_maxsize,
            slot_bytes=Segment.size(self._longest, self._streams, PACKED_BYTES),
            shared=parallel.use_shared_memory,
        )
        self._serial_since: float | None = None
        self._history = History(count)

    # Start and end

    def start_workers(self) -> None:
        """Start the workers and wait until they can play."""
        if self._running:
            raise RuntimeError("the workers are running already")
        self._running = True
        atexit.register(self.shutdown)
        try:
            self._publish()
            while any(place.phase in ("starting", "restarting") for place in self._places):
                self.supervise(_LOOK_SECONDS)
        except BaseException:
            self.shutdown()
            raise

    def shutdown(self) -> None:
        """Stop the workers, by force where they do not stop by themselves; a second call does nothing."""
        if not self._running:
            return
        self._running = False
        atexit.unregister(self.shutdown)
        for place in self._places:
            if place.process is not None:
                self._communicator.send_command(place.worker, Kind.STOP)
        deadline = time.monotonic() + _LEAVE_SECONDS
        for place in self._places:
            if place.process is not None:
                place.process.join(max(0.0, deadline - time.monotonic()))
                self._remove(place, "shutdown")
        self._discard_waiting("shutdown")
        self._synchronizer.close()

    def __enter__(self) -> Self:
        self.start_workers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    # Experience

    def collect_experiences(
        self, target_steps: int, *, before_wait: Callable[[], None] = lambda: None
    ) -> list[WorkerSegment]:
        """Return segments of at least so many moves together, by worker.

        With max_policy_lag 0 all are played now, else the workers play on when this returns, and what gets
        older than that many updates (beyond what model_sync_interval makes them) is dropped. before_wait is
        called some times each second; what it raises ends the waiting, and nothing is lost. If no worker is
        left, this process plays.
        """
        self._check_can_collect(target_steps)
        steps = min(self._longest, -(-target_steps // (len(self._places) * self._streams)))
        needed = -(-target_steps // (steps * self._streams))
        taken = self._taken = []
        try:
            while True:
                self._take(taken, target_steps)
                missing = max(0, target_steps - sum(len(one.segment) for one in taken))
                # Not a number of segments: an earlier call may have asked for shorter ones.
                self._ask(steps, -(-missing // (steps * self._streams)) + needed * self._lag, taken)
                if not missing:
                    break
                before_wait()
                if any(place.can_be_relied_on() for place in self._places):
                    self._note_parallel()
                    self.supervise(_LOOK_SECONDS)
                else:
                    self._note_serial()
                    taken.append(self._play_here(steps, len(taken), before_wait))
                    self.supervise()
        except BaseException:
            self._queue.extendleft(reversed(taken))
            raise
        finally:
            self._taken = []
        for one in taken:
            self._places[one.worker].saved = one.saved
            self._ledger.trained(len(one.segment))
        self._history.took(taken, self.agent.version)
        return sorted(taken, key=lambda one: one.worker)  # so that it does not matter who was the fastest

    def synchronize_models(self) -> bool:
        """Give the workers the agent's weights, if model_sync_interval updates have passed; tell whether."""
        if not self._synchronizer.is_due(self.agent.version):
            return False
        self._publish()
        return True

    def give_back(self, steps: int) -> None:
        """Say that so many moves that were collected are not trained on, because the learner was stopped."""
        self._ledger.give_back(steps)

    def save_games(self) -> list[SavedGames]:
        """Return the games of each worker as they stood after the last segment that was collected."""
        return [place.saved for place in self._places]

    # Control

    def pause(self) -> None:
        """Let the workers rest, in the middle of a segment if need be."""
        self._command_all(Kind.PAUSE)
        self._paused = True

    def resume(self) -> None:
        """Let the workers play on."""
        self._command_all(Kind.RESUME)
        self._paused = False

    def reset(self) -> None:
        """Begin new games everywhere; what is under way of the old ones is discarded."""
        self._check_running()
        first = next_number(place.played for place in self._places)
        games = begin_games(self.config, len(self._places), first)
        for place, begun in zip(self._places, games, strict=True):
            place.saved = place.played = begun
            place.owed = 0
            if place.phase == "running":
                self._send_games(place)
        self._discard_waiting("reset")

    def supervise(self, timeout: float = 0.0) -> None:
        """Take in what workers have sent and replace those that are gone; wait so long for one to send.

        The same exception three times in workers that had delivered nothing yet is a WorkerError.
        """
        self._check_running()
        for place in self._places:
            if place.is_due():
                self._launch(place)
        due = [place.due_at - time.monotonic() for place in self._places if place.process is None]
        sentinels = [place.process.sentinel for place in self._places if place.process is not None]
        self._communicator.wait(sentinels, min([timeout, *due]))
        for place in self._places:
            if place.process is not None:
                self._look_at(place)
        self._history.looked(len(self._queue))

    # What is known

    @property
    def is_running(self) -> bool:
        """The workers were started and not shut down."""
        return self._running

    @property
    def workers(self) -> list[WorkerStatus]:
        """What is known of each worker now."""
        return [self._status(place) for place in self._places]

    def account(self) -> Account:
        """Return where every move has gone; ConservationError if one is missing or counted twice."""
        asked_for = {}
        for place in self._places:
            if place.process is not None:
                # Its own count first: what it makes after that is not expected to be anywhere.
                self._ledger.shown(place.worker, self._communicator.word(place.worker, Word.STEPS))
                asked_for[place.worker] = self._communicator.steps_asked_for(place.worker, self._streams)
        queued = sum(len(one.segment) for one in (*self._queue, *self._taken))
        return self._ledger.check(queued=queued, asked_for=asked_for)

    def get_statistics(self) -> dict[str, Any]:
        """Return everything that is counted and measured, as plain values."""
        workers = self.workers
        account = self.account()
        return {
            "is_running": self._running,
            "is_serial": self._serial_since is not None,
            "active_workers": _active(workers),
            "total_steps_collected": account.trained,
            "total_episodes_collected": self._history.games,
            "queue_size": len(self._queue),
            "queue_depth": list(self._history.queue_depth),
            "steps": {
                "generated": account.generated,
                "trained": account.trained,
                "in_flight": account.in_flight,
                "discarded": dict(account.discarded),
            },
            "policy_lag": dict(sorted(self._history.lags.items())),
            "replacement_seconds": list(self._history.replacement_seconds),
            "synchronization": asdict(self._synchronizer.statistics()),
            "channels": [asdict(channel) for channel in self._communicator.status()],
            "worker_stats": [asdict(worker) for worker in workers],
            "worker_seconds": [self._seconds(place) for place in self._places],
        }

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call, with the names of keisei.training.metrics."""
        account, sync, workers = self.account(), self._synchronizer.statistics(), self.workers
        metrics = {
            "parallel/active_workers": _active(workers),
            "parallel/utilization": sum(worker.utilization for worker in workers) / len(workers),
            "parallel/weights_version": sync.version,
            "parallel/steps_generated": account.generated,
            "parallel/steps_trained": account.trained,
            "parallel/steps_in_flight": account.in_flight,
            "parallel/steps_discarded": sum(account.discarded.values()),
            "parallel/sync_count": sync.count,
            "parallel/sync_bytes": sync.bytes,
            "parallel/sync_milliseconds": sync.milliseconds,
            "parallel/memory_bytes": sum(worker.memory_bytes for worker in workers),
            **{f"parallel/discarded_{reason}": account.discarded[reason] for reason in REASONS[:-2]},
            **self._history.lap(),
        }
        for place in self._places:
            if place.process is not None:
                self._history.mark(place.worker, self._communicator.word(place.worker, Word.BUSY_NANOSECONDS))
        return metrics

    # Inside: collecting

    def _check_running(self) -> None:
        if not self._running:
            raise RuntimeError("the workers are not running; call start_workers() first")

    def _check_can_collect(self, target_steps: int) -> None:
        self._check_running()
        if target_steps < 1:
            raise ValueError(f"target_steps is {target_steps}, expected at least 1")
        if self._paused:
            raise RuntimeError("the workers are paused; call resume() first")
        if self.agent.version - self._synchronizer.version > self._oldest:
            raise RuntimeError(
                f"the workers have the weights of update {self._synchronizer.version}, the agent is at "
                f"{self.agent.version}; call synchronize_models() after learning"
            )

    def _take(self, taken: list[WorkerSegment], target_steps: int) -> None:
        """Move segments from the queue to those taken, until there are enough; drop those too old."""
        while self._queue and sum(len(one.segment) for one in taken) < target_steps:
            one = self._queue.popleft()
            if self.agent.version - one.version > self._oldest:
                self._ledger.discard_queued(len(one.segment), "stale")
            else:
                taken.append(one)

    def _discard_waiting(self, reason: str) -> None:
        for one in (*self._taken, *self._queue):
            self._ledger.discard_queued(len(one.segment), reason)
        self._taken.clear()
        self._queue.clear()

    def _ask(self, steps: int, wanted: int, taken: Sequence[WorkerSegment]) -> None:
        """See to it that so many segments wait or are asked for, by turns of all workers."""
        reliable = [place for place in self._places if place.can_be_relied_on()]
        waiting = Counter(one.worker for one in self._queue)
        share = Counter(one.worker for one in taken) + waiting
        for _ in range(wanted - len(self._queue) - sum(place.owed for place in reliable)):
            if reliable:
                least = min(reliable, key=lambda place: (share[place.worker] + place.owed, place.worker))
                least.owed += 1
        tickets = {channel.worker: channel.tickets for channel in self._communicator.status()}
        limit = self.config.training.parallel.queue_maxsize
        for place in reliable:
            if place.phase == "running" and not place.games_sent:
                under_way = waiting[place.worker] + tickets[place.worker]
                for _ in range(min(place.owed - tickets[place.worker], limit - under_way)):
                    self._communicator.grant(place.worker, steps, self._synchronizer.version)

    def _play_here(self, steps: int, turn: int, before_wait: Callable[[], None]) -> WorkerSegment:
        """Play a segment of a worker's games in this process."""
        place = self._places[turn % len(self._places)]
        self_play = SelfPlay.restore(place.played, self.config.env)
        collected = self_play.rollout(self.agent, steps, before_step=before_wait)
        place.played = self_play.save()
        self._ledger.played_here(len(collected.segment))
        self._history.serial_steps += len(collected.segment)
        return WorkerSegment(
            collected.segment,
            collected.results,
            place.played,
            place.worker,
            incarnation=-1,
            sequence=turn,
            version=self.agent.version,
        )

    def _note_serial(self) -> None:
        if self._serial_since is None:
            self._serial_since = time.monotonic()
            self._notice(
                "no worker is left: the learner plays itself, serially; workers are tried again every "
                f"{self._supervision.retry_seconds:g} s"
            )

    def _note_parallel(self) -> None:
        if self._serial_since is not None:
            seconds = time.monotonic() - self._serial_since
            self._serial_since = None
            self._notice(f"workers play again, after {seconds:.1f} s of serial play")

    def _publish(self) -> None:
        self._synchronizer.publish(self.agent.network, self.agent.version)

    # Inside: processes

    def _command_all(self, command: Kind) -> None:
        self._check_running()
        for place in self._places:
            if place.phase == "running":
                self._communicator.send_command(place.worker, command)

    def _launch(self, place: Place) -> None:
        """Start a process in a place; a machine that cannot is one more reason to wait and try again."""
        try:
            end = self._communicator.open(place.worker, place.incarnation + 1)
        except OSError as error:  # no memory
            self._notice(f"worker {place.worker} cannot be started ({error}); {self._then(place)}")
            return
        process = self._context.Process(
            target=work,
            args=(
                self._worker,
                end,
                self._synchronizer.reader(),
                self.config,
                _workers_numerics(self.agent),
                *self._worker_arguments,
            ),
            name=f"keisei worker {place.worker}",
            daemon=True,
        )
        try:
            _ensure_fork_server()
            process.start()
        except (OSError, EOFError) as error:  # no process to be had, or the fork server died over it
            self._communicator.close(place.worker)
            self._notice(f"worker {place.worker} cannot be started ({error}); {self._then(place)}")
            return
        end.close()
        self._ledger.begin(place.worker)
        self._history.mark(place.worker, 0)
        place.started(process)

    def _look_at(self, place: Place) -> None:
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
        beats = self._communicator.word(place.worker, Word.BEATS)
        if died:
            self._replace(place, "died", f"died ({cause_of_death(process.exitcode)})")
        elif place.is_silent(beats, self._timeout):
            seconds = place.patience(self._timeout)
            self._replace(place, "hung", f"gave no sign of life for {seconds:g} s and was killed")

    def _hear(self, place: Place, kind: Kind, body: bytes) -> None:
        """Act on a message of a worker; DamagedError if it is none that it can have to say now."""
        worker = place.worker
        if kind is Kind.READY:
            if place.phase != "starting":
                raise DamagedError("READY, though it was ready")
            was_on_trial, seconds = place.on_trial, place.is_ready()
            if seconds is not None:
                self._history.replacement_seconds.append(seconds)
            if was_on_trial:
                self._notice(f"worker {worker} is back")
            self._send_games(place)
            if self._paused:
                self._communicator.send_command(worker, Kind.PAUSE)
        elif kind is Kind.GAMES_TAKEN:
            if not place.games_sent:
                raise DamagedError("GAMES_TAKEN, though it was sent none")
            place.games_sent -= 1
            self._communicator.void_tickets(worker)
            self._ledger.shown(worker, self._communicator.word(worker, Word.STEPS))
            self._ledger.abandon(worker, "reset")
        elif kind is Kind.SEGMENT:
            self._receive_segment(place, self._communicator.take_segment(worker, body))
        elif kind is Kind.FAILED:
            failure = read_failure(body)
            place.last_error = failure.traceback
            at_start = not place.has_delivered
            self._replace(place, "failed", f"failed ({failure.error})")
            if at_start:
                self._start_failures[failure.error] += 1
                if self._start_failures[failure.error] >= _SAME_FAILURES:
                    raise WorkerError(failure)
        elif kind is not Kind.STOPPED:
            raise DamagedError(f"{kind.name}, which only the learner says")

    def _receive_segment(self, place: Place, one: WorkerSegment) -> None:
        steps = len(one.segment)
        self._ledger.shown(place.worker, self._communicator.word(place.worker, Word.STEPS))
        self._ledger.delivered(place.worker, steps)
        if place.games_sent:  # it was played before the worker heard of other games
            self._ledger.discard_queued(steps, "reset")
            return
        self._queue.append(one)
        place.played = one.saved
        place.owed = max(0, place.owed - 1)
        place.has_delivered = True
        self._start_failures.clear()

    def _send_games(self, place: Place) -> None:
        place.games_sent += 1
        self._communicator.send_games(place.worker, place.played)

    def _replace(self, place: Place, reason: str, what: str) -> None:
        """Remove a worker's process and say so, and when there will be another one."""
        version = self._communicator.word(place.worker, Word.WEIGHTS_VERSION)
        game = self._communicator.word(place.worker, Word.GAME_NUMBER)
        self._remove(place, reason)
        then = self._then(place)
        self._notice(f"worker {place.worker} {what} in game {game} with weights version {version}; {then}")

    def _then(self, place: Place) -> str:
        """Decide how it goes on in a place without a process, and say it."""
        seconds, limits = place.ended(), self._supervision
        if seconds is not None:
            self._history.restarts += 1
            return f"restart {place.restarts} in {seconds:g} s"
        return (
            f"given up after {limits.restarts} restarts in {limits.window_seconds / 60:g} minutes, "
            f"tried again in {limits.retry_seconds:g} s"
        )

    def _remove(self, place: Place, reason: str) -> None:
        """End a process, if it has not ended, and count what it has done."""
        process, worker = place.process, place.worker
        assert process is not None
        process.kill()
        process.join(_LEAVE_SECONDS)
        self._history.ended(self._status(place))
        self._ledger.shown(worker, self._communicator.word(worker, Word.STEPS))
        self._ledger.end(worker, reason)
        self._communicator.close(worker)
        place.process = None
        if process.exitcode is not None:
            process.close()

    def _seconds(self, place: Place) -> dict[str, float]:
        """Return what the process in a place has spent its time with, nothing if there is none."""
        if place.process is None:
            return {}
        return {
            name.removesuffix("_NANOSECONDS").lower(): self._communicator.word(place.worker, word) / 1e9
            for name, word in Word.__members__.items()
            if name.endswith("_NANOSECONDS")
        }

    def _status(self, place: Place) -> WorkerStatus:
        steps, games, version = self._history.totals[place.worker]
        utilization = 0.0
        state, pid = place.state(Activity.STARTING), None
        if place.process is not None:
            words = {word: self._communicator.word(place.worker, word) for word in Word}
            steps, games = steps + words[Word.STEPS], games + words[Word.GAMES]
            version = max(version, words[Word.WEIGHTS_VERSION])
            utilization = self._history.utilization(place.worker, words[Word.BUSY_NANOSECONDS])
            state, pid = place.state(Activity(words[Word.STATE])), place.process.pid
        return WorkerStatus(
            worker=place.worker,
            state=state if self._running else "stopped",
            incarnation=place.incarnation,
            pid=pid,
            utilization=utilization,
            steps=steps,
            games=games,
            weights_version=version,
            restarts=place.restarts,
            memory_bytes=resident_bytes(pid),
            last_error=place.last_error,
        )


def _active(workers: Sequence[WorkerStatus]) -> int:
    """Return how many workers play or could."""
    return sum(worker.state in ("playing", "waiting", "paused") for worker in workers)


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


def _workers_numerics(agent: PPOAgent) -> Numerics:
    """Return the formats for the workers, who play on the CPU: the learner's, if it computes there too."""
    if agent.device.type == "cpu":
        return replace(agent.numerics, compiled=False)
    return Numerics(why="on the CPU")
