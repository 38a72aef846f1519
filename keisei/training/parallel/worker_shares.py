"""WorkerShares: an exchange whose shares are computed by the learner and its workers at the same time.

Only the learner takes steps, so there is nothing that processes could disagree on. A worker gets its task in
a message and answers when its gradients are in shared memory; one that dies or is late loses its share to
the learner, which computes the same gradients: no fault of a worker changes a bit or stops a step for long.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from keisei.core.exchange import Learner
from keisei.core.gradient_step import Floats, GradientStep
from keisei.training.parallel.communication import WorkerCommunicator, read_learned
from keisei.training.parallel.step_memory import LearnTask, StepMemory
from keisei.training.parallel.wire import DamagedError

# A worker, which has one thread, is late when the learner has waited for it so many times as long as the
# learner's own share would take on one thread, at least so many seconds. A busy machine makes workers late
# too; then the learner does their work twice.
LATE_FACTOR, LATE_SECONDS = 2.0, 0.5
_LOOK_SECONDS = 0.05


class ShareTasks:
    """Which workers compute shares of the current step, and which have done so.

    learners: shares of a step. taken_over: shares of workers that the learner computed instead, so far.
    """

    def __init__(self, learners: int, memory: StepMemory, communicator: WorkerCommunicator) -> None:
        self.learners = learners
        self._memory, self._communicator = memory, communicator
        self._working: dict[int, int] = {}  # worker → sequence number of the step that it works for
        self._delivered: set[int] = set()  # workers whose gradients for the current step are in the memory
        self._sequence = 0  # of the current step
        self.taken_over = 0

    def ask(self, weights: Floats, step: GradientStep, workers: Sequence[int]) -> dict[int, int]:
        """Give shares to those of the workers that have nothing to do; return the worker of each share."""
        free = [worker for worker in workers if worker not in self._working]
        asked = dict(zip(range(1, self.learners), free, strict=False))
        self._delivered.clear()
        if asked:
            self._sequence = self._memory.lay_out(weights, step)
        for number, worker in asked.items():
            begin, end = step.bounds(number, self.learners)
            task = LearnTask(self._sequence, begin, end, step.minibatch, step.entropy_coef, step.targets)
            self._communicator.ask_to_learn(worker, task)
            self._working[worker] = self._sequence
        return asked

    def are_open(self) -> bool:
        """Return whether a worker is at work for the current step."""
        return self._sequence in self._working.values()

    def delivered_by(self, worker: int) -> Floats | None:
        """Return what a worker computed for the current step; None if it has not."""
        return self._memory.gradients_of(worker) if worker in self._delivered else None

    def learned(self, worker: int, body: bytes) -> None:
        """Note that a worker has computed its share; DamagedError if it was not asked to."""
        sequence = read_learned(body)
        if self._working.get(worker) != sequence:
            raise DamagedError(f"gradients of step {sequence}, expected of {self._working.get(worker)}")
        del self._working[worker]
        if sequence == self._sequence:
            self._delivered.add(worker)

    def process_ended(self, worker: int) -> None:
        """Expect nothing more from a worker's process; gradients that it has delivered are good."""
        self._working.pop(worker, None)

    def close(self) -> None:
        """Stop handing the memory to new processes; a second call does nothing."""
        self._memory.close()


@dataclass(frozen=True, slots=True)
class WorkerShares:
    """The exchange: the first share is the learner's, each other goes to a worker that has nothing to do.

    threads: of all processes together. workers: those that can be asked now. supervise: receives what
    workers have sent, waiting up to so many seconds.
    """

    tasks: ShareTasks
    threads: int
    workers: Callable[[], Sequence[int]]
    supervise: Callable[[float], None]

    def total(self, learner: Learner, step: GradientStep) -> Tensor:
        """Return the sum of all shares."""
        tasks, learners = self.tasks, self.tasks.learners
        with learner.clock("exchange"):
            asked = tasks.ask(learner.flat_weights(), step, self.workers())
        threads = max(1, self.threads // (1 + len(asked)))

        def computed(number: int) -> Tensor:
            return learner.gradients(step.share(number, learners), threads)

        began = time.monotonic()
        shares = {number: computed(number) for number in range(learners) if number not in asked}
        with learner.clock("wait"):
            done = time.monotonic()
            deadline = done + max(LATE_SECONDS, LATE_FACTOR * threads * (done - began))
            while asked and tasks.are_open() and time.monotonic() < deadline:
                self.supervise(_LOOK_SECONDS)
        for number, worker in asked.items():
            found = tasks.delivered_by(worker)
            if found is None:
                tasks.taken_over += 1
            shares[number] = computed(number) if found is None else torch.from_numpy(found)
        with learner.clock("exchange"):
            total = shares[0]
            for number in range(1, learners):
                total += shares[number]
        return total
