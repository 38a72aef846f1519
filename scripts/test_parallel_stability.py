"""python scripts/test_parallel_stability.py --duration 3600 --workers 4 --faults-per-minute 15 --seed 1

A soak test with faults: trains with worker processes for DURATION seconds, while workers are killed, stopped,
made to raise, hang and dawdle, on a schedule that depends only on the seed. Throughout, it checks that
nothing is lost, torn or played twice, that workers hit are replaced in time and no others are, and that
memory, open files and threads do not grow; at the end, that nothing is left behind. A breach is reported in
one line, with exit code 1. With --lag 1 the workers keep playing while the learner learns. Linux only: it
needs /proc and pidfd.
"""

import argparse
import gc
import json
import math
import os
import random
import resource
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch

from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.agents import agent_of
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.numerics import Numerics
from keisei.core.segment import Segment
from keisei.shogi import Color, ShogiGame
from keisei.shogi.encoding import legal_actions, move_of, turns, unpack_sfens
from keisei.training.parallel.communication import WorkerEnd, WorkerSegment
from keisei.training.parallel.ledger import Account, ConservationError
from keisei.training.parallel.model_sync import WeightsReader
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.self_play_worker import SelfPlayWorker
from keisei.training.parallel.supervised_worker import Supervision, resident_bytes
from keisei.training.parallel.worker_status import WorkerStatus

GAMES, MOVES = 8, 32  # per worker in a segment
TIMEOUT_SECONDS = 2.0  # worker_timeout, short, so that many workers can hang in a minute
SLOW_SECONDS, SLOW_STEP_SECONDS = 3.0, 0.25  # how long, and how slow: far from TIMEOUT_SECONDS
DEATH_SECONDS = 1.0  # 95 % of dead workers must be replaced within this time of the fault
HANG_SECONDS = TIMEOUT_SECONDS + 3.0  # the same for hung workers
STALL_SECONDS = TIMEOUT_SECONDS + 20.0  # nothing may take longer than this
FIRST_FAULT_SECONDS, QUIET_SECONDS = 2.0, HANG_SECONDS + 1.0  # no faults at the start and at the end
WARM_UP_SHARE, WARM_UP_SECONDS = 0.25, 60.0  # the shorter of these is excluded when measuring growth
SAMPLE_SECONDS = 0.5
LEAST_UPDATES = 30  # enough to see growth, even on a busy machine
GROWTH_BYTES = 24e6  # allowed rise of a line through the samples; normal fluctuation is smaller

SIGNALS = {
    "kill": signal.SIGKILL,
    "segfault": signal.SIGSEGV,
    "stop": signal.SIGSTOP,
    "raise": signal.SIGUSR1,
    "hang": signal.SIGUSR2,
    "slow": signal.SIGRTMIN,
    "kill all": signal.SIGKILL,
}
HANGS, HARMLESS = ("stop", "hang"), ("slow",)
RUNNING = ("playing", "waiting", "paused")


class Breach(Exception):  # noqa: N818  (a finding)
    """Something that must never happen."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")


class Fault(NamedTuple):
    """What is done to a worker, and when, in seconds from the start."""

    seconds: float
    worker: int  # ignored if all workers are hit
    kind: str

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s {self.kind}" + ("" if self.kind == "kill all" else f" {self.worker}")


def make_schedule(seed: int, duration: float, workers: int, faults_per_minute: float) -> list[Fault]:
    """Return the faults in order; each kind occurs once before any occurs again."""
    chance = random.Random(seed)
    count = round(duration * faults_per_minute / 60)
    time_for_faults = max(0.0, duration - FIRST_FAULT_SECONDS - QUIET_SECONDS)
    faults: list[Fault] = []
    while len(faults) < count:
        for kind in chance.sample(list(SIGNALS), len(SIGNALS)):
            seconds = FIRST_FAULT_SECONDS + time_for_faults * (len(faults) + chance.random()) / count
            faults.append(Fault(seconds, chance.randrange(workers), kind))
    return faults[:count]


class FaultyWorker(SelfPlayWorker):
    """A worker that raises, hangs or dawdles in its game loop when it gets a signal.

    began_file: float64 [workers], where it records the time. The fault begins at its next move, which may be
    late if the learner is waiting for other workers.
    """

    def __init__(
        self, end: WorkerEnd, weights: WeightsReader, config: AppConfig, numerics: Numerics, began_file: str
    ) -> None:
        super().__init__(end, weights, config, numerics)
        self._began = np.memmap(began_file, np.float64, "r+")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self._fault = ""
        self._slow_until = 0.0
        for kind in ("raise", "hang", "slow"):
            signal.signal(SIGNALS[kind], self._begin)

    def _begin(self, signum: int, _frame: FrameType | None) -> None:
        if signum == SIGNALS["slow"]:
            self._slow_until = time.monotonic() + SLOW_SECONDS
        else:
            self._fault = "raise" if signum == SIGNALS["raise"] else "hang"

    def before_step(self) -> None:
        """Do what the signal requested, in the middle of a segment."""
        super().before_step()
        if self._fault:
            self._began[self.end.worker] = time.monotonic()
        if self._fault == "raise":
            raise RuntimeError("an exception in the game loop, injected by the soak")
        while self._fault == "hang":
            time.sleep(1)
        if time.monotonic() < self._slow_until:
            time.sleep(SLOW_STEP_SECONDS)


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault injected into a process."""

    at: float
    kind: str


