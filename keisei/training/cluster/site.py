"""Site: the process on a node that has the node's workers, and gives them whatever place comes next.

It is what ParallelManager is on one machine, without a learner: worker processes are supervised and replaced
as there. Tasks and weights come in, segments go out. It ends when nobody reads from it any more.
"""

import os
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from keisei.config.schema import config_from
from keisei.core.device import keep_freed_memory
from keisei.core.numerics import Numerics
from keisei.core.segment import SegmentShape
from keisei.core.self_play import SavedGames
from keisei.training.cluster.machine_facts import machine_facts
from keisei.training.cluster.messages import KEPT_GAMES, ClusterKind, pack, unpack
from keisei.training.parallel.communication import WorkerSegment, pack_results
from keisei.training.parallel.hands import Job
from keisei.training.parallel.local_hands import LocalHands
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_statistics import ParallelStatistics
from keisei.training.parallel.places import Places
from keisei.training.parallel.supervised_worker import Supervision
from keisei.training.parallel.supervisor import WorkerError
from keisei.training.parallel.wire import Wire
from keisei.training.parallel.worker_setup import begin_games

_STATUS_SECONDS = 0.25
_LONGEST_LOOK = 1.0  # seconds of silence that one look may add
_CHUNK_SECONDS = 0.002  # between two attempts to send what could not be sent at once
_SEND_SECONDS = 0.02  # to wait at once for the socket to take a segment
_LAST_SECONDS = 5.0  # to wait, before leaving, for the foreman to take what is left

