"""ClusterHands: hands on the nodes of a Ray cluster. The learner's side; Ray itself is in the bridge.

Places wait in one line, and nodes with a free worker take the next one. A segment counts if it is the next
of its place, whoever played it: a second copy, and what comes from a node that was given up, does not.
"""

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from keisei.config.config_errors import ConfigError
from keisei.config.schema import ParallelConfig
from keisei.core.segment import Segment, SegmentShape
from keisei.core.self_play import SavedGames
from keisei.training.cluster.access import check_access
from keisei.training.cluster.bridge_process import BridgeProcess
from keisei.training.cluster.machine_facts import Facts, described, machine_facts, warnings, why_not
from keisei.training.cluster.messages import KEPT_GAMES, ClusterKind, frame, pack, unpack
from keisei.training.cluster.pulling import Asked, Player, Task, assignments
from keisei.training.parallel.communication import ChannelStatus, Failure, WorkerSegment, unpack_results
from keisei.training.parallel.hands import Hire, Job
from keisei.training.parallel.supervisor import WorkerError
from keisei.training.parallel.wire import DamagedError
from keisei.training.parallel.worker_status import WORK_PHASES, State, WorkerStatus

_NODES_SECONDS = 5.0  # for the first node to appear after the cluster has answered
_SAME_FAILURES = 3
_REFUSED_SECONDS = 300.0  # until a node that could not be used is looked at again
# A connection between machines may be silent for so long, however few seconds cost a worker its life.
_FEWEST_SECONDS = 5.0
# A site ends a silent foreman so much later than the bridge gives it up: it is the bridge that says why.
_LATER_SECONDS = 5.0


@dataclass(slots=True, eq=False)
class _Node:
    """A node of the cluster. hire: counts its foremen. player: what it was asked for, and how fast it is.

    seen: what it has told, 0 at each hire. before: the same of earlier hires. kept: for each of its latest
    segments the place and the number of the next one, for which its site has the games; None if the segment
    was not used. arrived: the version of the newest weights there.
    """

    number: int
    host: str
    cores: int
    hire: int = 0
    state: State = "starting"
    hired: bool = False
    failed: bool = False  # at its last attempt
    player: Player = field(default_factory=Player)
    facts: Facts | None = None
    seen: dict[str, Any] = field(default_factory=dict)
    kept: deque[tuple[int, int] | None] = field(default_factory=deque)
    arrived: int = -1
    steps_before: int = 0
    games_before: int = 0
    seconds_before: Counter[str] = field(default_factory=Counter)
    last_error: str = ""
    marked_at: float = field(default_factory=time.monotonic)
    marked_busy: float = 0.0

    @property
    def name(self) -> str:
        return f"node {self.number} ({self.host})"


