"""LocalHands: the worker processes of this machine, each of which plays the place of its own number."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from keisei.core.device import cores
from keisei.core.exchange import Exchange
from keisei.training.parallel.communication import ChannelStatus, WorkerCommunicator
from keisei.training.parallel.hands import Job
from keisei.training.parallel.segment_orders import SegmentOrders
from keisei.training.parallel.self_play_worker import SelfPlayWorker
from keisei.training.parallel.step_memory import StepMemory
from keisei.training.parallel.supervisor import Supervisor
from keisei.training.parallel.worker_shares import ShareTasks, WorkerShares
from keisei.training.parallel.worker_status import WorkerStatus


class LocalHands:
    """Supervised processes, with shared memory for what they play and learn.

    learners: shares of a gradient step; 1 if workers only play. weights: floats of the network. worker,
    arguments: the class of the workers, and its further arguments.
    """

    def __init__(
        self,
        job: Job,
        *,
        learners: int = 1,
        weights: int = 0,
        worker: type[SelfPlayWorker] = SelfPlayWorker,
        arguments: Sequence[Any] = (),
    ) -> None:
        config, parallel = job.config, job.config.training.parallel
        self._threads = config.run.threads or cores()
        self._synchronizer = job.synchronizer
        memory = None
        if learners > 1:
            most = config.training.minibatch_size + 1  # a lone last move joins the minibatch before it
            memory = StepMemory(
                weights=weights, moves=most, workers=len(job.places), candidates=job.longest.candidates
            )
        self._communicator = WorkerCommunicator(
            slots=parallel.queue_maxsize,
            slot_bytes=job.longest.nbytes,
            shared=parallel.use_shared_memory,
            step_memory=memory,
            candidates=job.longest.candidates,
        )
        self._shares = None if memory is None else ShareTasks(learners, memory, self._communicator)
        self._orders = SegmentOrders(
            job.places,
            self._communicator,
            streams=parallel.episodes_per_worker,
            limit=parallel.queue_maxsize,
        )
        self._supervisor = Supervisor(
            len(job.places),
            self._orders,
            self._communicator,
            job.synchronizer,
            job.statistics,
            (worker, config, job.numerics, tuple(arguments)),
            shares=self._shares,
            timeout=parallel.worker_timeout,
            supervision=job.supervision,
            notice=job.notice,
            log=job.log,
        )
        self._dismissed = False

    def weights_published(self) -> None:
        """Do nothing: workers look at the synchronizer's memory themselves."""

    def grant(self) -> None:
        """Give workers that can play tickets for the segments they owe."""
        self._orders.grant(self._supervisor.running, self._synchronizer.version)

    def supervise(self, timeout: float, wake: Collection[int] = ()) -> None:
        """Receive what workers have sent and replace those that are gone; wake as for Supervisor."""
        self._supervisor.supervise(timeout, wake)

    def send_games(self, worker: int) -> None:
        """Send a running worker its place's games; it drops what it plays. Others get them when ready."""
        self._orders.send_games(worker)

    def games_changed(self) -> None:
        """Send all running workers their current games; the others get them once they are ready."""
        for worker in self._supervisor.running:
            self.send_games(worker)

    def pause(self) -> None:
        """Pause all workers, including those started later."""
        self._supervisor.pause()

    def resume(self) -> None:
        """Resume all workers."""
        self._supervisor.resume()

    def dismiss(self) -> None:
        """End all processes, by force if necessary."""
        self._dismissed = True
        self._supervisor.dismiss()
        if self._shares is not None:
            self._shares.close()

    @property
    def paused(self) -> bool:
        """Whether the workers are paused."""
        return self._supervisor.paused

    @property
    def starting(self) -> bool:
        """Whether workers that can be relied on are not running yet."""
        return not set(self._supervisor.reliable) <= set(self._supervisor.running)

    @property
    def ready(self) -> bool:
        """Whether a worker is running."""
        return bool(self._supervisor.running)

    @property
    def running(self) -> list[int]:
        """The workers that can be asked to play now."""
        return self._supervisor.running

    @property
    def reliable(self) -> list[int]:
        """The workers that play or soon will."""
        return self._supervisor.reliable

    @property
    def exchange(self) -> Exchange | None:
        """Who computes the gradients of an update: workers too, or None for the learner alone."""
        if self._shares is None:
            return None
        return WorkerShares(
            self._shares,
            self._threads,
            lambda: () if self._dismissed else self._supervisor.running,
            self.supervise,
        )

    @property
    def shares_taken_over(self) -> int:
        """How many shares of late or dead workers the learner computed."""
        return 0 if self._shares is None else self._shares.taken_over

    def asked_for(self) -> dict[int, int]:
        """Note what every process has played; return the moves that each was asked for."""
        return self._orders.asked_for()

    def statuses(self) -> list[WorkerStatus]:
        """Return the current status of each worker."""
        return self._supervisor.statuses()

    def seconds(self) -> list[dict[str, float]]:
        """Return how each worker's processes have spent their time so far, by phase."""
        return self._supervisor.seconds()

    def channels(self) -> list[ChannelStatus]:
        """Return the status of every open channel."""
        return self._communicator.status()

    def mark_utilization(self) -> None:
        """Measure the workers' utilisation from now on."""
        self._supervisor.mark_utilization()

    def metrics(self) -> Mapping[str, float]:
        """Return nothing more."""
        return {}
