"""Pulling: which node plays which place next. Pure functions of what is known; no messages, no processes.

Nodes with a free worker take the next place, one that they have played before if possible. When nothing is
left to take, they play again what a slower or silent node holds, if they are likely to be done with it first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_FORGET = 0.3  # weight of the newest segment in a node's pace
# A segment that takes so many times as long as usual, and so many seconds more, is not waited for: chosen so
# that a node which is only busy keeps its work.
_LATE_FACTOR, _LATE_SECONDS = 3.0, 1.0
_GAIN = 0.5  # play again only what would take this share of the time that is left


@dataclass(frozen=True, slots=True)
class Task:
    """A segment that a place owes, and the node that played its last one."""

    place: int
    sequence: int
    node: int | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A segment that a node was asked for: its moves, the oldest weights for it, when that was.

    generation: grows when all games are exchanged for others.
    """

    moves: int
    version: int
    generation: int
    at: float


@dataclass(slots=True, eq=False)
class Player:
    """What pulling knows of a node. asked: by place and number. pace: seconds a worker takes for a move."""

    workers: int = 0
    asked: dict[tuple[int, int], Asked] = field(default_factory=dict)
    pace: float | None = None

    def delivered(self, place: int, sequence: int, now: float) -> None:
        """Note that a segment has arrived, and how long it took."""
        asked = self.asked.pop((place, sequence))
        pace = (now - asked.at) / asked.moves
        self.pace = pace if self.pace is None else (1 - _FORGET) * self.pace + _FORGET * pace

    def free(self) -> int:
        """Return how many workers have nothing to do."""
        return self.workers - len(self.asked)


def assignments(
    players: Mapping[int, Player], tasks: Sequence[Task], moves: int, now: float
) -> list[tuple[int, Task]]:
    """Return which node is to be asked for which of the tasks, all of so many moves."""
    held = {key for player in players.values() for key in player.asked}
    waiting = [task for task in tasks if (task.place, task.sequence) not in held]
    # While there is more to do than workers, a segment in advance saves them the way there and back.
    ahead = len(waiting) > 2 * sum(player.workers for player in players.values())
    room = {
        number: player.free() + (-(-player.workers // 2) if ahead else 0)
        for number, player in players.items()
    }
    chosen: list[tuple[int, Task]] = []

    def give(number: int, task: Task) -> None:
        chosen.append((number, task))
        room[number] -= 1

    others = []
    for task in waiting:
        if task.node is not None and room.get(task.node, 0) > 0:
            give(task.node, task)
        else:
            others.append(task)
    fastest = sorted(players, key=lambda number: (players[number].pace or 0.0, number))
    while others and any(room[number] > 0 for number in fastest):
        for number in fastest:
            if others and room[number] > 0:
                give(number, others.pop(0))
    if not waiting:
        chosen += _again(players, tasks, moves, now, room)
    return chosen


def _again(
    players: Mapping[int, Player],
    tasks: Sequence[Task],
    moves: int,
    now: float,
    room: dict[int, int],
) -> list[tuple[int, Task]]:
    """Return what idle nodes are to play although another node holds it, what takes longest first."""
    holders: dict[tuple[int, int], list[int]] = {}
    for number, player in players.items():
        for key in player.asked:
            holders.setdefault(key, []).append(number)
    chosen = []
    left = []
    for task in tasks:
        numbers = holders.get((task.place, task.sequence), [])
        if len(numbers) == 1:
            left.append((_left(players[numbers[0]], task, now), numbers[0], task))
    for seconds, holder, task in sorted(left, key=lambda one: -one[0]):
        able = [number for number in players if number != holder and room[number] > 0]
        able = [number for number in able if players[number].pace is not None]
        if not able:
            continue
        number = min(able, key=lambda number: players[number].pace or 0.0)
        mine = (players[number].pace or 0.0) * moves
        waited = now - players[holder].asked[task.place, task.sequence].at
        if mine < _GAIN * seconds or waited > _LATE_FACTOR * mine + _LATE_SECONDS:
            chosen.append((number, task))
            room[number] -= 1
    return chosen


def _left(player: Player, task: Task, now: float) -> float:
    """Return how many seconds a node is likely to need for a segment that it has begun."""
    asked = player.asked[task.place, task.sequence]
    expected = 0.0 if player.pace is None else player.pace * asked.moves
    return max(0.0, asked.at + expected - now)
