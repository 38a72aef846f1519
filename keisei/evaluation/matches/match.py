"""Matches: two players, many games at once, each opening played twice with colours swapped.

    result = play_match(NetworkPlayer(agent, "default", seed=1), make_player("greedy", seed=2), games=200)
    print(result)

The rules alone decide a game: none is adjudicated because one side stands better. A side that may declare a
win on its turn does so. A player's fault (an engine that crashes, times out or plays an illegal move) loses
that game, and the match goes on. A game depends on the seed, its pair's number, the conditions and the
players, not on how many are played side by side.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from keisei.evaluation.matches.match_conditions import MatchConditions
from keisei.evaluation.matches.match_result import GameSummary, MatchResult, PairSummary, summed_up
from keisei.evaluation.players.player import Answer, Lost, Player, Turn
from keisei.evaluation.ratings.sprt import Sprt
from keisei.shogi import Color, GameRecord, Outcome, Reason, ShogiGame

STANDARD = MatchConditions()

_COLORS = (Color.BLACK, Color.WHITE)


@dataclass(frozen=True, slots=True, eq=False)
class PlayedGame:
    """A finished game of a match.

    pair: its pair's number; both games of a pair have the same opening. color: the player's. opening: the
    number of moves made before the players took over. detail: the resignation or fault that lost it, if any.
    """

    pair: int
    color: Color
    black: str
    white: str
    opening: int
    game: ShogiGame
    outcome: Outcome
    detail: str = ""

    @property
    def summary(self) -> GameSummary:
        """What counts towards the result."""
        winner = self.outcome.winner
        half_points = 1 if winner is None else 2 if winner == self.color else 0
        return GameSummary(half_points, str(self.outcome.reason), len(self.game.history))

    def record(self) -> GameRecord:
        """Return the game as a record, to write as CSA, KIF or a USI line."""
        moves = tuple(self.game.history)
        comments = {len(moves): self.detail} if self.detail else {}
        return GameRecord(moves, self.game.start_sfen, self.black, self.white, self.outcome, comments)


def play_match(
    player: Player,
    opponent: Player,
    *,
    games: int = 200,
    conditions: MatchConditions = STANDARD,
    seed: int = 0,
    side_by_side: int = 100,
    earlier: Mapping[int, PairSummary] | None = None,
    sprt: Sprt | None = None,
    on_pair: Callable[[PlayedGame, PlayedGame], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> MatchResult:
    """Play a match and return its result.

    seed: for the openings. side_by_side: games played at once; it does not affect the result.
    earlier: pairs already played, which count and are not replayed.
    sprt: the match ends as soon as this test decides. It takes the pairs in the order of their numbers, so
    that short games do not count before long ones, and only the pairs it has seen make up the result.
    on_pair: called with both games of a finished pair, the one with the player as Black first.
    progress: called with the numbers of finished and of all games whenever some finish.
    should_stop: called before every round; once it returns True, the complete pairs are the result.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games is {games}, expected an even number, at least 2: openings are played twice")
    if side_by_side < 1:
        raise ValueError(f"side_by_side is {side_by_side}, expected at least 1")
    match = _Match(player, opponent, games // 2, conditions, seed, earlier or {})
    room = min([side_by_side, *(one.capacity for one in (player, opponent) if one.capacity is not None)])
    told = -1
    decision = None if sprt is None else match.decision(sprt)
    stopped = False
    try:
        while not match.is_over and decision is None:
            if progress is not None and match.finished_games > told:
                told = match.finished_games
                progress(told, games)
            if stopped := should_stop is not None and should_stop():
                break
            for pair in match.play_round(room):
                if on_pair is not None:
                    on_pair(*pair)
            if sprt is not None:
                decision = match.decision(sprt)
    finally:
        match.leave_tables()
    if progress is not None and match.finished_games > told:
        progress(match.finished_games, games)
    return match.result(stopped=stopped, sprt=sprt, decision=decision)


class _OngoingGame:
    """A game in progress and the player's colour in it."""

    def __init__(self, pair: int, color: Color, game: ShogiGame, number: int) -> None:
        self.pair = pair
        self.color = color
        self.game = game
        self.opening = len(game.history)
        self.turn = Turn(game, number)


class _Match:
    """The games of a match: upcoming, in progress and finished."""

    def __init__(
        self,
        player: Player,
        opponent: Player,
        pairs: int,
        conditions: MatchConditions,
        seed: int,
        earlier: Mapping[int, PairSummary],
    ) -> None:
        self._players = player, opponent
        self._pairs = pairs
        self._conditions = conditions
        self._seed = seed
        self.summaries = {number: pair for number, pair in earlier.items() if number < pairs}
        self._to_come = self._tables([pair for pair in range(pairs) if pair not in self.summaries])
        self._under_way: list[_OngoingGame] = []
        self._halves: dict[int, PlayedGame] = {}  # whose twin is still in progress
        self._prefix = 0  # pairs the test has seen, counted from the first without a gap
        self._points = [0] * 5  # how many of those gave the player 0 to 4 half-points

    def _tables(self, pairs: list[int]) -> Iterator[_OngoingGame]:
        player, opponent = self._players
        for pair in pairs:
            for color in _COLORS:
                black, white = (player, opponent) if color == Color.BLACK else (opponent, player)
                # The same number whichever of the two is called the player.
                number = 2 * pair + (black.identity > white.identity)
                yield _OngoingGame(pair, color, self._conditions.begin(pair, self._seed), number)

    @property
    def is_over(self) -> bool:
        return len(self.summaries) == self._pairs

    @property
    def finished_games(self) -> int:
        return 2 * len(self.summaries) + len(self._halves)

    def play_round(self, room: int) -> list[tuple[PlayedGame, PlayedGame]]:
        """Make one move for each player where it is its turn; return the pairs that are now complete."""
        while len(self._under_way) < room and (table := next(self._to_come, None)) is not None:
            self._under_way.append(table)
        complete = []
        for own, who in zip((True, False), self._players, strict=True):
            mine = [table for table in self._under_way if (table.game.turn == table.color) == own]
            if not mine:
                continue
            answers = who.choose([table.turn for table in mine])
            for table, answer in zip(mine, answers, strict=True):
                if (outcome := _played(table.game, answer)) is not None:
                    detail = answer.detail if isinstance(answer, Lost) else ""
                    complete += self._end(table, outcome, detail)
        return complete

    def _end(self, table: _OngoingGame, outcome: Outcome, detail: str) -> list[tuple[PlayedGame, PlayedGame]]:
        """Remove a finished game from play; return its pair if that is now complete."""
        self._leave(table)
        names = [who.name for who in self._players]
        black, white = names if table.color == Color.BLACK else reversed(names)
        game = PlayedGame(table.pair, table.color, black, white, table.opening, table.game, outcome, detail)
        twin = self._halves.pop(table.pair, None)
        if twin is None:
            self._halves[table.pair] = game
            return []
        first, second = (game, twin) if table.color == Color.BLACK else (twin, game)
        self.summaries[table.pair] = PairSummary(first.summary, second.summary)
        return [(first, second)]

    def _leave(self, table: _OngoingGame) -> None:
        self._under_way.remove(table)
        for who in self._players:
            who.end_game(table.turn)

    def leave_tables(self) -> None:
        """Tell the players that the games in progress will not be continued."""
        for table in [*self._under_way]:
            self._leave(table)

    def decision(self, sprt: Sprt) -> str | None:
        """Feed the gap-free pairs to the test one at a time, and return its decision."""
        while self._prefix in self.summaries:
            black, white = self.summaries[self._prefix]
            self._points[black.half_points + white.half_points] += 1
            self._prefix += 1
            if (decided := sprt.decision(self._points)) is not None:
                return decided
        return None

    def result(self, *, stopped: bool, sprt: Sprt | None, decision: str | None) -> MatchResult:
        player, opponent = self._players
        counted = sorted(self.summaries) if decision is None else range(self._prefix)
        pairs = [self.summaries[number] for number in counted]
        test = None if sprt is None else f"SPRT {sprt.elo0:g} to {sprt.elo1:g} Elo: {decision or 'undecided'}"
        return summed_up(player.name, opponent.name, pairs, self._seed, stopped=stopped, test=test)


def _played(game: ShogiGame, answer: Answer) -> Outcome | None:
    """Apply an answer, declare for the next side if it can, and return the outcome if the game is over."""
    mover = game.turn
    if isinstance(answer, Lost):
        if answer.reason == Reason.RESIGNATION:
            game.resign()
        return Outcome(mover.opponent, answer.reason)
    game.push(answer)
    if game.can_declare():
        game.declare()
    return game.outcome()
