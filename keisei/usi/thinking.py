"""Thinking about one position: by search, or by the network's policy alone.

Input: a game with legal moves, the limits, and the Control that may stop it. Output: lines of play, best
first, reported while thinking, and finally a Decision.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from keisei.core.device import keep_freed_memory
from keisei.core.policy import Policy
from keisei.runs.load import load_network
from keisei.search.puct import CANDIDATES, Line, Search, SearchResult, SearchSettings
from keisei.search.trees import NO_LIMIT
from keisei.shogi import Move, ShogiGame, encoding
from keisei.shogi.positions import Positions
from keisei.usi.clock import Control
from keisei.usi.decision import Decision, Tell
from keisei.usi.options import Options
from keisei.usi.protocol import Info, Limits

DEFAULT_VISITS = 800  # if neither the GUI nor an option sets a limit
VISITS_OF_DEPTH = 1000  # go depth N ends after at most this many visits per ply
NODE_BYTES = 1100  # per tree node; see SearchSettings
MAX_TREE_NODES = 4_000_000
MAX_LINES = encoding.MAX_LEGAL_ACTIONS
MOST_PLANNED_VISITS = 2000  # more are searched by PUCT, which can go on with the last tree

_SLICE = 0.1  # seconds of search between two looks at the result
_TELL_EVERY = 0.5  # seconds between two reports; a new best move is reported at once


@dataclass(frozen=True, slots=True)
class _Kept:
    """The last search, its settings, and the game that it was of: where it began, and its moves."""

    search: Search
    settings: SearchSettings
    start: tuple[object, ...]
    moves: list[Move]


def _start_of(game: ShogiGame) -> tuple[object, ...]:
    return game.start_sfen, game.max_moves, game.declaration, game.kings


class Thinker:
    """A network ready to think."""

    def __init__(self, policy: Policy, name: str) -> None:
        self.name = name
        self.max_moves = policy.config.env.max_moves
        self._evaluate = policy.evaluate
        self._use_threads = policy.use_threads
        self._random = Random()
        self._kept: _Kept | None = None

    @classmethod
    def load(cls, checkpoint: Path, options: Options) -> "Thinker":
        """Load and warm up the network of a checkpoint; a damaged one raises CheckpointError."""
        keep_freed_memory()
        network = load_network(checkpoint, "auto", threads=options.threads)
        thinker = cls(network.policy, network.name)
        # The first passes are slow: memory is allocated and kernels are chosen, anew for each batch size.
        for batch in {1, options.batch}:
            search = Search([ShogiGame()], thinker._evaluate, settings=SearchSettings(leaves=batch))
            search.run(visits=8 * batch, seconds=1.0)
        return thinker

    def think(
        self, game: ShogiGame, limits: Limits, options: Options, control: Control, tell: Tell
    ) -> Decision:
        """Return what to play, no later than control says; tell is called with the lines of play."""
        self._use_threads(options.threads)
        if options.policy:
            result = self._by_policy(game)
            tell(_infos(result, options, control, kept=0))
        else:
            result = self._by_search(game, limits, options, control, tell)
        control.wait()
        return self._decision(result, options)

    def _by_policy(self, game: ShogiGame) -> SearchResult:
        positions = Positions.of_games([game])
        priors, values = self._evaluate(positions)
        moves = [encoding.move_of(action, game.turn) for action in positions.actions.tolist()]
        lines = [
            Line(move=move, visits=0, value=float(values[0]), prior=prior, pv=(move,), mate=None)
            for move, prior in zip(moves, priors.tolist(), strict=True)
        ]
        lines.sort(key=lambda line: -line.prior)
        return SearchResult(lines=tuple(lines), visits=1, nodes=1)

    def _by_search(
        self, game: ShogiGame, limits: Limits, options: Options, control: Control, tell: Tell
    ) -> SearchResult:
        settings = SearchSettings(leaves=options.batch, candidates=CANDIDATES, max_nodes=max_nodes(options))
        search, kept = self._search_of(game, settings, planned_visits(limits, options, control))
        told_at, told_move, seen = 0.0, None, 0
        while True:
            search.run(visits=visit_limit(limits, options, control), seconds=_SLICE, should_stop=control.over)
            control.pause()
            result = search.result(0, multipv=MAX_LINES)
            over = _enough(result, seen, limits, options, control) or control.over()
            seen = result.visits
            best, now = result.lines[0], time.monotonic()
            if over or now - told_at >= _TELL_EVERY or best.move != told_move:
                tell(_infos(result, options, control, kept=kept))
                told_at, told_move = now, best.move
            if over:
                return result

    def _search_of(
        self, game: ShogiGame, settings: SearchSettings, planned: int | None
    ) -> tuple[Search, int]:
        """Return a search of a game, and how many visits its root has already.

        It goes on with the last one's tree if moves were played since, and if that has all planned visits
        already or none are planned: fewer are worth less than a search that is halved at its root.

        The same position again is searched anew.
        """
        kept, self._kept = self._kept, None
        search, visits = None, 0
        if kept is not None and kept.settings == settings and kept.start == _start_of(game):
            before, now = kept.moves, game.history
            later = len(now) > len(before) and now[: len(before)] == before
            if later and kept.search.advance(now[len(before) :]):
                visits = kept.search.result().visits
                if planned is None or visits >= planned:
                    search = kept.search
        if search is None:
            search, visits = Search([game], self._evaluate, settings=settings, planned_visits=planned), 0
        self._kept = _Kept(search, settings, _start_of(game), game.history)
        return search, visits

    def _decision(self, result: SearchResult, options: Options) -> Decision:
        best = result.lines[0]
        win_rate = (best.value + 1) / 2 if best.mate is None else float(best.mate > 0)
        if win_rate * 100 < options.resign_value:
            return Decision("resign")
        if options.temperature > 0 and best.mate is None:
            best = self._drawn(result.lines, options)
        return Decision(best.move, best.pv[1] if options.ponder and len(best.pv) > 1 else None)

    def _drawn(self, lines: Sequence[Line], options: Options) -> Line:
        """Draw a line that is not proven lost, by visits or probability to the power 1 / temperature."""
        lines = [line for line in lines if line.mate is None]
        weights = [line.prior if options.policy else float(line.visits) for line in lines]
        most = max(weights)
        if most == 0:
            return lines[0]
        # Divided by the largest first, so that no power overflows and not all of them underflow.
        powers = [(weight / most) ** (1 / options.temperature) for weight in weights]
        return self._random.choices(lines, powers)[0]


def visit_limit(limits: Limits, options: Options, control: Control) -> int | None:
    """Return how many visits the root may get, None for as many as time allows."""
    bounds = [limits.nodes, limits.depth and limits.depth * VISITS_OF_DEPTH]
    if not limits.infinite:  # an analysis runs until it is stopped
        bounds.append(options.visits or None)
        if not any(bounds) and not control.waits and not control.has_deadline:
            return DEFAULT_VISITS
    return min((min(bound, NO_LIMIT - 1) for bound in bounds if bound), default=None)


def planned_visits(limits: Limits, options: Options, control: Control) -> int | None:
    """Return how many visits the root will have, for halving; None if something else may end the search.

    With a temperature, moves are drawn by their visits, which halving would make equal.
    """
    if control.has_deadline or control.waits or limits.depth is not None or options.temperature > 0:
        return None
    visits = visit_limit(limits, options, control)
    return visits if visits is not None and visits <= MOST_PLANNED_VISITS else None


def max_nodes(options: Options) -> int:
    """Return how many tree nodes fit into the memory of USI_Hash."""
    return min(max(options.hash_mb * 2**20 // NODE_BYTES, 1000), MAX_TREE_NODES)


def _enough(result: SearchResult, seen: int, limits: Limits, options: Options, control: Control) -> bool:
    """Return whether more search would change nothing, or nothing that was requested."""
    limit = visit_limit(limits, options, control)
    best = result.lines[0]
    return (
        result.visits == seen  # the tree is full, or everything in it is proven
        or best.mate is not None
        or (limit is not None and result.visits >= limit)
        or (limits.depth is not None and len(best.pv) >= limits.depth)
    )


def _infos(result: SearchResult, options: Options, control: Control, *, kept: int) -> list[Info]:
    lines = result.lines[: options.multipv]
    longest = max(len(line.pv) for line in result.lines)
    full = min(1000, 1000 * result.nodes // max_nodes(options))
    return [
        Info(
            depth=len(line.pv),
            seldepth=longest,
            value=line.value,
            mate=line.mate,
            nodes=result.visits,
            seconds=control.seconds,
            kept=kept,
            hashfull=full,
            pv=line.pv,
            multipv=None if options.multipv == 1 else rank,
            line_visits=line.visits,
        )
        for rank, line in enumerate(lines, 1)
    ]
