"""Textbook PUCT: one leaf at a time, a Python object for each node. Written to be read.

Also shared by the search tests: an evaluation that stands in for a network, and positions.
"""

import math
import random
import zlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from keisei.search.puct import Evaluate
from keisei.shogi import Move, Reason, ShogiGame, encoding
from keisei.shogi.positions import Positions

Floats = npt.NDArray[np.float32]


def hashed(positions: Positions) -> tuple[Floats, Floats]:
    """Return priors and values that look random and depend only on each position."""
    priors, values = np.empty(len(positions.actions), np.float32), np.empty(len(positions), np.float32)
    for row in range(len(positions)):
        seed = zlib.crc32(positions.planes[row].tobytes())
        own = slice(positions.offsets[row], positions.offsets[row + 1])
        bits = (positions.actions[own].astype(np.uint64) * 2654435761 + seed) * 40503 % 65521
        weights = (bits.astype(np.float64) + 1) ** 4
        priors[own] = weights / weights.sum()
        values[row] = (seed % 2001 - 1000) / 1001
    return priors, values


def uniform(positions: Positions) -> tuple[Floats, Floats]:
    """Return equal priors for all moves and value 0 for all positions."""
    counts = np.diff(positions.offsets)
    priors = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    assert len(priors) == len(positions.actions)
    return priors, np.zeros(len(positions), np.float32)


class Node:
    def __init__(self, game: ShogiGame) -> None:
        self.game = game
        self.visits = 0
        self.value_sum = 0.0
        self.priors: dict[Move, float] = {}
        self.children: dict[Move, Node] = {}
        self.result: str | None = None  # "win", "loss" or "draw" for the side to move, if known
        self.plies = 0


class Reference:
    def __init__(
        self,
        game: ShogiGame,
        evaluate: Evaluate,
        c_puct: float,
        fpu: float,
        *,
        repetition_draws: bool = True,
    ) -> None:
        self.evaluate, self.c_puct, self.fpu = evaluate, c_puct, fpu
        self.repetition_draws = repetition_draws
        self.root = Node(game.copy())
        self.nodes = 1
        for move in game.legal_moves():
            if ends(after(game, move)) == "loss":
                self.root.result, self.root.plies = "win", 1

    def run(self, visits: int) -> None:
        while self.root.visits < visits and self.root.result is None:
            self.simulate()

    def simulate(self) -> None:
        path = [self.root]
        while path[-1].priors and path[-1].result is None:
            path.append(self.child(path[-1], self.best_move(path[-1])))
        leaf = path[-1]
        if leaf.result is None:
            positions = Positions.of_games([leaf.game])
            priors, values = self.evaluate(positions)
            moves = [encoding.move_of(action, leaf.game.turn) for action in positions.actions.tolist()]
            leaf.priors = dict(zip(moves, priors.tolist(), strict=True))
            value = float(values[0])
        else:
            value = {"win": 1.0, "draw": 0.0, "loss": -1.0}[leaf.result]
        for node in reversed(path):
            prove(node)
            node.visits += 1
            node.value_sum += value
            value = -value

    def child(self, node: Node, move: Move) -> Node:
        if move not in node.children:
            child = node.children[move] = Node(after(node.game, move))
            self.nodes += 1
            child.result = ends(child.game)
            if child.result is None and (child.game.can_declare() or mates(child.game)):
                child.result, child.plies = "win", 1
            elif child.result is None and self.repetition_draws and goes_round(child.game):
                child.result = "draw"
        return node.children[move]

    def best_move(self, node: Node) -> Move:
        c = self.c_puct + math.log((1 + node.visits + 19652) / 19652)
        tried = sum([prior for move, prior in node.priors.items() if move in node.children])
        untried_value = node.value_sum / node.visits - self.fpu * math.sqrt(tried)
        scores = {}
        for move, prior in node.priors.items():
            child = node.children.get(move)
            if child is not None and child.result == "win":
                continue
            n = child.visits if child else 0
            value = -child.value_sum / n if child else untried_value
            scores[move] = value + c * math.sqrt(node.visits) * prior / (1 + n)
        return max(scores, key=lambda move: scores[move])


def after(game: ShogiGame, move: Move) -> ShogiGame:
    copy = game.copy()
    copy.push(move)
    return copy


def ends(game: ShogiGame) -> str | None:
    """Return the result for the side to move if the game is over."""
    outcome = game.outcome()
    if outcome is None:
        return None
    return "draw" if outcome.winner is None else "win" if outcome.winner is game.turn else "loss"


def goes_round(game: ShogiGame) -> bool:
    """Return whether this position has occurred before, without one side checking all the time since."""
    game, keys, checks = game.copy(), [], []  # the latest first
    while True:
        keys.append(game.sfen().rsplit(" ", 1)[0])
        checks.append(game.is_check())
        if not game.history:
            break
        game.pop()
    if keys[0] not in keys[1:]:
        return False
    since = checks[: len(keys) - 1 - keys[::-1].index(keys[0])]
    return all(since[::2]) == all(since[1::2])


def mates(game: ShogiGame) -> bool:
    found = False
    for move in game.legal_moves():
        game.push(move)
        end = game.outcome()
        found |= end is not None and end.reason is Reason.CHECKMATE
        game.pop()
    return found


def prove(node: Node) -> None:
    lost = [child.plies + 1 for child in node.children.values() if child.result == "loss"]
    won = [child.plies + 1 for child in node.children.values() if child.result == "win"]
    if lost:
        node.result, node.plies = "win", min(lost)
    elif node.priors and len(won) == len(node.priors):
        node.result, node.plies = "loss", max(won)


def greedy_play(seed: int, plies: int = 300, declaration: str = "off") -> Iterator[ShogiGame]:
    """Yield one game object before each move of random play that prefers captures and so soon meets mates."""
    choose = random.Random(seed)
    game = ShogiGame(max_moves=None, declaration=declaration)
    for _ in range(plies):
        yield game
        moves = game.legal_moves()
        if not moves:
            return
        captures = [move for move in moves if game.piece_at(move.to_square)]
        game.push(choose.choice(captures or moves))


def flipped(game: ShogiGame) -> ShogiGame:
    """Return the position with the colours swapped and the board rotated."""
    board, turn, hand, number = game.sfen().split()
    board = "/".join(row[::-1] for row in board.split("/")[::-1]).swapcase()
    while "+" in board:  # after reversal the mark follows its piece
        at = board.index("+")
        board = f"{board[: at - 1]}#{board[at - 1]}{board[at + 1 :]}"
    turned = f"{board.replace('#', '+')} {'w' if turn == 'b' else 'b'} {hand.swapcase()} {number}"
    return ShogiGame(turned, max_moves=game.max_moves, declaration=game.declaration)


def mirrored(evaluate: Evaluate) -> Evaluate:
    """Return the same evaluation, blind to the colour plane."""

    def blind(positions: Positions) -> tuple[Floats, Floats]:
        planes = positions.planes.copy()
        planes[:, 42] = 0
        return evaluate(replace(positions, planes=planes))

    return blind
