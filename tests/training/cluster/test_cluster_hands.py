"""ClusterHands without Ray: what counts once, what is refused, and what a node's end does to the account.

The bridge is played by the test: it keeps what is posted, and hands in what nodes would have sent.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from parallel_play import begun, small_config

from keisei.core.numerics import Numerics
from keisei.core.segment import Segment
from keisei.core.self_play import SelfPlay, segment_shape
from keisei.training.cluster.cluster_hands import ClusterHands
from keisei.training.cluster.machine_facts import machine_facts
from keisei.training.cluster.messages import KEPT_GAMES, ClusterKind, pack, unpack
from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.hands import Job
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_statistics import ParallelStatistics
from keisei.training.parallel.places import Places
from keisei.training.parallel.supervised_worker import Supervision

STEPS, GAMES = 3, 8
MOVES = STEPS * GAMES


class PlayedBridge:
    """The learner's end of a bridge that the test plays."""

    def __init__(self) -> None:
        self.is_running, self.gone = True, ""
        self.inbox: list[tuple[ClusterKind, bytes]] = []
        self.asked: list[tuple[int, int, int]] = []  # node, place, sequence
        self.with_games: list[bool] = []  # whether the games were sent with what was asked
        self.released: list[int] = []
        self.started: list[tuple[Mapping[str, Any], bytes]] = []

    def start_if_due(self, connect: Mapping[str, Any], start: bytes) -> bool:
        self.started.append((connect, start))
        return False

    def post(self, kind: ClusterKind, body: bytes) -> None:
        if kind is ClusterKind.FOR_NODE:
            head, message = unpack(body)
            if message[4] == ClusterKind.PLAY:
                fields, _ = unpack(message[5:])
                self.asked.append((head["node"], fields["place"], fields["sequence"]))
                self.with_games.append("state" in fields)

    def receive(self, timeout: float) -> list[tuple[ClusterKind, bytes]]:  # noqa: ARG002
        messages, self.inbox = self.inbox, []
        return messages

    def why_gone(self) -> str:
        why, self.gone = self.gone, ""
        return why

    def refused(self, text: str, *, fatal: bool) -> None:  # noqa: ARG002
        self.gone = text

    def release(self, node: int, hire: int, seconds: float) -> None:  # noqa: ARG002
        self.released.append(node)


class Bench:
    """Two nodes with a worker each, and two places."""

    def __init__(self, timeout: float = 30.0) -> None:
        self.config = small_config(2, worker_timeout=timeout)
        self.places = Places(begun(self.config))
        self.notices: list[str] = []
        self.numbers = itertools.count(1)
        self.bridge = PlayedBridge()
        self.synchronizer = ModelSynchronizer({})
        self.synchronizer.publish({}, 0)
        self.shape = segment_shape(self.config, STEPS, GAMES)
        job = Job(
            self.config,
            Numerics(),
            self.places,
            self.synchronizer,
            ParallelStatistics(2),
            self.shape,
            Supervision(),
            self.notices.append,
            lambda _: None,
        )
        bridge: Any = self.bridge
        self.hands = ClusterHands(job, bridge, insecure=True)
        self.tell(ClusterKind.CONNECTED)
        for node in (0, 1):
            self.join(node)

    def tell(self, kind: ClusterKind, *parts: bytes, **fields: Any) -> None:
        self.bridge.inbox.append((kind, pack(fields, *parts)))
        self.hands.supervise(0.0)

    def join(self, node: int, hire: int = 1, **facts: Any) -> None:
        self.tell(ClusterKind.HIRED, node=node, hire=hire, host="host", cores=1)
        self.tell(ClusterKind.READY, node=node, hire=hire, facts={**machine_facts(), **facts})
        self.tell(ClusterKind.STATUS, node=node, hire=hire, status=self.status(0))

    def status(self, generated: int, **changes: Any) -> dict[str, Any]:
        known = {"generated": generated, "discarded": {}, "running": 1, "version": 0, "games": 0}
        return {"number": next(self.numbers), **known, **changes}

    def order(self, steps: int = STEPS) -> list[tuple[int, int, int]]:
        self.bridge.asked.clear()
        self.bridge.with_games.clear()
        self.places.order(2, steps, range(2))
        self.hands.grant()
        return self.bridge.asked

    def deliver(self, node: int, place: int, sequence: int, generated: int = MOVES, hire: int = 1) -> None:
        saved = SelfPlay.restore(self.places.games_of(place), self.config.env).save()
        self.tell(
            ClusterKind.SEGMENT,
            saved.games,
            bytes(self.shape.nbytes),
            node=node,
            hire=hire,
            place=place,
            sequence=sequence,
            version=0,
            steps=STEPS,
            streams=GAMES,
            sizes=[0, len(saved.games)],
            state=saved.state,
            status=self.status(generated),
        )

    def take(self) -> None:
        with self.places.collection():
            self.places.take(2 * MOVES, 0)

    def account(self) -> Any:
        return self.places.account(self.hands.asked_for())


