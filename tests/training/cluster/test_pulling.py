"""Pulling: who plays which place next, without processes; and what it is worth, simulated."""

import heapq

import pytest

from keisei.training.cluster.pulling import Asked, Player, Task, assignments

MOVES = 100


def tasks(*places: int, nodes: dict[int, int] | None = None) -> list[Task]:
    return [Task(place, 0, (nodes or {}).get(place)) for place in places]


def player(workers: int = 1, pace: float | None = 0.01, **held: float) -> Player:
    """A node; held: places such as p3 that it was asked for, and when."""
    asked = {(int(name[1:]), 0): Asked(MOVES, 0, 0, at) for name, at in held.items()}
    return Player(workers, asked, pace)


def chosen(players: dict[int, Player], some: list[Task], now: float = 10.0) -> list[tuple[int, int]]:
    return [(number, task.place) for number, task in assignments(players, some, MOVES, now)]


def test_a_node_gets_the_places_that_it_played_last() -> None:
    some = tasks(0, 1, 2, 3, nodes={0: 1, 1: 0, 2: 1, 3: 0})
    found = chosen({0: player(2), 1: player(2)}, some)
    assert sorted(found) == [(0, 1), (0, 3), (1, 0), (1, 2)]


def test_what_the_last_node_has_no_time_for_goes_to_others() -> None:
    assert sorted(chosen({0: player(1), 1: player(1)}, tasks(0, 1, nodes={0: 0, 1: 0}))) == [(0, 0), (1, 1)]


def test_no_node_gets_more_than_it_has_workers_unless_there_is_plenty() -> None:
    assert len(chosen({0: player(2)}, tasks(0, 1, 2, 3))) == 2
    assert len(chosen({0: player(2)}, tasks(0, 1, 2, 3, 4))) == 3


def test_the_fastest_node_is_asked_first() -> None:
    assert chosen({0: player(pace=0.03), 1: player(pace=0.01)}, tasks(5)) == [(1, 5)]


def test_nothing_is_asked_of_two_nodes_while_others_wait() -> None:
    players = {0: player(1, 1.0, p0=9.9), 1: player(1)}
    assert chosen(players, tasks(0, 1)) == [(1, 1)]


def test_what_a_slow_node_holds_is_played_again_by_a_faster_one_that_is_idle() -> None:
    players = {0: player(1, 1.0, p0=9.9), 1: player(1)}
    assert chosen(players, tasks(0)) == [(1, 0)]
    players[1].asked[0, 0] = Asked(MOVES, 0, 0, 10.0)
    assert chosen({**players, 2: player(1)}, tasks(0)) == []  # two are enough


def test_a_node_of_the_same_speed_keeps_its_work_until_it_is_late() -> None:
    players = {0: player(1, 0.01, p0=9.9), 1: player(1)}
    assert chosen(players, tasks(0)) == []
    assert chosen(players, tasks(0), now=14.2) == [(1, 0)]


def test_a_node_of_unknown_speed_plays_nothing_again() -> None:
    assert chosen({0: player(1, None, p0=0.0), 1: player(1, None)}, tasks(0), now=1000.0) == []


def test_the_pace_follows_what_a_node_delivers() -> None:
    node = player(1, None, p0=0.0, p1=10.0)
    node.delivered(0, 0, 2.0)
    assert node.pace == pytest.approx(0.02)
    node.delivered(1, 0, 11.0)
    assert node.pace == pytest.approx(0.7 * 0.02 + 0.3 * 0.01)
    assert node.free() == 1


def efficiency(speeds: list[float], places: int, turns: int = 30) -> float:
    """The share of the summed speed that pulling makes use of, in turns that wait for all places."""
    players = {number: Player(1) for number in range(len(speeds))}
    last: dict[int, int] = {}
    now = spent = 0.0
    for turn in range(turns):
        began, open_places = now, set(range(places))
        ends: list[tuple[float, int, int]] = []
        while open_places:
            some = [Task(place, turn, last.get(place)) for place in sorted(open_places)]
            for number, task in assignments(players, some, MOVES, now):
                players[number].asked[task.place, turn] = Asked(MOVES, 0, 0, now)
                queued = [end for end, one, _ in ends if one == number]
                end = max([now, *queued]) + 1 / speeds[number]
                heapq.heappush(ends, (end, number, task.place))
            now, number, place = heapq.heappop(ends)
            players[number].delivered(place, turn, now)
            if place in open_places:
                open_places.remove(place)
                last[place] = number
        for node in players.values():
            node.asked.clear()
        if turn >= turns // 3:
            spent += now - began
    return places * (turns - turns // 3) / sum(speeds) / spent


def test_slow_nodes_do_not_set_the_pace() -> None:
    speeds = [1.0] * 8 + [0.4] * 8
    assert efficiency(speeds, 64) > 0.9
    assert efficiency([1.0] * 4, 4) == pytest.approx(1.0)