class Injector(threading.Thread):
    """A thread that carries out the schedule, whatever the learner is doing.

    A fault waits until its target processes are running. `aim` adds a process; one that was hit is dropped,
    so that none is hit twice.
    """

    def __init__(self, schedule: Sequence[Fault], workers: int) -> None:
        super().__init__(name="injector", daemon=True)
        self.happened: Counter[str] = Counter()
        self._schedule, self._workers = schedule, workers
        self._hits: dict[tuple[int, int], Hit] = {}
        self._targets: dict[int, tuple[int, int]] = {}  # of a worker: incarnation, file descriptor
        self._changed = threading.Condition()
        self._over = False

    def aim(self, worker: int, incarnation: int, pid: int) -> None:
        """Add a process that is ready."""
        with self._changed:
            self._forget(worker)
            # Not a pid, which may have been reused by now.
            self._targets[worker] = incarnation, os.pidfd_open(pid)
            self._changed.notify()

    def hits(self) -> dict[tuple[int, int], Hit]:
        """Return the faults that ended a process, by worker and incarnation."""
        with self._changed:
            return dict(self._hits)

    def end(self) -> None:
        """Stop injecting faults."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self.join()
        for worker in list(self._targets):
            self._forget(worker)

    def run(self) -> None:
        """Inject one fault after another."""
        began = time.monotonic()
        with self._changed:
            for fault in self._schedule:
                due = began + fault.seconds
                workers = range(self._workers) if fault.kind == "kill all" else (fault.worker,)
                while not self._over and (
                    time.monotonic() < due or any(worker not in self._targets for worker in workers)
                ):
                    self._changed.wait(max(0.01, due - time.monotonic()))
                if self._over:
                    return
                for worker in workers:
                    self._hit(worker, fault.kind)
                self.happened[fault.kind] += 1

    def _hit(self, worker: int, kind: str) -> None:
        incarnation, descriptor = self._targets[worker]
        now = time.monotonic()
        signal.pidfd_send_signal(descriptor, SIGNALS[kind])
        if kind not in HARMLESS:
            self._hits[worker, incarnation] = Hit(now, kind)
            self._forget(worker)

    def _forget(self, worker: int) -> None:
        if worker in self._targets:
            os.close(self._targets.pop(worker)[1])


class Replacements:
    """A monitor of new processes: each must replace one that was hit, and soon.

    began_file: see FaultyWorker. early: those hit before they had delivered anything, for which the manager
    deliberately waits longer.
    """

    def __init__(self, injector: Injector, workers: int, began_file: Path, patience: float) -> None:
        self._patience = patience
        self.seconds: dict[str, list[float]] = {"death": [], "hang": [], "early": []}
        self._injector = injector
        self._began = np.memmap(began_file, np.float64, "w+", shape=(workers,))
        self._delivered = [-1] * workers  # the incarnation of the last segment
        self._seen = [-1] * workers  # the last incarnation seen ready

    def delivered(self, one: WorkerSegment) -> None:
        """Record that a process has delivered something."""
        self._delivered[one.worker] = one.incarnation

    def look(self, workers: Sequence[WorkerStatus]) -> None:
        """Check for processes that became ready since the last call, and for those that should have."""
        hits, now = self._injector.hits(), time.monotonic()
        for status in workers:
            if status.state in RUNNING and status.incarnation > self._seen[status.worker]:
                self._came(status, hits, now)
        for (worker, incarnation), hit in hits.items():
            if incarnation == self._seen[worker] and now - hit.at > self._patience * STALL_SECONDS:
                raise Breach(
                    "replacement", f"worker {worker} not replaced {now - hit.at:.1f} s after {hit.kind}"
                )

    def _came(self, status: WorkerStatus, hits: Mapping[tuple[int, int], Hit], now: float) -> None:
        worker, before = status.worker, self._seen[status.worker]
        gone = [before, *range(before + 1, status.incarnation)] if before >= 0 else range(status.incarnation)
        for incarnation in gone:
            if (worker, incarnation) not in hits:
                error = status.last_error.strip().rpartition("\n")[2]
                raise Breach(
                    "restart", f"worker {worker}'s process {incarnation} was replaced but not hit; {error}"
                )
        if before >= 0:
            hit = hits[worker, before]
            what = "hang" if hit.kind in HANGS else "death"
            what = what if self._delivered[worker] >= before else "early"
            self.seconds[what].append(now - max(hit.at, float(self._began[worker])))
        self._seen[worker] = status.incarnation
        assert status.pid is not None
        with suppress(ProcessLookupError):  # gone already, not by a fault: caught when its successor appears
            self._injector.aim(worker, status.incarnation, status.pid)

    def are_complete(self) -> bool:
        """Return whether every process that was hit has been replaced."""
        return all(self._seen[worker] > incarnation for worker, incarnation in self._injector.hits())

    def check(self) -> None:
        """Raise Breach if too many replacements took too long."""
        for what, usual in (("death", DEATH_SECONDS), ("hang", HANG_SECONDS)):
            slowest, limit = percentile(self.seconds[what], 95), self._patience * usual
            if slowest >= limit:
                raise Breach("replacement", f"95 % within {slowest:.2f} s after a {what}, expected {limit:g}")


class Stream:
    """The segments from one worker so far, which the next segment must continue."""

    def __init__(self, workers: int) -> None:
        self._stride = workers * GAMES
        self._record = (-1, -1)  # incarnation, sequence
        self._version = -1
        self._after = b""
        self.may_skip = True  # the next segment need not start where the last one ended
        self._games: dict[int, int] = {}  # by slot: the number of the last finished game

    def check(self, one: WorkerSegment, newest: int, lag: int) -> None:
        """Check a segment by itself and against the previous one."""
        who = f"worker {one.worker}'s segment {one.incarnation}.{one.sequence}"
        record = one.incarnation, one.sequence
        if record <= self._record:
            raise Breach("duplicate", f"{who} came after {self._record[0]}.{self._record[1]}")
        if one.version < self._version or not newest - lag <= one.version <= newest:
            raise Breach("version", f"{who} has weights {one.version} after {self._version}, newest {newest}")
        begin = one.segment.packed[0].tobytes()
        if begin != self._after and not self.may_skip:
            raise Breach("gap", f"{who} does not start where the previous one ended")
        for result in one.results:
            slot = result.number % self._stride
            if slot // GAMES != one.worker or result.number <= self._games.get(slot, -1):
                raise Breach("duplicate", f"{who} ends game {result.number} after {self._games.get(slot)}")
            self._games[slot] = result.number
        self._record, self._version, self._after = record, one.version, one.segment.after.tobytes()
        self.may_skip = False
        check_moves(one.segment, who)


def check_moves(segment: Segment, who: str) -> None:
    """Check that every position is readable, and every move legal and leading to the next position."""
    for name in ("log_probs", "values", "rewards", "bootstrap"):
        if not np.isfinite(getattr(segment, name)).all():
            raise Breach("torn", f"{who} has non-finite {name}")
    try:
        positions = segment.packed.reshape(len(segment), -1)
        offsets, legal = legal_actions(positions)
        sfens = [unpack_sfens(np.ascontiguousarray(row)) for row in segment.packed]
    except ValueError as error:
        raise Breach("torn", f"{who} has an unreadable position: {error}") from error
    found = legal == np.repeat(segment.actions.reshape(-1), np.diff(offsets))
    if found.sum() != len(segment):
        raise Breach("torn", f"{who} has an illegal move")
    stream = random.randrange(segment.actions.shape[1])  # replaying them all would take longer than learning
    sides = turns(np.ascontiguousarray(segment.packed[:, stream]))
    for t in range(len(sfens) - 1):
        if not segment.ended[t, stream]:
            game = ShogiGame(sfens[t][stream], max_moves=None, declaration="off")
            game.push(move_of(int(segment.actions[t, stream]), Color(int(sides[t]))))
            if game.sfen() != sfens[t + 1][stream]:
                raise Breach("torn", f"{who}: {sfens[t + 1][stream]} does not follow from {sfens[t][stream]}")


class Sample(NamedTuple):
    """Resource usage at a moment when all workers are running."""

    seconds: float
    learner_bytes: int
    worker_bytes: float  # the mean
    files: int
    threads: int


class Resources:
    """Samples of memory, open files and threads, and whether they grow."""

    def __init__(self, duration: float) -> None:
        self.samples: list[Sample] = []
        self._began = time.monotonic()
        self._warm_up = min(WARM_UP_SHARE * duration, WARM_UP_SECONDS)
        self._next = self._warm_up

    def look(self, workers: Sequence[WorkerStatus]) -> None:
        """Take a sample if one is due and all workers are running.

        A worker without memory is dead, although nobody has noticed yet.
        """
        seconds = time.monotonic() - self._began
        if seconds < self._next or not all(one.state in RUNNING and one.memory_bytes for one in workers):
            return
        self._next = seconds + SAMPLE_SECONDS
        self.samples.append(
            Sample(
                seconds,
                resident_bytes(os.getpid()),
                sum(status.memory_bytes for status in workers) / len(workers),
                len(os.listdir("/proc/self/fd")),
                len(os.listdir("/proc/self/task")),
            )
        )

    def growth(self, field: str) -> float:
        """Return the rise of a line fitted to the samples, from first to last."""
        if len(self.samples) < 3:
            return 0.0
        times = [sample.seconds for sample in self.samples]
        slope = np.polyfit(times, [getattr(sample, field) for sample in self.samples], 1)[0]
        return float(slope * (times[-1] - times[0]))

    def check(self) -> None:
        """Raise Breach if something grows."""
        if len(self.samples) < 3:
            raise Breach(
                "resources", f"{len(self.samples)} samples, too few to see growth: use a longer --duration"
            )
        for field in ("learner_bytes", "worker_bytes"):
            if self.growth(field) > GROWTH_BYTES:
                raise Breach("memory", f"{field} grew by {self.growth(field) / 1e6:.1f} MB")
        quarter = max(1, len(self.samples) // 4)
        for field, name in (("files", "open files"), ("threads", "threads")):
            # Medians, not extremes, and one more is allowed: while a worker is replaced the numbers differ.
            first = median_low([getattr(sample, field) for sample in self.samples[:quarter]])
            last = median_low([getattr(sample, field) for sample in self.samples[-quarter:]])
            if last > first + 1:
                raise Breach(name, f"{first} at the start, {last} at the end")


def grandchildren() -> list[int]:
    """Return the processes started by this process's fork server."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        parents[int(path.parent.name)] = int(fields[1])
    return [pid for pid, parent in parents.items() if parents.get(parent) == os.getpid()]