def test_nodes_take_places_and_their_segments_count() -> None:
    bench = Bench()
    assert bench.order() == [(0, 0, 0), (1, 1, 0)]
    bench.deliver(1, 1, 0)
    bench.deliver(0, 0, 0)
    assert (bench.places.waiting, bench.account().generated) == (2, 2 * MOVES)
    assert [bench.places.sequence(place) for place in (0, 1)] == [1, 1]


def test_what_a_lost_node_had_goes_to_another_and_its_moves_are_accounted_for() -> None:
    bench = Bench()
    bench.order()
    bench.tell(ClusterKind.STATUS, node=0, hire=1, status=bench.status(8))
    bench.tell(ClusterKind.LOST, node=0, hire=1, reason="died", text="killed")
    assert bench.notices[-1] == f"node 0 (host) died (killed); {MOVES} moves are played elsewhere"
    assert bench.account().discarded["died"] == 8
    bench.deliver(1, 1, 0)
    assert bench.order() == [(1, 0, 0)]
    bench.deliver(0, 0, 0)  # too late: that foreman was given up
    assert bench.places.waiting == 1
    bench.deliver(1, 0, 0, 2 * MOVES)
    assert bench.places.waiting == 2


def test_a_status_that_was_overtaken_is_not_counted_again() -> None:
    bench = Bench()
    bench.order()
    older = bench.status(8)
    bench.tell(ClusterKind.STATUS, node=0, hire=1, status=bench.status(8, discarded={"hung": 8}))
    bench.tell(ClusterKind.STATUS, node=0, hire=1, status=older)
    bench.tell(ClusterKind.STATUS, node=0, hire=1, status=bench.status(8, discarded={"hung": 8}))
    assert bench.account().discarded["hung"] == 8


def test_a_second_copy_does_not_count() -> None:
    bench = Bench()
    bench.order()
    memory = Segment.over(bytearray(bench.shape.nbytes), bench.shape)
    own = WorkerSegment(memory, [], bench.places.games_of(0), 0, -1, 0, version=0)
    with bench.places.collection() as taken:
        bench.places.add_own(own)  # the learner has played the place itself
        bench.deliver(0, 0, 0)
        assert taken == [own]
    account = bench.account()
    assert (account.trained, account.discarded["twice"], bench.places.waiting) == (MOVES, MOVES, 0)


def test_games_that_a_node_still_has_are_not_sent_again() -> None:
    bench = Bench()
    bench.order()
    assert bench.bridge.with_games == [True, True]
    bench.deliver(0, 0, 0)
    bench.deliver(1, 1, 0)
    bench.take()
    assert bench.order() == [(0, 0, 1), (1, 1, 1)]
    assert bench.bridge.with_games == [False, False]
    bench.deliver(1, 1, 1, 2 * MOVES)
    bench.tell(ClusterKind.LOST, node=0, hire=1, reason="died", text="killed")
    bench.bridge.asked.clear()
    bench.bridge.with_games.clear()
    bench.hands.grant()
    assert bench.bridge.asked == [(1, 0, 1)]  # node 1 has never played these games
    assert bench.bridge.with_games == [True]


def test_games_after_a_segment_that_was_not_used_are_sent() -> None:
    bench = Bench()
    bench.order()
    with bench.places.collection():  # the learner plays place 0 itself, perhaps with other weights
        memory = Segment.over(bytearray(bench.shape.nbytes), bench.shape)
        bench.places.add_own(WorkerSegment(memory, [], bench.places.games_of(0), 0, -1, 0, version=0))
        bench.deliver(0, 0, 0)
    bench.deliver(1, 1, 0)
    bench.take()
    assert sorted(zip(bench.order(), bench.bridge.with_games, strict=True)) == [
        ((0, 0, 1), True),
        ((1, 1, 1), False),
    ]


def test_a_node_started_again_has_no_games() -> None:
    bench = Bench()
    bench.order()
    for node in (0, 1):
        bench.deliver(node, node, 0)
    bench.take()
    bench.join(0, hire=2)
    assert sorted(zip(bench.order(), bench.bridge.with_games, strict=True)) == [
        ((0, 0, 1), True),
        ((1, 1, 1), False),
    ]


