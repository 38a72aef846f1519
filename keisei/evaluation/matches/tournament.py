"""A tournament: matches whose games and results are kept in a directory, and the ratings from them.

    DIRECTORY/results.sqlite            every game's result, once
    DIRECTORY/games/A_vs_B-1f0c22ab.csa the games of a match, and as USI lines in A_vs_B-1f0c22ab.usi

An interrupted match resumes where it stopped, and a finished one is not replayed: a game is identified by its
players, conditions, seed and number, whichever of the two is called the player.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from keisei.evaluation.matches.game_files import GameFiles
from keisei.evaluation.matches.match import PlayedGame, play_match
from keisei.evaluation.matches.match_conditions import MatchConditions
from keisei.evaluation.matches.match_result import GameSummary, MatchResult, PairSummary
from keisei.evaluation.matches.results_store import ResultsError, ResultsStore, StoredGame
from keisei.evaluation.players.player import Player
from keisei.evaluation.players.player_specs import BUILT_IN_NAMES, ONE_THREAD, Machine, make_player
from keisei.evaluation.ratings.rating import PairResult, Ratings, rate
from keisei.evaluation.ratings.sprt import Sprt
from keisei.shogi import Color

RESULTS = "results.sqlite"
ANCHOR = "random"  # its rating is 0
LINK_GAMES = 100  # between the built-in players that others are measured against


def scale(opponents: Sequence[str]) -> list[str]:
    """Return the anchor and the built-in players among these, from the weakest to the strongest."""
    return [name for name in BUILT_IN_NAMES if name == ANCHOR or name in opponents]


def neighbours(opponents: Sequence[str], seed: int, machine: Machine) -> list[tuple[Player, Player]]:
    """Return each pair of neighbours on the scale of these opponents, the stronger one first."""
    players = [make_player(name, seed, machine) for name in scale(opponents)]
    return [(stronger, weaker) for weaker, stronger in pairwise(players)]


class Tournament:
    """Matches under the same conditions; a context manager."""

    def __init__(self, directory: Path, conditions: MatchConditions, seed: int) -> None:
        if directory.exists() and not directory.is_dir():
            raise ResultsError(f"{directory} is a file, expected a directory for results and games")
        directory.mkdir(parents=True, exist_ok=True)
        self.conditions = conditions
        self.seed = seed
        self._directory = directory
        self.results = ResultsStore.open(directory / RESULTS)

    def play(
        self,
        player: Player,
        opponent: Player,
        games: int,
        *,
        sprt: Sprt | None = None,
        side_by_side: int = 100,
        progress: Callable[[int, int], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> MatchResult:
        """Play the missing games of a match, store them, and return the whole result."""
        if player.identity == opponent.identity:
            raise ValueError(f"{player.name} cannot play against itself, expected two different players")
        for one in (player, opponent):
            facts = one.describe()
            step = int(facts["step"]) if "step" in facts else None
            self.results.add_player(one.identity, one.name, step, facts)
        files = self._files(player, opponent)

        def keep(*pair: PlayedGame) -> None:
            def write() -> None:
                files.add(pair, lambda: self.count(player, opponent) - len(pair))

            # The files first: games that count are then on disk, and in one order if two processes play.
            self.results.add([self._stored(game, player, opponent) for game in pair], write)

        return play_match(
            player,
            opponent,
            games=games,
            conditions=self.conditions,
            seed=self.seed,
            side_by_side=side_by_side,
            earlier=self._earlier(player, opponent),
            sprt=sprt,
            on_pair=keep,
            progress=progress,
            should_stop=should_stop,
        )

    def link(
        self,
        opponents: Sequence[str],
        games: int = LINK_GAMES,
        machine: Machine = ONE_THREAD,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        """Play matches between neighbours in strength among the anchor and built-in opponents.

        They put everyone who has played one of them on a common scale.
        """
        for stronger, weaker in neighbours(opponents, self.seed, machine):
            self.play(stronger, weaker, games, should_stop=should_stop)

    def count(self, player: Player, opponent: Player) -> int:
        """Return how many games between these two are stored."""
        both = ((player.identity, opponent.identity), (opponent.identity, player.identity))
        return sum(len(self.results.known(*two, str(self.conditions), self.seed)) for two in both)

    def totals(self) -> list[PairResult]:
        """Return the results of each pair of players under these conditions and with this seed.

        Other seeds are left out: without randomness they would repeat the same games.
        """
        return self.results.totals(str(self.conditions), self.seed)

    def ratings(self, up_to: int | None = None) -> Ratings | None:
        """Return the ratings by identity of all who have played under these conditions with this seed.

        None if the anchor has not played. up_to: networks count only up to this step.
        """
        steps = {one.identity: one.step or 0 for one in self.results.players().values()}
        later = {identity for identity, step in steps.items() if up_to is not None and step > up_to}
        counted = [row for row in self.totals() if not {row.player, row.opponent} & later]
        if not any(ANCHOR in (row.player, row.opponent) for row in counted):
            return None
        return rate(counted, ANCHOR)

    def close(self) -> None:
        """Close the results store."""
        self.results.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _files(self, player: Player, opponent: Player) -> GameFiles:
        one, other = sorted((player, opponent), key=lambda each: (each.name, each.identity))
        key = "\n".join([one.identity, other.identity, str(self.conditions), str(self.seed)])
        return GameFiles(self._directory / "games", [one.name, other.name], key)

    def _stored(self, game: PlayedGame, player: Player, opponent: Player) -> StoredGame:
        black, white = player.identity, opponent.identity
        if game.color == Color.WHITE:
            black, white = white, black
        winner = None if game.outcome.winner is None else int(game.outcome.winner)
        _, reason, plies = game.summary
        return StoredGame(black, white, str(self.conditions), self.seed, game.pair, winner, reason, plies)

    def _earlier(self, player: Player, opponent: Player) -> dict[int, PairSummary]:
        """Return the pairs whose games are both stored."""
        as_black = self._known(player.identity, opponent.identity, Color.BLACK)
        as_white = self._known(opponent.identity, player.identity, Color.WHITE)
        return {
            pair: PairSummary(as_black[pair], as_white[pair]) for pair in as_black.keys() & as_white.keys()
        }

    def _known(self, black: str, white: str, color: Color) -> dict[int, GameSummary]:
        return {
            game.pair: GameSummary(
                1 if game.winner is None else 2 if game.winner == color else 0, game.reason, game.plies
            )
            for game in self.results.between(black, white, str(self.conditions), self.seed)
        }
