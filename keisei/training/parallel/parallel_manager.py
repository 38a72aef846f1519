"""ParallelManager: supervised worker processes that play, and the experience they collect.

    with ParallelManager(config, agent) as manager:
        while training:
            played = manager.collect_experiences(4096)
            ...                                            # add p.segment for p in played to a buffer
            agent.learn(buffer, exchange=manager.exchange)
            manager.synchronize_models()

There are no threads here. Workers are supervised whenever a method is called; callers doing long work should
call `supervise` now and then, so that a dead worker is replaced at once.
"""

import atexit
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from types import TracebackType
from typing import Any, Self

from keisei.config.schema import AppConfig, validated
from keisei.core.device import CPU
from keisei.core.exchange import Exchange
from keisei.core.learning_agent import LearningAgent
from keisei.core.native_tower import best_kernels
from keisei.core.numerics import Numerics
from keisei.core.self_play import SavedGames, SelfPlay, next_number, segment_shape
from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.hands import Hands, Hire, Job
from keisei.training.parallel.ledger import REASONS, Account, ConservationError
from keisei.training.parallel.local_hands import LocalHands
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_statistics import ParallelStatistics
from keisei.training.parallel.places import Places
from keisei.training.parallel.self_play_worker import SelfPlayWorker
from keisei.training.parallel.supervised_worker import Supervision
from keisei.training.parallel.worker_setup import (
    begin_games,
    costly_settings,
    number_of_learners,
    number_of_workers,
    why_workers_cannot_learn,
)
from keisei.training.parallel.worker_status import WorkerStatus

_LOOK_SECONDS = 0.1  # between two checks of the workers' signs of life
PATIENCE = Supervision()


class _ResetError(Exception):
    """The games the learner was playing itself were reset."""