class ClusterHands:
    """The hands of a cluster, seen from the learner. bridge: the process that uses Ray.

    insecure: nodes need not ask for a token.
    """

    def __init__(self, job: Job, bridge: BridgeProcess, *, insecure: bool) -> None:
        self._job, self._bridge, self._insecure = job, bridge, insecure
        self._places, self._lag = job.places, job.config.training.parallel.max_policy_lag
        self._ours = machine_facts()
        self._nodes: dict[int, _Node] = {}
        self._paused = False
        self._generation = self._commands = 0
        self._published_at = self._broadcast_seconds = 0.0
        self._published_to: set[int] = set()  # nodes that are to get the newest weights, as soon as they can
        self._connected_at: float | None = None
        self._was_connected = self._anything_delivered = False
        self._failures: Counter[str] = Counter()
        self._last_played: dict[int, int] = {}  # node, by place
        patience = _patience(job.config.training.parallel)
        self._start = pack(
            {
                "config": job.config.model_dump(mode="json"),
                "numerics": asdict(job.numerics),
                "layout": job.synchronizer.layout(),
                "steps": job.longest.steps,
                "candidates": job.longest.candidates,
                "supervision": asdict(job.supervision),
                "patience": patience + _LATER_SECONDS,
            }
        )
        self._connect = {
            "timeout": patience,
            "start_seconds": job.supervision.start_seconds,
            "backoff": job.supervision.first_backoff_seconds,
        }

    # Commands

    def weights_published(self) -> None:
        """Send the cluster the newest weights: once to the bridge, from there once to each node."""
        self._published_at = time.monotonic()
        self._published_to = {node.number for node in self._ready()}
        self._send_weights()

    def grant(self) -> None:
        """Let nodes with free workers take what places owe."""
        if self._paused or not self._bridge.is_running:
            return
        sequences = {place: self._places.sequence(place) for place in range(len(self._places))}
        owing = [place for place in sequences if self._places.owed(place)]
        players = {node.number: node.player for node in self._ready()}
        tasks = [Task(place, sequences[place], self._last_played.get(place)) for place in owing]
        moves = self._places.steps * self._job.longest.streams
        for number, task in assignments(players, tasks, moves, time.monotonic()):
            self._ask(self._nodes[number], task, moves)

    def supervise(self, timeout: float) -> None:
        """Receive what nodes have played; start another bridge if there is none."""
        if not self._bridge.is_running and self._bridge.start_if_due(self._connect, self._start):
            self._send_weights()
        try:
            for kind, body in self._bridge.receive(timeout):
                self._hear(kind, body)
        except DamagedError as error:  # whose message it was cannot be told
            self._bridge.refused(f"it sent damaged data ({error})", fatal=False)
        if why := self._bridge.why_gone():
            self._lose_bridge(why)
        self._job.statistics.looked(self._places.waiting)

    def games_changed(self) -> None:
        """Do not count what is under way."""
        self._generation += 1

    def pause(self) -> None:
        """Pause all nodes, including those that come later."""
        self._command(ClusterKind.PAUSE)

    def resume(self) -> None:
        """Resume all nodes."""
        self._command(ClusterKind.RESUME)

    def dismiss(self) -> None:
        """End the bridge, and with it all foremen, sites and workers."""
        self._bridge.leave()
        for node in self._hired():
            self._ended(node, "shutdown")

    # Status

    @property
    def paused(self) -> bool:
        """Whether the nodes are paused."""
        return self._paused

    @property
    def starting(self) -> bool:
        """Whether a first node is still to be expected."""
        if self.ready:
            return False
        if self._connected_at is None:
            return not self._bridge.has_failed
        expected = [node for node in self._nodes.values() if not node.failed]
        recently = time.monotonic() - self._connected_at < _NODES_SECONDS
        if self._nodes and all(node.state == "given up" for node in self._nodes.values()):
            return False
        return bool(expected) or (not self._nodes and recently)

    @property
    def ready(self) -> bool:
        """Whether a node can play now."""
        return any(True for _ in self._ready())

    @property
    def reliable(self) -> list[int]:
        """All places if there is a node to play them; otherwise none, and the learner plays."""
        return list(range(len(self._places))) if self.ready else []

    @property
    def outlook(self) -> str:
        """What happens while there is no node, in words."""
        return "nodes play again as soon as there is one"

    @property
    def exchange(self) -> None:
        """None: nodes only play."""

    @property
    def shares_taken_over(self) -> int:
        """None."""
        return 0

    def asked_for(self) -> dict[int, int]:
        """Return the moves that each node has been asked for; it tells itself what it has played."""
        return {
            node.number: sum(asked.moves for asked in node.player.asked.values()) for node in self._hired()
        }

    def statuses(self) -> list[WorkerStatus]:
        """Return the status of each node as that of one worker."""
        return [self._status(node) for node in self._nodes.values()]

    def seconds(self) -> list[dict[str, float]]:
        """Return how the workers of each node have spent their time so far, by phase."""
        return [self._seconds(node) for node in self._nodes.values()]

    def channels(self) -> list[ChannelStatus]:
        """Return how much each node has been asked for."""
        return [
            ChannelStatus(node.number, node.hire - 1, len(node.player.asked), node.player.workers, 0)
            for node in self._hired()
        ]

    def mark_utilization(self) -> None:
        """Measure utilisation from now on."""
        for node in self._nodes.values():
            node.marked_at, node.marked_busy = time.monotonic(), _busy(self._seconds(node))

    def metrics(self) -> Mapping[str, float]:
        """Return how many nodes play, with how many workers, and how the weights reach them."""
        newest = self._job.synchronizer.version
        return {
            "parallel/broadcast_milliseconds": 1000 * self._broadcast_seconds,
            "parallel/nodes_behind": sum(node.arrived < newest for node in self._ready()),
            "parallel/nodes": sum(1 for _ in self._ready()),
            "parallel/node_workers": sum(node.player.workers for node in self._ready()),
        }

    def _ready(self) -> Iterator[_Node]:
        return (node for node in self._hired() if node.player.workers)

    def _hired(self) -> Iterator[_Node]:
        return (node for node in self._nodes.values() if node.hired)

    def _status(self, node: _Node) -> WorkerStatus:
        state = node.state
        if state == "playing":
            state = "paused" if self._paused else "playing" if node.player.asked else "waiting"
        elapsed = max(time.monotonic() - node.marked_at, 1e-9) * max(1, node.player.workers)
        busy = _busy(self._seconds(node)) - node.marked_busy
        return WorkerStatus(
            worker=node.number,
            state=state,
            incarnation=max(0, node.hire - 1),
            pid=None,
            utilization=min(1.0, max(0.0, busy / elapsed)),
            steps=node.steps_before + node.seen.get("generated", 0),
            games=node.games_before + node.seen.get("games", 0),
            weights_version=node.seen.get("version", -1),
            restarts=max(0, node.hire - 1) + node.seen.get("restarts", 0),
            memory_bytes=node.seen.get("memory", 0),
            last_error=node.last_error,
        )

    def _seconds(self, node: _Node) -> dict[str, float]:
        seen = node.seen.get("seconds", {})
        return {phase: node.seconds_before[phase] + seen.get(phase, 0.0) for phase in WORK_PHASES}

    # Messages down

    def _ask(self, node: _Node, task: Task, moves: int) -> None:
        place, steps = task.place, self._places.steps
        games = self._places.games_of(place)
        # With lag, a node may go on with weights that are a little older than the newest.
        version = max(0, self._job.synchronizer.version - max(0, self._lag - 1))
        node.player.asked[place, task.sequence] = Asked(moves, version, self._generation, time.monotonic())
        fields = {"place": place, "sequence": task.sequence, "version": version, "steps": steps}
        if (place, task.sequence) in node.kept:
            message = pack(fields)
        else:
            message = pack({**fields, "state": games.state}, games.games)
        self._post(node, ClusterKind.PLAY, message)

    def _post(self, node: _Node, kind: ClusterKind, body: bytes) -> None:
        head = {"node": node.number, "hire": node.hire}
        self._bridge.post(ClusterKind.FOR_NODE, pack(head, frame(kind, body)))

    def _command(self, kind: ClusterKind) -> None:
        self._paused = kind is ClusterKind.PAUSE
        self._commands += 1
        for node in self._hired():
            self._post(node, kind, pack({"number": self._commands}))

    def _send_weights(self) -> None:
        synchronizer = self._job.synchronizer
        if self._bridge.is_running and synchronizer.version >= 0:
            body = pack({"version": synchronizer.version}, synchronizer.packed)
            self._bridge.post(ClusterKind.WEIGHTS, body)

    # Messages up

    def _hear(self, kind: ClusterKind, body: bytes) -> None:
        fields, data = unpack(body)
        if kind is ClusterKind.CONNECTED:
            self._connected_at, self._was_connected = time.monotonic(), True
        elif kind is ClusterKind.REFUSED:
            self._bridge.refused(fields["text"], fatal=not self._was_connected)
        elif kind is ClusterKind.HIRED:
            self._hired_on(fields)
        elif kind is not ClusterKind.SIGN_OF_LIFE:
            node = self._nodes.get(fields["node"])
            if node is None or not node.hired or node.hire != fields["hire"]:
                return  # from a foreman that was given up: somebody else plays that
            try:
                self._hear_node(node, kind, fields, data)
            except (DamagedError, KeyError, TypeError, ValueError) as error:
                self._release(node, "damaged", f"sent damaged data ({error})")

    def _hear_node(self, node: _Node, kind: ClusterKind, fields: dict[str, Any], data: memoryview) -> None:
        if kind is ClusterKind.READY:
            self._is_ready(node, fields["facts"])
        elif kind is ClusterKind.SEGMENT:
            self._note(node, fields["status"])
            self._receive(node, fields, data)
        elif kind is ClusterKind.STATUS:
            self._note(node, fields["status"])
        elif kind is ClusterKind.ARRIVED:
            node.arrived = fields["version"]
            if node.number in self._published_to and node.arrived == self._job.synchronizer.version:
                self._published_to.remove(node.number)
                self._broadcast_seconds = time.monotonic() - self._published_at  # the last one's stays
        elif kind is ClusterKind.NOTE:
            if "text" in fields:
                self._job.notice(f"{node.name}: {fields['text']}")
            else:
                self._job.log(f"{node.name}: {fields['log']}")
        elif kind is ClusterKind.FAILED:
            node.last_error = fields["traceback"]
            self._job.log(f"{node.name}:\n{node.last_error}")
            self._release(node, "failed", f"failed ({fields['error']})")
            self._failures[fields["error"]] += 1
            if not self._anything_delivered and self._failures[fields["error"]] >= _SAME_FAILURES:
                raise WorkerError(Failure(fields["error"], fields["traceback"]))
        elif kind is ClusterKind.LOST:
            self._lose(node, fields["reason"], f"{fields['reason']} ({fields['text']})")

    def _hired_on(self, fields: dict[str, Any]) -> None:
        number = fields["node"]
        node = self._nodes.setdefault(number, _Node(number, fields["host"], fields["cores"]))
        if node.hired:
            self._ended(node, "died")
        node.hire, node.hired = fields["hire"], True
        node.host, node.cores = fields["host"], fields["cores"]
        node.state = "restarting" if node.failed else "starting"
        node.player, node.seen, node.arrived = Player(), {}, -1
        node.kept = deque(maxlen=KEPT_GAMES // 2 * node.cores)
        self._places.ledger.begin(number)

    def _is_ready(self, node: _Node, facts: Facts) -> None:
        """Compare a node with this machine; say what it is, or why it is not used."""
        node.facts = facts
        if why := why_not(facts, self._ours, self._job.numerics, insecure=self._insecure):
            self._job.notice(f"{node.name} is not used: {why}")
            self._bridge.release(node.number, node.hire, _REFUSED_SECONDS)
            self._ended(node, "failed")
            node.state, node.failed, node.last_error = "given up", True, why
            return
        node.state = "playing"
        if node.hire == 1:
            self._job.notice(f"{node.name} plays with {node.cores} workers: {described(facts)}")
        else:
            self._job.notice(f"{node.name} is back")
        for line in warnings(facts, self._ours, self._job.numerics):
            self._job.notice(f"{node.name}: {line}")
        node.failed = False
        if self._paused:
            self._post(node, ClusterKind.PAUSE, pack({"number": self._commands}))

    def _note(self, node: _Node, status: dict[str, Any]) -> None:
        """Take in what a node tells of itself; messages may arrive in another order than they were sent."""
        if status["number"] <= node.seen.get("number", 0):
            return
        ledger, before = self._places.ledger, node.seen.get("discarded", {})
        ledger.shown(node.number, status["generated"])
        for reason, count in status["discarded"].items():
            if count > before.get(reason, 0):
                ledger.dropped(node.number, count - before.get(reason, 0), reason)
        node.seen = status
        node.player.workers = status["running"]

    def _receive(self, node: _Node, fields: dict[str, Any], data: memoryview) -> None:
        place, sequence, version = fields["place"], fields["sequence"], fields["version"]
        asked = node.player.asked.get((place, sequence))
        if asked is None:
            raise DamagedError(f"segment {sequence} of place {place}, but that was not requested")
        shape = SegmentShape(fields["steps"], fields["streams"], candidates=self._job.longest.candidates)
        of_results, of_games = fields["sizes"]
        if shape.moves != asked.moves or version < asked.version:
            raise DamagedError(f"{shape.moves} moves of version {version}, expected {asked}")
        if len(data) != of_results + of_games + shape.nbytes:
            raise DamagedError(f"{len(data)} bytes do not match {shape}")
        node.player.delivered(place, sequence, time.monotonic())
        node.kept.append(None)  # its site counts this one too
        if asked.generation != self._generation or self._places.sequence(place) != sequence:
            late = asked.generation == self._generation
            self._places.refuse(node.number, shape.moves, "twice" if late else "reset")
            return
        self._anything_delivered = True
        self._last_played[place] = node.number
        node.kept[-1] = place, sequence + 1
        begin = of_results + of_games
        one = WorkerSegment(
            Segment.over(bytearray(data[begin:]), shape),
            unpack_results(bytes(data[:of_results])),
            SavedGames(bytes(data[of_results:begin]), fields["state"]),
            worker=place,
            incarnation=node.hire - 1,
            sequence=sequence,
            version=version,
        )
        self._places.deliver(node.number, one)

    # Ends

    def _release(self, node: _Node, reason: str, what: str) -> None:
        """Give a node's foreman up, which may not know that yet."""
        self._bridge.release(node.number, node.hire, self._job.supervision.longest_backoff_seconds)
        self._lose(node, reason, what)

    def _lose(self, node: _Node, reason: str, what: str) -> None:
        asked = sum(asked.moves for asked in node.player.asked.values())
        self._job.statistics.restarts += 1
        self._ended(node, reason)
        node.state, node.failed = "restarting", True
        self._job.notice(f"{node.name} {what}; {asked:,} moves are played elsewhere")

    def _ended(self, node: _Node, reason: str) -> None:
        self._places.ledger.end(node.number, reason)
        node.steps_before += node.seen.get("generated", 0)
        node.games_before += node.seen.get("games", 0)
        node.seconds_before.update(node.seen.get("seconds", {}))
        node.hired, node.seen, node.player = False, {}, Player()

    def _lose_bridge(self, why: str) -> None:
        for node in self._hired():
            self._ended(node, "died")
            node.state, node.failed = "restarting", True
        if self._connected_at is not None:
            self._job.notice(f"the connection to the cluster is lost ({why}); trying again")
        self._connected_at = None
        if not self._was_connected:
            raise ConfigError(f"training.parallel.cluster: cannot connect: {why}")


def _busy(seconds: Mapping[str, float]) -> float:
    return seconds["env"] + seconds["inference"] + seconds["sampling"]


def _patience(parallel: ParallelConfig) -> float:
    """Return how many seconds of silence cost a bridge, a foreman or a site its place."""
    return max(_FEWEST_SECONDS, parallel.worker_timeout)


def cluster_hands(parallel: ParallelConfig, folder: Path | None = None) -> Hire:
    """Return what makes the hands of the configured cluster; ConfigError if it cannot be used from here.

    folder: where a file for Ray's own words is made; temporary if None.
    """
    assert parallel.cluster is not None, "no cluster is configured"
    check_access(parallel.cluster, insecure=parallel.insecure)
    bridge = BridgeProcess(
        parallel.cluster,
        insecure=parallel.insecure,
        errors=None if folder is None else folder / "ray.log",
        patience=_patience(parallel),
    )
    return lambda job: ClusterHands(job, bridge, insecure=parallel.insecure)
