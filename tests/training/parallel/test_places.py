"""Places: which is next, and the numbers that make each segment count once; no processes."""

from test_segment_orders import MOVES, SHAPE, STEPS, games

from keisei.core.segment import Segment
from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.places import Places

HAND = 7  # any number: hands are not places


def segment(place: int, places: Places) -> WorkerSegment:
    memory = Segment.over(bytearray(SHAPE.nbytes), SHAPE)
    return WorkerSegment(memory, [], games("played", place), place, 0, places.sequence(place), 1)


def begun(count: int = 3) -> Places:
    places = Places([games("begin", place) for place in range(count)])
    places.ledger.begin(HAND)
    return places


def test_any_hand_may_deliver_a_places_next_segment() -> None:
    places = begun()
    places.order(3, STEPS, range(3))
    for place in (2, 0):
        places.ledger.shown(HAND, places.account({HAND: MOVES}).generated + MOVES)
        places.deliver(HAND, segment(place, places))
    assert [places.sequence(place) for place in range(3)] == [1, 0, 1]
    assert [places.owed(place) for place in range(3)] == [0, 1, 0]
    assert places.games_of(2) == games("played", 2)


def test_who_was_not_asked_plays_what_is_owed_and_else_the_least_played() -> None:
    places = begun()
    assert places.next_to_play() == 0
    places.order(3, STEPS, range(3))
    with places.collection() as taken:
        places.add_own(segment(0, places))
        assert places.next_to_play() == 1
        places.add_own(segment(1, places))
        places.add_own(segment(2, places))
        assert [one.worker for one in taken] == [0, 1, 2]
    assert [places.owed(place) for place in range(3)] == [0, 0, 0]
    assert places.account({HAND: 0}).trained == 3 * MOVES


def test_numbers_never_return_after_a_reset() -> None:
    places = begun()
    with places.collection():
        places.add_own(segment(1, places))
    places.reset([games("other", place) for place in range(3)])
    assert [places.sequence(place) for place in range(3)] == [1, 2, 1]


def test_a_second_copy_is_counted_and_not_used() -> None:
    places = begun()
    places.ledger.shown(HAND, MOVES)
    places.refuse(HAND, MOVES, "twice")
    account = places.account({HAND: 0})
    assert (account.generated, account.discarded["twice"], places.waiting) == (MOVES, MOVES, 0)
