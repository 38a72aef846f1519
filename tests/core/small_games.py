"""Nim and tic-tac-toe, many at once, for the shogi learner; and their perfect solutions.

A position is a packed row from its mover's view. Everything is uint8 rows in and plain arrays out, as in
keisei.shogi.vector.
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from keisei.core.keyed_random import uniforms
from keisei.core.policy import Policy
from keisei.core.segment import Segment, SegmentShape
from keisei.shogi.positions import Positions

Rows = npt.NDArray[np.uint8]
State = tuple[int, ...]


class SmallGame(ABC):
    """The rules of a game: positions are uint8 rows, from the mover's view."""

    actions: int
    inputs: int

    @abstractmethod
    def starts(self, count: int, random: np.random.Generator) -> Rows: ...

    @abstractmethod
    def features(self, rows: Rows) -> npt.NDArray[np.float32]: ...

    @abstractmethod
    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]: ...

    @abstractmethod
    def play(
        self, rows: Rows, actions: npt.NDArray[np.int32]
    ) -> tuple[Rows, npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return (positions after the moves, rewards of the movers, whether the games are over)."""

    def decode(self, packed: Rows, threads: int = 1) -> Positions:  # noqa: ARG002
        legal = self.legal(packed)
        offsets = np.concatenate([[0], legal.sum(1).cumsum()]).astype(np.int32)
        return Positions(self.features(packed), offsets, np.nonzero(legal)[1].astype(np.int32))


class Nim(SmallGame):
    """Three heaps; whoever takes the last stone wins. Games start from heaps of any size."""

    heaps = (3, 4, 5)
    actions = 15  # heap * 5 + stones taken - 1
    inputs = 4 * 5 * 6  # one for each position

    def starts(self, count: int, random: np.random.Generator) -> Rows:
        rows = random.integers(0, np.array(self.heaps) + 1, (count, 3)).astype(np.uint8)
        rows[~rows.any(1)] = self.heaps
        return rows

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        features = np.zeros((len(rows), self.inputs), np.float32)
        features[np.arange(len(rows)), rows @ np.array([30, 6, 1])] = 1
        return features

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        return (np.arange(1, 6) <= rows[:, :, None]).reshape(len(rows), 15)

    def play(
        self, rows: Rows, actions: npt.NDArray[np.int32]
    ) -> tuple[Rows, npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        after = rows.copy()
        after[np.arange(len(rows)), actions // 5] -= (actions % 5 + 1).astype(np.uint8)
        over = np.asarray(~after.any(1), np.bool_)
        return after, np.asarray(over, np.float32), over


LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class TicTacToe(SmallGame):
    """Three in a row; 9 squares of the mover's marks and 9 of the opponent's.

    Games start with up to 5 random moves, so that there is something to learn in every position.
    """

    actions = 9
    inputs = 18

    def starts(self, count: int, random: np.random.Generator) -> Rows:
        rows = np.zeros((count, 18), np.uint8)
        plies = random.integers(0, 6, count)
        for ply in range(5):
            chances = random.random((count, 9)) * self.legal(rows)
            after, _, over = self.play(rows, chances.argmax(1).astype(np.int32))
            rows = np.where(((ply < plies) & ~over)[:, None], after, rows)
        return rows

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        return rows.astype(np.float32)

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        return np.asarray(rows[:, :9] + rows[:, 9:] == 0, np.bool_)

    def play(
        self, rows: Rows, actions: npt.NDArray[np.int32]
    ) -> tuple[Rows, npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        mine = rows[:, :9].copy()
        mine[np.arange(len(rows)), actions] = 1
        won = np.any(np.all(mine[:, LINES], axis=2), axis=1)
        after = np.concatenate([rows[:, 9:], mine], 1)
        over = np.asarray(won | (after.sum(1) == 9), np.bool_)
        return after, np.asarray(won, np.float32), over


class Solver:
    """Perfect play by exhaustive search."""

    def __init__(self, game: SmallGame) -> None:
        self.game = game
        self._values: dict[State, int] = {}

    def moves(self, state: State) -> list[tuple[int, State, int, bool]]:
        """Return (action, position after it, the mover's reward, over) for each legal move."""
        actions = np.flatnonzero(self.game.legal(np.array([state], np.uint8))[0]).astype(np.int32)
        rows = np.repeat(np.array([state], np.uint8), len(actions), 0)
        after, rewards, over = self.game.play(rows, actions)
        return [
            (int(actions[i]), tuple(after[i].tolist()), int(rewards[i]), bool(over[i]))
            for i in range(len(actions))
        ]

    def value(self, state: State) -> int:
        """Return a position's value for its mover against a perfect opponent: 1, 0 or -1."""
        if state not in self._values:
            self._values[state] = max(self.worth(move) for move in self.moves(state))
        return self._values[state]

    def worth(self, move: tuple[int, State, int, bool]) -> int:
        """Return a move's value for its mover."""
        _, after, reward, over = move
        return reward if over else -self.value(after)


class SmallNetwork(nn.Module):
    """One hidden layer, with the attributes that an agent needs of a network."""

    def __init__(self, game: SmallGame, hidden: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.hidden = nn.Linear(game.inputs, hidden)
        self.policy = nn.Linear(hidden, game.actions)
        self.value = nn.Linear(hidden, 1)
        self.logit_of_action = np.arange(game.actions)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.relu(self.hidden(features))
        return self.policy(hidden), torch.tanh(self.value(hidden)).squeeze(1)


class SmallSelfPlay:
    """A policy playing itself in many games side by side, as keisei.core.self_play does for shogi."""

    def __init__(self, game: SmallGame, count: int, seed: int) -> None:
        self.game, self._random, self._seed = game, np.random.default_rng(seed), seed
        self.rows = game.starts(count, self._random)
        self._step = 0

    def rollout(self, policy: Policy, steps: int, *, searches: bool = False) -> Segment:
        """Play so many moves in each game. searches: look one move ahead each time."""
        count = len(self.rows)
        candidates = self.game.actions if searches else 0
        segment = Segment.empty(SegmentShape(steps, count, self.rows.shape[1], candidates))
        segment.tried[:] = -1
        for t in range(steps):
            chances = uniforms(self._seed, np.arange(count, dtype=np.uint64), np.full(count, self._step))
            choice = policy.select_action(self.game.decode(self.rows), chances)
            segment.packed[t] = self.rows
            segment.actions[t], segment.log_probs[t] = choice.actions, choice.log_probs
            segment.values[t] = choice.values
            if searches:
                self.look_ahead(policy, segment, t)
            after, segment.rewards[t], segment.ended[t] = self.game.play(self.rows, choice.actions)
            begun = self.game.starts(count, self._random)
            self.rows = np.where(segment.ended[t][:, None], begun, after)
            self._step += 1
        segment.after[:] = self.rows
        segment.bootstrap[:] = policy.get_value(self.game.decode(self.rows).planes)
        return segment

    def look_ahead(self, policy: Policy, segment: Segment, t: int) -> None:
        """Write the legal moves, and how much better than the position each of them is, in logits."""
        legal = self.game.legal(self.rows)
        rows, actions = np.nonzero(legal)
        after, rewards, over = self.game.play(self.rows[rows], actions.astype(np.int32))
        following = policy.get_value(self.game.decode(after).planes)
        worth = np.where(over, rewards, -following)
        places = np.cumsum(legal, 1)[rows, actions] - 1
        segment.tried[t, rows, places] = actions
        segment.gains[t, rows, places] = np.clip(3 * (worth - segment.values[t, rows]), -6, 6)
