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
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from types import TracebackType
from typing import Any, Self

from keisei.config.schema import AppConfig, validated
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent
from keisei.core.segment import SegmentShape
from keisei.core.self_play import SavedGames, SelfPlay, next_number
from keisei.training.parallel.communication import (
    Kind,
    Word,
    WorkerCommunicator,
    WorkerSegment,
)
from keisei.training.parallel.ledger import REASONS, Account
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.self_play_worker import SelfPlayWorker
from keisei.training.parallel.supervised_worker import Supervision
from keisei.training.parallel.supervisor import Supervisor
from keisei.training.parallel.worker_setup import begin_games, number_of_workers
from keisei.training.parallel.worker_status import WorkerStatus

_LOOK_SECONDS = 0.1  # between two looks at the workers' signs of life
PATIENCE = Supervision()


class _ResetError(Exception):
    """The games that the learner was playing itself were reset."""


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
        self._notice, self._supervision = notice, supervision
        parallel, count = self.config.training.parallel, number_of_workers(self.config)
        self._streams, self._lag = parallel.episodes_per_worker, parallel.max_policy_lag
        self._oldest = parallel.max_policy_lag + parallel.model_sync_interval - 1  # in updates
        self._longest = -(-self.config.training.steps_per_epoch // (count * self._streams))
        saved = begin_games(self.config, count) if games is None else list(games)
        if len(saved) != count:
            raise ValueError(f"games of {len(saved)} workers for {count} workers")
        self._synchronizer = ModelSynchronizer(
            agent.network, interval=parallel.model_sync_interval, compressed=parallel.compression_enabled
        )
        self._communicator = WorkerCommunicator(
            slots=parallel.queue_maxsize,
            slot_bytes=SegmentShape(self._longest, self._streams).nbytes,
            shared=parallel.use_shared_memory,
        )
        self._crew = Supervisor(
            saved,
            self._communicator,
            self._synchronizer,
            (worker, self.config, _workers_numerics(agent), tuple(worker_arguments)),
            timeout=parallel.worker_timeout,
            supervision=supervision,
            notice=notice,
        )
        self._running = self._ended = False
        self._taken: list[WorkerSegment] = []  # from the queue, by a collection that is under way
        self._steps = self._longest  # moves of each game in the segments that are asked for
        self._serial_since: float | None = None

    # Start and end

    def start_workers(self, *, before_wait: Callable[[], None] = lambda: None) -> None:
        """Start the workers and wait until they can play; before_wait as for collect_experiences."""
        if self._running or self._ended:
            raise RuntimeError(f"the workers {'are running already' if self._running else 'were shut down'}")
        self._running = True
        atexit.register(self.shutdown)
        try:
            if self._synchronizer.version < self.agent.version:
                self._publish()
            deadline = time.monotonic() + self._supervision.start_seconds
            while self._is_starting(time.monotonic() > deadline):
                before_wait()
                self.supervise(_LOOK_SECONDS)
        except BaseException:
            self.shutdown()
            raise

    def _is_starting(self, late: bool) -> bool:
        """Tell whether somebody is still to come; when it is late, only as long as nobody has."""
        phases = [place.phase for place in self._crew.places if place.can_be_relied_on()]
        return any(phase != "running" for phase in phases) and not (late and "running" in phases)

    def shutdown(self) -> None:
        """Stop the workers, by force where they do not stop by themselves; a second call does nothing."""
        if not self._running:
            return
        self._running, self._ended = False, True
        atexit.unregister(self.shutdown)
        self._crew.dismiss()
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
        steps = min(self._longest, -(-target_steps // (len(self._crew.places) * self._streams)))
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
                if any(place.can_be_relied_on() for place in self._crew.places):
                    self._note_parallel()
                    self.supervise(_LOOK_SECONDS)
                else:
                    self._note_serial()
                    with suppress(_ResetError):
                        taken.append(self._play_here(steps, len(taken), before_wait))
                    self.supervise()
        except BaseException:
            self._crew.queue.extendleft(reversed(taken))
            raise
        finally:
            self._taken = []
        for one in taken:
            self._crew.places[one.worker].saved = one.saved
            self._crew.ledger.trained(len(one.segment))
        self._crew.history.took(taken, self.agent.version)
        return sorted(taken, key=lambda one: one.worker)  # so that it does not matter who was the fastest

    def synchronize_models(self) -> bool:
        """Give the workers the agent's weights, if model_sync_interval updates have passed; tell whether."""
        if not self._synchronizer.is_due(self.agent.version):
            return False
        self._publish()
        return True

    def give_back(self, steps: int) -> None:
        """Say that so many moves that were collected are not trained on, because the learner was stopped."""
        self._crew.ledger.give_back(steps)

    def save_games(self) -> list[SavedGames]:
        """Return the games of each worker as they stood after the last segment that was collected."""
        return [place.saved for place in self._crew.places]

    # Control

    def pause(self) -> None:
        """Let the workers rest, in the middle of a segment if need be."""
        self._check_running()
        self._crew.command(Kind.PAUSE)

    def resume(self) -> None:
        """Let the workers play on."""
        self._check_running()
        self._crew.command(Kind.RESUME)

    def reset(self) -> None:
        """Begin new games everywhere; what is under way of the old ones is discarded."""
        self._check_running()
        first = next_number(place.played for place in self._crew.places)
        self._crew.begin(begin_games(self.config, len(self._crew.places), first))
        self._discard_waiting("reset")

    def supervise(self, timeout: float = 0.0) -> None:
        """Take in what workers have sent and replace those that are gone; wait so long for one to send.

        The same exception three times before any worker has delivered anything is a WorkerError.
        """
        self._check_running()
        self._crew.supervise(timeout)
        self._grant()

    # What is known

    @property
    def is_running(self) -> bool:
        """The workers were started and not shut down."""
        return self._running

    @property
    def workers(self) -> list[WorkerStatus]:
        """What is known of each worker now."""
        known = [self._crew.status(place) for place in self._crew.places]
        return known if self._running else [replace(status, state="stopped") for status in known]

    def account(self) -> Account:
        """Return where every move has gone; ConservationError if one is missing or counted twice."""
        asked_for = {}
        for place in self._crew.there():
            # Its own count first: what it makes after that is not expected to be anywhere.
            self._crew.ledger.shown(place.worker, self._communicator.word(place.worker, Word.STEPS))
            asked_for[place.worker] = self._communicator.steps_asked_for(place.worker, self._streams)
        queued = sum(len(one.segment) for one in (*self._crew.queue, *self._taken))
        return self._crew.ledger.check(queued=queued, asked_for=asked_for)

    def get_statistics(self) -> dict[str, Any]:
        """Return everything that is counted and measured, as plain values."""
        workers = self.workers
        account = self.account()
        return {
            "is_running": self._running,
            "is_serial": self._serial_since is not None,
            "active_workers": _active(workers),
            "total_steps_collected": account.trained,
            "total_episodes_collected": self._crew.history.games,
            "queue_size": len(self._crew.queue),
            "queue_depth": list(self._crew.history.queue_depth),
            "steps": {
                "generated": account.generated,
                "trained": account.trained,
                "in_flight": account.in_flight,
                "discarded": dict(account.discarded),
            },
            "policy_lag": dict(sorted(self._crew.history.lags.items())),
            "replacement_seconds": list(self._crew.history.replacement_seconds),
            "synchronization": asdict(self._synchronizer.statistics()),
            "channels": [asdict(channel) for channel in self._communicator.status()],
            "worker_stats": [asdict(worker) for worker in workers],
            "worker_seconds": [self._crew.seconds(place) for place in self._crew.places],
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
            **{f"parallel/discarded_{reason}": account.discarded[reason] for reason in REASONS},
            **self._crew.history.lap(),
        }
        for place in self._crew.there():
            busy = self._communicator.word(place.worker, Word.BUSY_NANOSECONDS)
            self._crew.history.mark(place.worker, busy)
        return metrics

    # Inside: collecting

    def _check_running(self) -> None:
        if not self._running:
            raise RuntimeError("the workers are not running; call start_workers() first")

    def _check_can_collect(self, target_steps: int) -> None:
        self._check_running()
        if target_steps < 1:
            raise ValueError(f"target_steps is {target_steps}, expected at least 1")
        if self._crew.paused:
            raise RuntimeError("the workers are paused; call resume() first")
        if self.agent.version - self._synchronizer.version > self._oldest:
            raise RuntimeError(
                f"the workers have the weights of update {self._synchronizer.version}, the agent is at "
                f"{self.agent.version}; call synchronize_models() after learning"
            )

    def _take(self, taken: list[WorkerSegment], target_steps: int) -> None:
        """Move segments from the queue to those taken, until there are enough; drop those too old."""
        while self._crew.queue and sum(len(one.segment) for one in taken) < target_steps:
            one = self._crew.queue.popleft()
            if self.agent.version - one.version > self._oldest:
                self._crew.ledger.discard_queued(len(one.segment), "stale")
            else:
                taken.append(one)

    def _discard_waiting(self, reason: str) -> None:
        for one in (*self._taken, *self._crew.queue):
            self._crew.ledger.discard_queued(len(one.segment), reason)
        self._taken.clear()
        self._crew.queue.clear()

    def _ask(self, steps: int, wanted: int, taken: Sequence[WorkerSegment]) -> None:
        """See to it that so many segments, of so many moves, wait or are owed, by turns of all workers."""
        reliable = [place for place in self._crew.places if place.can_be_relied_on()]
        waiting = Counter(one.worker for one in self._crew.queue)
        share = Counter(one.worker for one in taken) + waiting
        for _ in range(wanted - len(self._crew.queue) - sum(place.owed for place in reliable)):
            if reliable:
                least = min(reliable, key=lambda place: (share[place.worker] + place.owed, place.worker))
                least.owed += 1
        self._steps = steps
        self._grant()

    def _grant(self) -> None:
        """Ask the workers for what they owe, as far as there is room for it."""
        tickets = {channel.worker: channel.tickets for channel in self._communicator.status()}
        waiting = Counter(one.worker for one in self._crew.queue)
        limit = self.config.training.parallel.queue_maxsize
        for place in self._crew.places:
            if place.phase == "running" and not place.games_sent:
                under_way = waiting[place.worker] + tickets[place.worker]
                for _ in range(min(place.owed - tickets[place.worker], limit - under_way)):
                    self._communicator.grant(place.worker, self._steps, self._synchronizer.version)

    def _play_here(self, steps: int, turn: int, before_wait: Callable[[], None]) -> WorkerSegment:
        """Play a segment of a worker's games in this process."""
        place = self._crew.places[turn % len(self._crew.places)]
        begin = place.played
        self_play = SelfPlay.restore(begin, self.config.env)

        def before_step() -> None:
            before_wait()
            if place.played is not begin:
                raise _ResetError

        collected = self_play.rollout(self.agent, steps, before_step=before_step)
        place.played = self_play.save()
        self._crew.ledger.played_here(len(collected.segment))
        self._crew.history.serial_steps += len(collected.segment)
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


def _active(workers: Sequence[WorkerStatus]) -> int:
    """Return how many workers play or could."""
    return sum(worker.state in ("playing", "waiting", "paused") for worker in workers)


def _workers_numerics(agent: PPOAgent) -> Numerics:
    """Return the formats for the workers, who play on the CPU: the learner's, if it computes there too."""
    if agent.device.type == "cpu":
        return replace(agent.numerics, compiled=False)
    return Numerics(why="on the CPU")