def test_segments_that_are_not_used_count_for_what_a_site_keeps() -> None:
    bench = Bench()
    bench.order()
    bench.deliver(0, 0, 0)
    for number in range(KEPT_GAMES):  # node 0 plays what node 1 has, and is always second
        sequence = bench.places.sequence(1)
        node = bench.hands._nodes[0]
        node.player.asked[1, sequence] = bench.hands._nodes[1].player.asked[1, sequence]
        bench.deliver(1, 1, sequence, (number + 1) * MOVES)
        bench.deliver(0, 1, sequence, (number + 2) * MOVES)
        bench.take()
        bench.places.owe(1, STEPS)
        bench.hands.grant()
    assert bench.places.sequence(0) == 1
    bench.bridge.asked.clear()
    bench.bridge.with_games.clear()
    bench.places.owe(0, STEPS)
    bench.hands.grant()
    assert list(zip(bench.bridge.asked, bench.bridge.with_games, strict=True)) == [((0, 0, 1), True)]


def test_a_broadcast_has_ended_when_the_last_node_has_the_weights() -> None:
    bench = Bench()
    bench.tell(ClusterKind.ARRIVED, node=0, hire=1, version=0)
    assert bench.hands.metrics()["parallel/nodes_behind"] == 1
    bench.tell(ClusterKind.ARRIVED, node=1, hire=1, version=0)
    assert bench.hands.metrics()["parallel/nodes_behind"] == 0
    before = bench.hands.metrics()["parallel/broadcast_milliseconds"]
    bench.hands.weights_published()
    bench.synchronizer.publish({}, 1)
    bench.tell(ClusterKind.ARRIVED, node=0, hire=1, version=1)
    assert bench.hands.metrics()["parallel/nodes_behind"] == 1
    assert 0 < bench.hands.metrics()["parallel/broadcast_milliseconds"] != before
    bench.tell(ClusterKind.ARRIVED, node=1, hire=1, version=1)
    at_all = bench.hands.metrics()["parallel/broadcast_milliseconds"]
    bench.join(2)
    bench.tell(ClusterKind.ARRIVED, node=2, hire=1, version=1)  # it came later
    assert bench.hands.metrics()["parallel/broadcast_milliseconds"] == at_all


def test_segments_of_games_that_were_exchanged_do_not_count() -> None:
    bench = Bench()
    bench.order()
    bench.hands.games_changed()
    bench.places.reset(bench.places.games)
    bench.deliver(0, 0, 0)
    bench.deliver(1, 1, 0)
    account = bench.account()
    assert (bench.places.waiting, account.discarded["reset"]) == (0, 2 * MOVES)
    assert bench.order() == [(0, 0, 1), (1, 1, 1)]


@pytest.mark.parametrize("wrong", [{"sequence": 5}, {"steps": 2}, {"version": -1}, {"sizes": [0, 1]}])
def test_a_node_that_sends_what_was_not_asked_for_is_given_up(wrong: dict[str, Any]) -> None:
    bench = Bench()
    bench.order()
    fields = {"place": 0, "sequence": 0, "version": 0, "steps": STEPS, "streams": GAMES, "sizes": [0, 0]}
    sent = {**fields, "state": {}, "status": bench.status(0), **wrong}
    bench.tell(ClusterKind.SEGMENT, bytes(bench.shape.nbytes), node=0, hire=1, **sent)
    assert bench.bridge.released == [0]
    assert "sent damaged data" in bench.notices[-1]
    assert bench.hands.reliable == [0, 1]


def test_a_node_with_another_version_is_not_used() -> None:
    bench = Bench()
    bench.join(2, keisei="0.0.1")
    assert bench.notices[-1].startswith("node 2 (host) is not used: it has keisei 0.0.1, expected ")
    assert bench.bridge.released == [2]
    assert bench.hands.metrics()["parallel/nodes"] == 2


@pytest.mark.parametrize("timeout", [0.5, 30.0])
def test_bridges_are_more_patient_than_workers_may_be_and_sites_more_than_bridges(timeout: float) -> None:
    bench = Bench(timeout)
    bench.bridge.is_running = False
    bench.hands.supervise(0.0)
    ((connect, start),) = bench.bridge.started
    assert connect["timeout"] == max(5.0, timeout)
    assert unpack(start)[0]["patience"] > connect["timeout"]


def test_a_damaged_message_costs_the_bridge_and_all_it_had() -> None:
    bench = Bench()
    bench.order()
    bench.bridge.inbox.append((ClusterKind.STATUS, b"damaged and more"))
    bench.hands.supervise(0.0)
    assert bench.notices[-1].startswith("the connection to the cluster is lost (it sent damaged data")
    assert (bench.hands.reliable, bench.account().in_flight) == ([], 0)