Messages = list[tuple[ClusterKind, bytes]]


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A segment to play: of this place and number, with weights of `version` or newer.

    goes_on: the segment before was played at this site, so the worker that did it has the games.
    """

    place: int
    sequence: int
    version: int
    steps: int
    games: SavedGames
    goes_on: bool


class _LeaveError(Exception):
    """The learner is gone, or has ended this site."""


class Site:
    """The workers of a node. wire: to the foreman, a process id. start: the fields of the START message."""

    def __init__(self, wire: Wire[ClusterKind], start: dict[str, Any], foreman: int) -> None:
        config = config_from(start["config"])
        workers = int(start["workers"])
        parallel = config.training.parallel.model_copy(update={"num_workers": workers, "queue_maxsize": 1})
        training = config.training.model_copy(update={"parallel": parallel})
        self._foreman, self._patience = foreman, float(start["patience"])
        self._silent_seconds, self._listened_at = 0.0, time.monotonic()
        self._wire, self._hire = wire, {"node": start["node"], "hire": start["hire"]}
        # Some valid games for workers to begin with; each task brings its own.
        self._places = Places(begin_games(config, 1) * workers)
        self._synchronizer = ModelSynchronizer.of_layout(start["layout"])
        self._statistics = ParallelStatistics(workers)
        self._hands = LocalHands(
            Job(
                config.model_copy(update={"training": training}),
                Numerics(**start["numerics"]),
                self._places,
                self._synchronizer,
                self._statistics,
                SegmentShape(start["steps"], parallel.episodes_per_worker, candidates=start["candidates"]),
                Supervision(**start["supervision"]),
                notice=lambda line: self._send(ClusterKind.NOTE, {"text": line}),
                log=lambda text: self._send(ClusterKind.NOTE, {"log": text}),
            )
        )
        self._tasks: deque[_Task] = deque()
        self._playing: dict[int, _Task] = {}  # by worker
        self._has: dict[int, tuple[int, int]] = {}  # place and number of the next segment, by worker
        self._kept: dict[tuple[int, int], SavedGames] = {}  # by place and number of the next segment
        self._told_at = 0.0
        self._commanded = self._told = 0  # the newest command, and how many statuses were sent

    def run(self, messages: Messages) -> None:
        """Play until the learner is gone; WorkerError if the workers cannot. messages: the first ones."""
        self._take(messages)
        try:
            while True:
                timeout = _CHUNK_SECONDS if self._wire.unsent else _STATUS_SECONDS
                self._hands.supervise(timeout, wake=[self._wire.socket.fileno()])
                self._take(self._hear())
                self._hand_in()
                self._hand_out()
                self._hands.grant()
                if time.monotonic() - self._told_at > _STATUS_SECONDS:
                    self._send(ClusterKind.STATUS, {"status": self._status()})
                    self._told_at = time.monotonic()
                self._wire.flush()
        finally:
            self._hands.dismiss()

    def _hear(self) -> Messages:
        """Return what has arrived; leave if the foreman is gone, or silent for too long."""
        try:
            messages = self._wire.receive()
        except EOFError as error:
            raise _LeaveError from error
        now = time.monotonic()
        # A site that was stopped itself must not blame the foreman.
        self._silent_seconds += min(now - self._listened_at, _LONGEST_LOOK)
        self._listened_at = now
        if messages:
            self._silent_seconds = 0.0
        elif self._silent_seconds > self._patience:
            with suppress(ProcessLookupError):  # so that its cores are free for another one
                os.kill(self._foreman, signal.SIGKILL)
            raise _LeaveError
        return messages

    def _take(self, messages: Messages) -> None:
        for kind, body in messages:
            fields, data = unpack(body)
            if kind is ClusterKind.WEIGHTS:
                if fields["version"] > self._synchronizer.version:
                    self._synchronizer.publish_packed(data, fields["version"])
            elif kind is ClusterKind.PLAY:
                self._tasks.append(self._task(fields, data))
            elif kind in (ClusterKind.PAUSE, ClusterKind.RESUME):
                if fields["number"] > self._commanded:  # messages may overtake each other
                    self._commanded = fields["number"]
                    (self._hands.pause if kind is ClusterKind.PAUSE else self._hands.resume)()
            elif kind is ClusterKind.LEAVE:
                raise _LeaveError

    def _task(self, fields: dict[str, Any], data: memoryview) -> _Task:
        """Return what is asked for: with the games sent, or those after the segment played here before."""
        place, sequence = fields["place"], fields["sequence"]
        goes_on = "state" not in fields
        games = self._kept[place, sequence] if goes_on else SavedGames(bytes(data), fields["state"])
        return _Task(place, sequence, fields["version"], fields["steps"], games, goes_on)

    def _hand_in(self) -> None:
        """Send what workers have delivered; take back what one that was given up had."""
        with self._places.collection() as taken:
            self._places.take(sys.maxsize, 0)
        for one in taken:
            task = self._playing.pop(one.worker)
            self._has[one.worker] = task.place, task.sequence + 1
            self._deliver(task, one)
        for worker in [worker for worker in self._playing if not self._places.owed(worker)]:
            self._tasks.appendleft(self._playing.pop(worker))
        if not self._hands.reliable:
            raise RuntimeError("all workers were given up")

    def _hand_out(self) -> None:
        """Give tasks to workers that have none, each if possible the games that it has."""
        free = [worker for worker in self._hands.running if worker not in self._playing]
        while free and self._tasks:
            task = self._tasks[0]
            other_length = bool(self._playing) and task.steps != self._places.steps
            if other_length or task.version > self._synchronizer.version:
                return
            self._tasks.popleft()
            place = task.place, task.sequence
            having = [one for one in free if task.goes_on and self._has.get(one) == place]
            worker = (having or free)[0]
            free.remove(worker)
            self._playing[worker] = task
            self._has.pop(worker, None)
            if not having:
                self._places.switch(worker, task.games)
                self._hands.send_games(worker)
            self._places.owe(worker, task.steps)

    def _deliver(self, task: _Task, one: WorkerSegment) -> None:
        segment = one.segment
        arrays = [getattr(segment, name).tobytes() for name, *_ in segment.shape.layout()]
        results = pack_results(one.results)
        fields = {
            "place": task.place,
            "sequence": task.sequence,
            "version": one.version,
            "steps": segment.shape.steps,
            "streams": segment.shape.streams,
            "sizes": [len(results), len(one.saved.games)],
            "state": one.saved.state,
            "status": self._status(),
        }
        self._kept[task.place, task.sequence + 1] = one.saved
        while len(self._kept) > KEPT_GAMES * len(self._places):
            del self._kept[next(iter(self._kept))]
        self._send(ClusterKind.SEGMENT, fields, results, one.saved.games, *arrays)
        # At once, though a socket takes less than a segment: the foreman reads all the time. If not, later.
        until = time.monotonic() + _SEND_SECONDS
        while self._wire.unsent and (left := until - time.monotonic()) > 0:
            select.select([], [self._wire.socket], [], left)
            self._wire.flush()

    def _status(self) -> dict[str, Any]:
        """Return the account and how the workers are, as plain values."""
        account = self._places.account(self._hands.asked_for())
        workers = self._hands.statuses()
        seconds = self._hands.seconds()
        self._told += 1
        return {
            "number": self._told,
            "generated": account.generated,
            "discarded": {reason: count for reason, count in account.discarded.items() if count},
            "running": len(self._hands.running),
            "playing": sum(worker.state == "playing" for worker in workers),
            "waiting": len(self._tasks),
            "games": sum(worker.games for worker in workers),
            "version": self._synchronizer.version,
            "restarts": sum(worker.restarts for worker in workers),
            "memory": sum(worker.memory_bytes for worker in workers),
            "seconds": {phase: sum(one[phase] for one in seconds) for phase in seconds[0]},
        }

    def _send(self, kind: ClusterKind, fields: dict[str, Any], *parts: bytes) -> None:
        self._wire.post(kind, pack({**self._hire, **fields}, *parts))


def main(descriptor: int, foreman: int) -> None:
    """Be a site, for the foreman with this process id at the other end of this socket."""
    # A terminal sends these to every process of a local cluster; the learner handles them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    keep_freed_memory()
    wire = Wire(socket.socket(fileno=descriptor), ClusterKind)
    messages = _first(wire)
    if not messages:
        return
    start, _ = unpack(messages[0][1])
    hire = {"node": start["node"], "hire": start["hire"]}
    # Before anything that another version might not be able to read: the learner refuses that in a line.
    wire.post(ClusterKind.READY, pack({**hire, "facts": machine_facts(), "pid": os.getpid()}))
    try:
        Site(wire, start, foreman).run(messages[1:])
    except _LeaveError:
        return
    except BaseException as error:
        text = str(error) if isinstance(error, WorkerError) else f"{type(error).__name__}: {error}"
        wire.post(ClusterKind.FAILED, pack({**hire, "error": text, "traceback": traceback.format_exc()}))
        until = time.monotonic() + _LAST_SECONDS
        while wire.unsent and time.monotonic() < until:  # what it sent before may not be on its way yet
            time.sleep(_CHUNK_SECONDS)
            wire.flush()
        sys.exit(1)


def _first(wire: Wire[ClusterKind]) -> Messages:
    """Wait for the first messages; empty if the foreman is gone before."""
    while True:
        try:
            messages = wire.receive()
        except EOFError:
            return []
        if messages:
            return messages
        time.sleep(0.01)