def named_memory() -> set[str]:
    """Return the named shared memory on this machine that could be ours."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("psm_", "torch_", "keisei"))}


def own_shared_memory() -> Iterator[str]:
    """Yield the memory shared with workers that this process still has open or mapped."""
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            if "memfd:keisei" in os.readlink(f"/proc/self/fd/{descriptor}"):
                yield f"file descriptor {descriptor}"
        except OSError:
            continue
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if "memfd:keisei" in line:
            yield f"mapping {line.split()[0]}"


def check_nothing_is_left(named_before: set[str], seconds: float) -> None:
    """Raise Breach if a process or memory is still there `seconds` after the shutdown."""
    deadline = time.monotonic() + seconds
    while grandchildren() and time.monotonic() < deadline:
        time.sleep(0.05)
    if left := grandchildren():
        raise Breach("orphan", f"processes {left} are left behind")
    gc.collect()
    if memory := [*own_shared_memory(), *sorted(named_memory() - named_before)]:
        raise Breach("shared memory", f"left behind: {', '.join(memory)}")


class Soak:
    """A training run with faults, and everything checked along the way."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.config = make_config(options.workers, options.lag, options.patience)
        self.agent = agent_of(self.config, "cpu")
        self.agent.optimizer.zero_grad()  # creates it, which takes seconds and memory, before measuring
        self.schedule = make_schedule(
            options.seed, options.duration, options.workers, options.faults_per_minute
        )
        print(f"{len(self.schedule)} faults: {', '.join(map(str, self.schedule))}", flush=True)
        self.injector = Injector(self.schedule, options.workers)
        self.began_file = folder / "began"
        self.replacements = Replacements(self.injector, options.workers, self.began_file, options.patience)
        self.resources = Resources(options.duration)
        self.streams = [Stream(options.workers) for _ in range(options.workers)]
        self.updates = self.games = self.stale = 0
        self.loss = math.nan
        self.account = Account(0, 0, 0, {})
        self.statistics: dict[str, Any] = {}
        self.seconds = 0.0
        self._collected_at = time.monotonic()

    def run(self) -> str:
        """Train for the whole time or until something is wrong; return the breach, "" if none."""
        named_before = named_memory()
        try:
            self._train()
            check_nothing_is_left(named_before, 2 * self.options.patience)
            self.replacements.check()
            self.resources.check()
        except Breach as breach:
            return str(breach)
        except ConservationError as error:
            return f"conservation: {error}"
        except Exception as error:
            traceback.print_exception(error)
            return f"exception: {type(error).__name__}: {error}"
        return ""

    def _train(self) -> None:
        manager = ParallelManager(
            self.config,
            self.agent,
            notice=lambda _line: None,
            # No worker is given up for the faults; one that cannot even start is.
            supervision=Supervision(restarts=len(self.schedule) + Supervision().restarts),
            worker=FaultyWorker,
            worker_arguments=(str(self.began_file),),
        )
        with manager:
            self.injector.start()
            try:
                began = told = self._collected_at = time.monotonic()
                while (now := time.monotonic()) < began + self.options.duration or not self._is_complete():
                    self._update(manager)
                    self.seconds = time.monotonic() - began
                    if now >= told + 10:
                        told = now
                        print(self._progress(), flush=True)
                self.statistics = manager.get_statistics()
            finally:
                self.injector.end()
        self.account = manager.account()
        if self.account.in_flight:
            raise Breach("conservation", f"moves in flight after the shutdown: {self.account}")

    def _is_complete(self) -> bool:
        """Return whether all faults have happened, all workers hit are replaced, and enough was learned.

        A busy machine may need longer than --duration for this; a hang is reported as a stall.
        """
        injects = self.injector.is_alive()
        happened = self.injector.happened.total()
        if not injects and happened < len(self.schedule):
            raise Breach("injector", f"ended after {happened} of {len(self.schedule)} faults")
        return (
            happened == len(self.schedule)
            and self.replacements.are_complete()
            and self.updates >= LEAST_UPDATES
        )

    def _update(self, manager: ParallelManager) -> None:
        """Collect, check the segments, learn from them, publish the weights."""

        def look() -> None:
            self._look(manager)

        played = manager.collect_experiences(self.config.training.steps_per_epoch, before_wait=look)
        self._collected_at = time.monotonic()
        stale = manager.account().discarded["stale"]
        for stream in self.streams:
            stream.may_skip = stream.may_skip or stale != self.stale
        self.stale = stale
        for one in played:
            self.streams[one.worker].check(one, self.agent.version, self.options.lag)
            self.replacements.delivered(one)
            self.games += len(one.results)
        training = self.config.training
        buffer = ExperienceBuffer(gamma=training.gamma, gae_lambda=training.gae_lambda)
        buffer.add_batch(played)
        metrics = self.agent.learn(buffer, before_minibatch=look, exchange=manager.exchange)
        self.loss = metrics["loss/total"]
        if not math.isfinite(self.loss) or metrics["update/skipped"]:
            raise Breach("loss", f"{self.loss}, {metrics['update/skipped']:g} gradient steps were not finite")
        self.updates += 1
        manager.synchronize_models()
        manager.metrics()  # as the training loop does; starts a new lap

    def _look(self, manager: ParallelManager) -> None:
        manager.supervise()
        workers = manager.workers
        self.replacements.look(workers)
        self.resources.look(workers)
        self.account = manager.account()
        if manager.get_statistics()["is_serial"]:
            raise Breach("serial", "no worker is left; they died more often than they were hit")
        waited = time.monotonic() - self._collected_at
        if waited > self.options.patience * STALL_SECONDS:
            raise Breach("stall", f"no experience for {waited:.1f} s: {self.account}")

    def _progress(self) -> str:
        newest = self.resources.samples[-1] if self.resources.samples else None
        memory = (
            f", learner {newest.learner_bytes / 1e6:.0f} MB, a worker {newest.worker_bytes / 1e6:.0f} MB"
            if newest
            else ""
        )
        return (
            f"{self.seconds:.0f} s: {self.updates:,} updates, {self.injector.happened.total()} faults, "
            f"{sum(map(len, self.replacements.seconds.values()))} replaced; {self.account}{memory}"
        )

    def figures(self) -> dict[str, Any]:
        """Return the whole report as plain values."""
        samples, replaced = self.resources.samples, self.replacements.seconds
        first, last = (samples[0], samples[-1]) if samples else (None, None)
        return {
            "seed": self.options.seed,
            "workers": self.options.workers,
            "lag": self.options.lag,
            "seconds": round(self.seconds, 1),
            "updates": self.updates,
            "games": self.games,
            "loss": self.loss,
            "faults": {kind: self.injector.happened[kind] for kind in SIGNALS},
            "restarts": sum(worker["restarts"] for worker in self.statistics.get("worker_stats", [])),
            "steps": {
                "generated": self.account.generated,
                "trained": self.account.trained,
                "in_flight": self.account.in_flight,
                "discarded": dict(self.account.discarded),
            },
            "replaced": {
                what: {
                    "count": len(seconds),
                    "p50": round(percentile(seconds, 50), 3),
                    "p95": round(percentile(seconds, 95), 3),
                }
                for what, seconds in replaced.items()
            },
            "memory": {
                field: {
                    "begin": getattr(first, field, 0),
                    "end": getattr(last, field, 0),
                    "growth": round(self.resources.growth(field)),
                }
                for field in ("learner_bytes", "worker_bytes", "files", "threads")
            },
        }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the given percentile, 0 if there are no values."""
    return float(np.percentile(values, share)) if values else 0.0


def make_config(workers: int, lag: int, patience: float) -> AppConfig:
    """Return the config of a run that is small in everything but the number of updates."""
    moves = workers * GAMES * MOVES
    changes = {
        "env.max_moves": 60,
        "training.games": workers * GAMES,
        "training.steps_per_epoch": moves,
        "training.minibatch_size": moves // 4,
        "training.parallel.enabled": "true",
        "training.parallel.num_workers": workers,
        "training.parallel.episodes_per_worker": GAMES,
        "training.parallel.max_policy_lag": lag,
        "training.parallel.worker_timeout": patience * TIMEOUT_SECONDS,
    }
    return load_config("tiny", [f"{name}={value}" for name, value in changes.items()])


def table(figures: Mapping[str, Any]) -> str:
    """Return the report as text."""
    steps, replaced, memory = figures["steps"], figures["replaced"], figures["memory"]
    rows = [
        ("time", f"{figures['seconds']:g} s, {figures['updates']:,} updates, {figures['games']:,} games"),
        ("faults", ", ".join(f"{count} {kind}" for kind, count in figures["faults"].items())),
        ("restarts", f"{figures['restarts']}"),
        ("moves", f"{steps['generated']:,} generated, {steps['trained']:,} trained on"),
        ("discarded", ", ".join(f"{count:,} {why}" for why, count in steps["discarded"].items() if count)),
        *(
            (what, f"{row['count']} replaced, p50 {row['p50']:.2f} s, p95 {row['p95']:.2f} s")
            for what, row in replaced.items()
        ),
    ]
    for field, row in memory.items():
        scale, unit = (1e6, " MB") if field.endswith("bytes") else (1, "")
        numbers = (f"{row[key] / scale:.1f}{unit}" for key in ("begin", "end", "growth"))
        rows.append((field.removesuffix("_bytes"), "{} to {}, growth {}".format(*numbers)))
    return "\n".join(f"{name:10} {text}" for name, text in rows)


def positive_number(text: str) -> float:
    """Return the number of an argument that must be above 0."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a soak and report how it went."""
    parser = argparse.ArgumentParser(
        description="Train with workers while injecting faults; exit code 1 is a breach."
    )
    parser.add_argument("--duration", type=positive_number, required=True, help="seconds")
    parser.add_argument("--workers", type=int, choices=range(1, 65), metavar="1 to 64", default=4)
    parser.add_argument("--faults-per-minute", type=float, default=15)
    parser.add_argument(
        "--lag", type=int, default=0, help="max_policy_lag; 0: workers and learner take turns"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the fault schedule")
    parser.add_argument(
        "--patience", type=positive_number, default=1, help="factor on all time limits (default 1)"
    )
    parser.add_argument("--json", type=Path, help="also write the report to this file")
    options = parser.parse_args(arguments)
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json is {options.json}, but there is no directory {options.json.parent}")
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        soak = Soak(options, Path(folder))
        breach = soak.run()
    figures = soak.figures() | {"breach": breach}
    print(table(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(f"breach: {breach}" if breach else "no breach", flush=True)
    return 1 if breach else 0


if __name__ == "__main__":
    sys.exit(main())
