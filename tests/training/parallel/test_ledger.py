"""The ledger: every generated move is somewhere, exactly once, and impossible counts are an error."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.training.parallel.ledger import (
    REASONS,
    REASONS_AT_THE_END,
    Account,
    ConservationError,
    Ledger,
)

WORKERS = (0, 1)


class Moves:
    """A model in which each move is an object in one of several boxes; the ledger must count the same."""

    def __init__(self) -> None:
        self.generated = 0
        self.making: dict[int, int] = {}
        self.queue: list[int] = []
        self.trained = 0
        self.discarded: Counter[str] = Counter()
        self.shown: dict[int, int] = {}  # by running processes

    def account(self) -> Account:
        in_flight = sum(self.queue) + sum(self.making.values())
        reasons = {reason: self.discarded[reason] for reason in (*REASONS, *REASONS_AT_THE_END)}
        return Account(self.generated, self.trained, in_flight, reasons)


OPERATIONS = st.sampled_from(
    ["begin", "play", "deliver", "abandon", "end", "train", "drop", "here", "give back"]
)


def apply(name: str, worker: int, number: int, reason: str, moves: Moves, ledger: Ledger) -> None:
    """Do the same to both, if it is possible now."""
    if name == "here":
        moves.generated += number
        moves.queue.append(number)
        ledger.played_here(number)
    elif name == "train" and moves.queue:
        segment = moves.queue.pop(0)
        moves.trained += segment
        ledger.trained(segment)
    elif name == "drop" and moves.queue:
        segment = moves.queue.pop(0)
        moves.discarded[reason] += segment
        ledger.discard_queued(segment, reason)
    elif name == "give back":
        returned = min(number, moves.trained)
        moves.trained -= returned
        moves.discarded["interrupted"] += returned
        ledger.give_back(returned)
    elif name == "begin" and worker not in moves.making:
        moves.making[worker] = moves.shown[worker] = 0
        ledger.begin(worker)
    elif worker in moves.making:
        apply_to_process(name, worker, number, reason, moves, ledger)


def apply_to_process(name: str, worker: int, number: int, reason: str, moves: Moves, ledger: Ledger) -> None:
    if name == "play":
        moves.generated += number
        moves.making[worker] += number
        moves.shown[worker] += number
        ledger.shown(worker, moves.shown[worker])
    elif name == "deliver" and moves.making[worker]:
        segment = min(number, moves.making[worker])
        moves.making[worker] -= segment
        moves.queue.append(segment)
        ledger.delivered(worker, segment)
    elif name == "abandon":
        moves.discarded[reason] += moves.making[worker]
        moves.making[worker] = 0
        ledger.abandon(worker, reason)
    elif name == "end":
        moves.discarded[reason] += moves.making.pop(worker)
        ledger.end(worker, reason)


@given(
    st.lists(
        st.tuples(OPERATIONS, st.sampled_from(WORKERS), st.integers(1, 100), st.sampled_from(REASONS)),
        min_size=20,
        max_size=60,
    )
)
def test_the_ledger_counts_what_moves_do(operations: list[tuple[str, int, int, str]]) -> None:
    moves, ledger = Moves(), Ledger()
    for worker in WORKERS:
        apply("begin", worker, 0, "", moves, ledger)
    for name, worker, number, reason in operations:
        apply(name, worker, number, reason, moves, ledger)
        expected = moves.account()
        assert ledger.account() == expected
        assert ledger.check(queued=sum(moves.queue), asked_for=moves.making) == expected
        total = expected.trained + expected.in_flight + sum(expected.discarded.values())
        assert expected.generated == total


def test_segments_that_are_not_where_they_should_be_are_an_error() -> None:
    ledger = Ledger()
    ledger.begin(0)
    ledger.shown(0, 30)
    ledger.delivered(0, 20)
    assert ledger.check(queued=20, asked_for={0: 10}).in_flight == 30
    for queued in (0, 19, 21):
        expected = f"^{queued} moves are waiting, expected 20: 30 moves generated"
        with pytest.raises(ConservationError, match=expected):
            ledger.check(queued=queued, asked_for={0: 10})


def test_moves_that_nobody_asked_for_are_an_error() -> None:
    ledger = Ledger()
    ledger.begin(2)
    ledger.shown(2, 30)
    ledger.check(queued=0, asked_for={2: 30})
    with pytest.raises(ConservationError, match="worker 2 has 30 moves in progress, expected 0 to 29"):
        ledger.check(queued=0, asked_for={2: 29})


def test_a_segment_of_moves_that_were_not_made_is_an_error() -> None:
    ledger = Ledger()
    ledger.begin(0)
    ledger.shown(0, 30)
    ledger.delivered(0, 31)
    with pytest.raises(ConservationError, match="worker 0 has -1 moves in progress, expected 0 to 100"):
        ledger.check(queued=31, asked_for={0: 100})


def test_a_segment_trained_on_twice_is_an_error() -> None:
    ledger = Ledger()
    ledger.played_here(8)
    ledger.trained(8)
    ledger.check(queued=0, asked_for={})
    ledger.trained(8)
    with pytest.raises(ConservationError, match="0 moves are waiting, expected -8"):
        ledger.check(queued=0, asked_for={})


def test_a_sum_that_is_not_right_is_an_error() -> None:
    ledger = Ledger()
    ledger.played_here(8)
    ledger._ended_generated += 1
    with pytest.raises(
        ConservationError, match=r"^9 moves were generated, 8 accounted for: 9 moves generated ="
    ):
        ledger.check(queued=8, asked_for={})


def test_an_account_is_a_phrase() -> None:
    account = Account(4224, 4096, 100, {"died": 0, "hung": 28})
    text = "4,224 moves generated = 4,096 trained on + 100 in flight + 28 discarded"
    assert str(account) == f"{text} (28 hung)"
    assert (
        str(Account(1, 1, 0, {"died": 0})) == "1 moves generated = 1 trained on + 0 in flight + 0 discarded"
    )
