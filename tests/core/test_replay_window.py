"""The window of the latest moves: what is in it, how often each is drawn, and that it can be saved."""

import numpy as np
import pytest
from test_search_loss import CANDIDATES, searched_moves

from keisei.core.experience_buffer import Minibatch
from keisei.core.replay_window import SURPRISE_SHARE, ReplayWindow


def numbered(first: int, count: int) -> Minibatch:
    """Return moves whose actions are numbers from `first` on."""
    moves = searched_moves(count).rows(np.zeros(count, np.intp))
    moves.actions[:] = np.arange(first, first + count)
    moves.weights[:] = 1
    return moves


def contents(window: ReplayWindow) -> list[int]:
    found: list[int] = window.arrays()["actions"].tolist()
    return found


def test_the_latest_moves_stay() -> None:
    window = ReplayWindow(10)
    for first in (0, 4, 8):
        window.add(numbered(first, 4))
    assert contents(window) == [*range(2, 12)]
    assert (len(window), window.seen) == (10, 12)
    window.add(numbered(100, 25))
    assert contents(window) == [*range(115, 125)]
    assert (len(window), window.seen) == (10, 37)


def test_a_snapshot_does_not_change_when_moves_are_added() -> None:
    window = ReplayWindow(6)
    window.add(numbered(0, 4))
    before = window.arrays()
    window.add(numbered(4, 4))
    assert before["actions"].tolist() == [0, 1, 2, 3]
    assert before["seen"].tolist() == [4]


def test_without_priority_every_move_is_drawn_as_often() -> None:
    window = ReplayWindow(20)
    window.add(numbered(0, 20))
    drawn = window.sample(40_000, np.random.default_rng(1))
    counts = np.bincount(drawn.actions, minlength=20)
    assert (abs(counts - 2000) < 5 * 2000**0.5).all()
    assert (drawn.weights == 1).all()


@pytest.mark.parametrize("priority", ["policy", "value"])
def test_surprising_moves_are_drawn_more_often_and_weigh_less(priority: str) -> None:
    moves = numbered(0, 4)
    surprise = np.array([0, 1, 2, 5], np.float32)
    if priority == "policy":
        moves.surprise[:] = surprise
        moves.advantages[:] = 7
    else:
        moves.surprise[:] = 7
        moves.advantages[:] = surprise * [1, -1, 1, -1]
    window = ReplayWindow(4, "policy" if priority == "policy" else "value")
    window.add(moves)
    drawn = window.sample(80_000, np.random.default_rng(1))
    shares = np.bincount(drawn.actions, minlength=4) / 80_000
    expected = (1 - SURPRISE_SHARE) / 4 + SURPRISE_SHARE * surprise / 8
    assert shares == pytest.approx(expected, abs=0.01)
    # Together they count as if every move were drawn as often: the value loss is not biased.
    for move in range(4):
        own = drawn.weights[drawn.actions == move].sum() / 80_000
        assert own == pytest.approx(1 / 4, abs=0.01)


def test_without_any_surprise_all_are_equal() -> None:
    moves = numbered(0, 5)
    moves.surprise[:] = 0
    window = ReplayWindow(5, "policy")
    window.add(moves)
    assert (window.sample(50, np.random.default_rng(1)).weights == 1).all()


def test_a_saved_window_goes_on_exactly() -> None:
    window = ReplayWindow(12, "policy")
    window.add(numbered(0, 9))
    again = ReplayWindow.of_arrays(window.arrays(), 12, "policy", CANDIDATES)
    for one in (window, again):
        one.add(numbered(9, 9))
    assert (again.seen, contents(again)) == (18, contents(window))
    draws = [one.sample(30, np.random.default_rng(3)) for one in (window, again)]
    for name in Minibatch.__slots__:
        assert np.array_equal(getattr(draws[0], name), getattr(draws[1], name)), name
    smaller = ReplayWindow.of_arrays(window.arrays(), 5, "none", CANDIDATES)
    assert contents(smaller) == contents(window)[-5:]


@pytest.mark.parametrize("candidates", [2, 7])
def test_a_saved_window_goes_on_with_other_candidates(candidates: int) -> None:
    window = ReplayWindow(12)
    window.add(searched_moves(10))
    before = window.arrays()
    after = ReplayWindow.of_arrays(before, 12, "none", candidates).arrays()
    assert after["tried"].shape == after["gains"].shape == (12, candidates)
    both = min(candidates, CANDIDATES)
    assert np.array_equal(after["tried"][:, :both], before["tried"][:, :both])
    assert (after["tried"][:, both:] == -1).all()
    assert not after["gains"][:, both:].any()


def test_memory_of_moves_that_were_added_can_be_used_again() -> None:
    moves, window = numbered(0, 4), ReplayWindow(10)
    window.add(moves)
    moves.actions[:] = 99
    assert contents(window) == [0, 1, 2, 3]


def test_what_is_not_a_window_is_refused() -> None:
    window = ReplayWindow(4)
    with pytest.raises(ValueError, match="empty"):
        window.sample(1, np.random.default_rng(1))
    window.add(numbered(0, 4))
    arrays = window.arrays()
    with pytest.raises(ValueError, match=r"lacks \['gains'"):
        ReplayWindow.of_arrays({k: v for k, v in arrays.items() if k != "gains"}, 4, "none", 4)
    with pytest.raises(ValueError, match="differ in length"):
        ReplayWindow.of_arrays({**arrays, "gains": arrays["gains"][:2]}, 4, "none", 4)