def say(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


class ParallelManager:
    """Workers that play with an agent's weights.

    games: the games to continue, one entry per worker, from `save_games`; new games if None. notice: gets
    one-line messages for the user. log: gets the traceback of every failed worker, below a line naming the
    worker. supervision: how patient to be with workers. worker, worker_arguments: a custom worker class and
    its further arguments. hire: makes other hands than the worker processes of this machine.
    """

    def __init__(
        self,
        config: AppConfig,
        agent: LearningAgent,
        *,
        games: Sequence[SavedGames] | None = None,
        notice: Callable[[str], None] = say,
        log: Callable[[str], None] = lambda _: None,
        supervision: Supervision = PATIENCE,
        worker: type[SelfPlayWorker] = SelfPlayWorker,
        worker_arguments: Sequence[Any] = (),
        hire: Hire | None = None,
    ) -> None:
        self.config = validated(config)
        self.config.training.algorithm = agent.algorithm  # the kind of agent decides
        self.agent = agent
        self._notice, self._supervision = notice, supervision
        parallel, count = self.config.training.parallel, number_of_workers(self.config)
        self._count, self._streams = count, parallel.episodes_per_worker
        self._lag = parallel.max_policy_lag
        self._longest = -(-self.config.training.steps_per_epoch // (count * self._streams))
        longest = segment_shape(self.config, self._longest, self._streams)
        saved = begin_games(self.config, count) if games is None else list(games)
        if len(saved) != count:
            raise ValueError(f"got games for {len(saved)} workers, expected {count}")
        self._synchronizer = ModelSynchronizer(
            agent.arrays(), interval=parallel.model_sync_interval, compressed=parallel.compression_enabled
        )
        self._alone_because = why_workers_cannot_learn(self.config, agent.device.type)
        learners = 1 if self._alone_because else number_of_learners(self.config, agent.device.type)
        self._places = Places(saved)
        self._statistics = ParallelStatistics(count)
        job = Job(
            self.config,
            workers_numerics(agent.device.type, agent.numerics, own_network=self.config.model.is_own),
            self._places,
            self._synchronizer,
            self._statistics,
            longest,
            supervision,
            notice,
            log,
        )
        self._hands: Hands = (
            LocalHands(
                job,
                learners=learners,
                weights=agent.parameters,
                worker=worker,
                arguments=worker_arguments,
            )
            if hire is None
            else hire(job)
        )
        self._running = self._ended = False
        self._published: deque[int] = deque()  # versions of the weights, without those too old to use
        self._moves = 0  # collected since the last publication
        self._serial_since: float | None = None

    # Start and end

    def start_workers(self, *, before_wait: Callable[[], None] = lambda: None) -> bool:
        """Start the workers if they are not running, wait until they can play, and return True.

        before_wait: as for collect_experiences.
        """
        if self._ended:
            raise RuntimeError("the workers were shut down")
        if self._running:
            return True
        for line in costly_settings(self.config):
            self._notice(line)
        if self._alone_because and self.config.training.learners not in ("auto", 1):
            self._notice(
                f"the learner computes all {self.config.training.learners} shares of a minibatch itself, "
                f"since {self._alone_because}; training.learners=1 is faster"
            )
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
        return True

    def _is_starting(self, late: bool) -> bool:
        """Return whether to keep waiting for workers; once late, only while none is running."""
        return self._hands.starting and not (late and self._hands.ready)

    def shutdown(self) -> None:
        """Stop the workers, by force if necessary; a second call does nothing."""
        if not self._running:
            return
        self._running, self._ended = False, True
        atexit.unregister(self.shutdown)
        self._hands.dismiss()
        self._places.discard("shutdown")
        self._synchronizer.close()

    def stop_workers(self) -> None:
        """Do the same as shutdown."""
        self.shutdown()

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
        """Return segments with at least target_steps moves in total, sorted by worker.

        With max_policy_lag 0 all are played now; otherwise the workers keep playing after this returns.
        Segments played with weights older than the workers had max_policy_lag updates ago are dropped.
        before_wait is called several times a second; what it raises ends the wait, and nothing is lost. If no
        worker is left, this process plays.
        """
        self._check_can_collect(target_steps)
        steps = min(self._longest, -(-target_steps // (self._count * self._streams)))
        moves = steps * self._streams
        ahead = -(-target_steps // moves) * self._lag
        with self.agent.clock("collect"), self._places.collection() as taken:
            while True:
                missing = self._places.take(target_steps, self._oldest_version())
                # Counted in moves, not segments: an earlier call may have asked for shorter ones.
                self._places.order(-(-missing // moves) + ahead, steps, self._hands.reliable)
                self._hands.grant()
                if not missing:
                    break
                before_wait()
                if self._hands.reliable:
                    self._note_parallel()
                    self.supervise(_LOOK_SECONDS)
                else:
                    self._note_serial()
                    with suppress(_ResetError):
                        self._places.add_own(self._play_here(steps, len(taken), before_wait))
                    self.supervise()
        self._moves += sum(len(one.segment) for one in taken)
        self._statistics.took(taken, self.agent.version)
        return sorted(taken, key=lambda one: one.worker)  # so that it does not matter which was fastest

    def synchronize_models(self) -> bool:
        """Publish the agent's weights if due; return whether the workers have the current ones.

        Weights are due after the first update by which model_sync_interval moves have been collected since
        the last publication.
        """
        with self.agent.clock("synchronize"):
            if self._synchronizer.is_due(self.agent.version, self._moves):
                self._publish()
        return self._synchronizer.version == self.agent.version

    def sync_model_if_needed(self) -> bool:
        """Do the same as synchronize_models."""
        return self.synchronize_models()

    def give_back(self, steps: int) -> None:
        """Record that this many collected moves are not trained on, because the learner was stopped."""
        self._places.give_back(steps)

    def save_games(self) -> list[SavedGames]:
        """Return the games of each worker as they were after its last collected segment."""
        return self._places.saved_games()

    # Learning

    @property
    def exchange(self) -> Exchange | None:
        """Who computes the gradients of an update: workers too, or None for the learner alone."""
        return self._hands.exchange

    # Control

    def pause(self) -> None:
        """Pause the workers, in the middle of a segment if need be."""
        self._check_running()
        self._hands.pause()

    def resume(self) -> None:
        """Resume the workers."""
        self._check_running()
        self._hands.resume()

    def reset(self) -> None:
        """Begin new games everywhere; moves in flight from the old ones are discarded."""
        self._check_running()
        first = next_number(self._places.games)
        self._places.reset(begin_games(self.config, self._count, first))
        self._hands.games_changed()

    def supervise(self, timeout: float = 0.0) -> None:
        """Receive what workers have sent, waiting up to `timeout` seconds, and replace those that are gone.

        Raises WorkerError on the same exception three times before any worker has delivered anything.
        """
        self._check_running()
        self._hands.supervise(timeout)
        self._hands.grant()

    # Status

    @property
    def is_running(self) -> bool:
        """Whether the workers were started and not shut down."""
        return self._running

    @property
    def workers(self) -> list[WorkerStatus]:
        """The current status of each worker."""
        known = self._hands.statuses()
        return known if self._running else [replace(status, state="stopped") for status in known]

    def account(self) -> Account:
        """Return where every move has gone; raise ConservationError if one is missing or counted twice."""
        return self._places.account(self._hands.asked_for())

    def get_statistics(self) -> dict[str, Any]:
        """Return all counts and measurements as plain values."""
        workers = self.workers
        account = self.account()
        return {
            "is_running": self._running,
            "is_serial": self._serial_since is not None,
            "active_workers": _active(workers),
            "total_steps_collected": account.trained,
            "total_episodes_collected": self._statistics.games,
            "queue_size": self._places.waiting,
            "queue_depth": list(self._statistics.queue_depth),
            "steps": {
                "generated": account.generated,
                "trained": account.trained,
                "in_flight": account.in_flight,
                "discarded": dict(account.discarded),
            },
            "policy_lag": dict(sorted(self._statistics.lags.items())),
            "replacement_seconds": list(self._statistics.replacement_seconds),
            "synchronization": asdict(self._synchronizer.statistics()),
            "channels": [asdict(channel) for channel in self._hands.channels()],
            "worker_stats": [asdict(worker) for worker in workers],
            "worker_seconds": self._hands.seconds(),
        }

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call, named as in keisei.training.metrics."""
        account, sync, workers = self.account(), self._synchronizer.statistics(), self.workers
        metrics = {
            "parallel/active_workers": _active(workers),
            "parallel/utilization": sum(worker.utilization for worker in workers) / max(len(workers), 1),
            "parallel/weights_version": sync.version,
            "parallel/steps_generated": account.generated,
            "parallel/steps_trained": account.trained,
            "parallel/steps_in_flight": account.in_flight,
            "parallel/steps_discarded": sum(account.discarded.values()),
            "parallel/sync_count": sync.count,
            "parallel/sync_bytes": sync.bytes,
            "parallel/sync_milliseconds": sync.milliseconds,
            "parallel/memory_bytes": sum(worker.memory_bytes for worker in workers),
            "parallel/shares_taken_over": self._hands.shares_taken_over,
            **{f"parallel/discarded_{reason}": account.discarded[reason] for reason in REASONS},
            **self._statistics.lap(self._hands.seconds()),
            **self._hands.metrics(),
        }
        self._hands.mark_utilization()
        return metrics

    # Internals of collecting

    def _check_running(self) -> None:
        if not self._running:
            raise RuntimeError("the workers are not running; call start_workers() first")

    def _check_can_collect(self, target_steps: int) -> None:
        self._check_running()
        if target_steps < 1:
            raise ValueError(f"target_steps is {target_steps}, expected at least 1")
        if self._hands.paused:
            raise RuntimeError("the workers are paused; call resume() first")
        behind = self.agent.version - self._synchronizer.version
        if behind > self._lag and self._synchronizer.is_due(self.agent.version, self._moves):
            raise RuntimeError(
                f"the workers have the weights of update {self._synchronizer.version}, the agent is at "
                f"{self.agent.version}; call synchronize_models() after learning"
            )

    def _oldest_version(self) -> int:
        """Return the version of the weights that the workers had max_policy_lag updates ago."""
        while len(self._published) > 1 and self._published[1] <= self.agent.version - self._lag:
            self._published.popleft()
        return self._published[0]

    def _play_here(self, steps: int, turn: int, before_wait: Callable[[], None]) -> WorkerSegment:
        """Play a segment of some worker's games in this process."""
        worker = self._places.next_to_play()
        begin = self._places.games_of(worker)
        self_play = SelfPlay.restore(begin, self.config.env)

        def before_step() -> None:
            before_wait()
            if self._places.games_of(worker) is not begin:
                raise _ResetError

        collected = self_play.rollout(self.agent, steps, before_step=before_step, before_batch=before_step)
        self._statistics.serial_steps += len(collected.segment)
        return WorkerSegment(
            collected.segment,
            collected.results,
            self_play.save(),
            worker,
            incarnation=-1,
            sequence=turn,
            version=self.agent.version,
        )

    def _note_serial(self) -> None:
        if self._serial_since is None:
            self._serial_since = time.monotonic()
            self._notice(
                "no workers left: the learner plays serially; retrying workers every "
                f"{self._supervision.retry_seconds:g} s"
            )

    def _note_parallel(self) -> None:
        if self._serial_since is not None:
            seconds = time.monotonic() - self._serial_since
            self._serial_since = None
            self._notice(f"workers are playing again after {seconds:.1f} s of serial play")

    def _publish(self) -> None:
        self._synchronizer.publish(self.agent.arrays(), self.agent.version)
        self._published.append(self.agent.version)
        self._hands.weights_published()
        self._moves = 0

    # For the training loop, see keisei.training.collector

    def agree(self, flag: bool) -> bool:
        """Return the flag: one learner decides."""
        return flag

    def checked_metrics(self, trained: int) -> dict[str, float]:
        """Return `metrics()`; raise ConservationError if the moves trained on are not `trained`."""
        metrics = self.metrics()
        if metrics["parallel/steps_trained"] != trained:
            raise ConservationError(f"{trained} moves were trained on, but: {self.account()}")
        return metrics

    def close(self, trained: int) -> str:
        """Shut down and return a line accounting for every move; those beyond `trained` are given back."""
        try:
            self.give_back(self.account().trained - trained)
        finally:
            self.shutdown()
        return f"workers: {self.account()}"


def _active(workers: Sequence[WorkerStatus]) -> int:
    """Return how many workers are playing or could play."""
    return sum(worker.state in ("playing", "learning", "waiting", "paused") for worker in workers)


def workers_numerics(device: str, numerics: Numerics, *, own_network: bool = False) -> Numerics:
    """Return how workers compute on the CPU: as the learner if it is there too, natively if it has a GPU.

    own_network: one that only torch can compute.
    """
    if device == CPU:
        return replace(numerics, compiled=False)
    if own_network:
        return Numerics(why="on the CPU")
    return Numerics(native=best_kernels(), why="on the CPU")
