"""A player that searches."""

from collections.abc import Mapping, Sequence

from keisei.evaluation.players.player import Answer, Player, Turn
from keisei.search.puct import CANDIDATES, Evaluate, Search, SearchSettings

# Many games fill a batch on their own, and a search is better with few leaves at a time. Halving is for a
# planned number of visits.
MANY_GAMES = SearchSettings(leaves=2, candidates=CANDIDATES)


class SearchPlayer(Player):
    """A player that searches all its games at once: it plays a proven win, or the best move.

    That is the most visited one or, with settings.candidates, the best of the most visited.

    identity: the evaluation's, such as a checkpoint's hash; limits and settings are appended to it.
    visits: per root. seconds: per answer, for all its games together. At least one of the two is required.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        name: str,
        identity: str,
        *,
        visits: int | None = None,
        seconds: float | None = None,
        settings: SearchSettings = MANY_GAMES,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        if visits is None and seconds is None:
            raise ValueError("no limit: expected visits or seconds")
        self.name = name
        self._evaluate = evaluate
        self._visits = visits
        self._seconds = seconds
        self._settings = settings
        self._facts = dict(facts or {})
        self.identity = f"{identity}, {self.describe()['search']}"

    def choose(self, turns: Sequence[Turn]) -> Sequence[Answer]:
        """Return the best move for each of these games."""
        if not turns:
            return []
        search = Search(
            [turn.game for turn in turns],
            self._evaluate,
            settings=self._settings,
            planned_visits=self._visits,
        )
        search.run(visits=self._visits, seconds=self._seconds)
        return [search.result(index).lines[0].move for index in range(len(turns))]

    def describe(self) -> dict[str, str]:
        """Return the given facts, and the limits and settings of the search."""
        limits = [f"{self._visits} visits"] if self._visits is not None else []
        limits += [f"{self._seconds:g} s"] if self._seconds is not None else []
        settings = self._settings
        numbers = [f"c_puct {settings.c_puct:g}", f"fpu {settings.fpu:g}", f"leaves {settings.leaves}"]
        numbers += [f"candidates {settings.candidates}"] if settings.candidates else []
        numbers += [] if settings.repetition_draws else ["draws at the fourth repetition only"]
        return self._facts | {"search": ", ".join([*limits, *numbers, f"at most {settings.max_nodes} nodes"])}
