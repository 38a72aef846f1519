"""Which games a listing shows: by run, kind, players, result, reason, length and opening."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keisei.shogi import START_SFEN, Color
from keisei.web.answers import Refusal
from keisei.web.game_facts import listed, opening_texts
from keisei.web.game_store import StoredGame

MOST_LISTED = 200
MOST_ZIPPED = 2000
_MOST_OPENINGS = 20
_WINNERS = {"black": Color.BLACK, "white": Color.WHITE, "draw": None}
_RESULTS = ("won", "lost", "drawn")


@dataclass(frozen=True, slots=True)
class GameFilter:
    """Empty fields let everything through. result: of the player, won, lost or drawn."""

    kind: str = ""
    player: str = ""
    winner: str = ""
    result: str = ""
    reason: str = ""
    shortest: int = 0
    longest: int = 10**9
    opening: tuple[str, ...] = ()

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "GameFilter":
        """Return the filter in a request's query."""
        winner, result = query.get("winner", ""), query.get("result", "")
        if winner not in ("", *_WINNERS):
            raise Refusal(400, f"winner: expected {', '.join(_WINNERS)}")
        if result not in ("", *_RESULTS):
            raise Refusal(400, f"result: expected {', '.join(_RESULTS)}")
        return cls(
            query.get("kind", ""),
            query.get("player", ""),
            winner,
            result,
            query.get("reason", ""),
            _number(query, "shortest", 0),
            _number(query, "longest", 10**9),
            tuple(move for move in query.get("opening", "").split(",") if move)[:40],
        )

    def takes(self, game: StoredGame) -> bool:
        """Return whether a game passes."""
        return (
            (not self.kind or game.kind == self.kind)
            and (not self.player or self.player in (game.black, game.white))
            and (not self.winner or self._is_result(game, _WINNERS[self.winner]))
            and (not self.result or self._is_for_player(game))
            and (not self.reason or (game.outcome is not None and str(game.outcome.reason) == self.reason))
            and self.shortest <= game.plies <= self.longest
            and game.moves[: len(self.opening)] == self.opening
        )

    def _is_result(self, game: StoredGame, winner: Color | None) -> bool:
        return game.outcome is not None and game.outcome.winner == winner

    def _is_for_player(self, game: StoredGame) -> bool:
        """Return whether the player's result is the wanted one, on either side."""
        if game.outcome is None:
            return False
        if self.result == "drawn":
            return game.outcome.winner is None
        if game.outcome.winner is None:
            return False
        winner, loser = (game.black, game.white)[:: 1 if game.outcome.winner is Color.BLACK else -1]
        return not self.player or self.player == (winner if self.result == "won" else loser)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    if not (text := query.get(name, "")):
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refusal(400, f"{name}: expected a whole number")
    return int(text)


def listing(games: Sequence[StoredGame], wanted: GameFilter, offset: int, limit: int) -> dict[str, Any]:
    """Return one page of a listing, and what can be chosen in all of the games."""
    found = [game for game in games if wanted.takes(game)]
    return {
        "total": len(found),
        "games": [listed(game) for game in found[offset : offset + limit]],
        "players": _players(games),
        "reasons": sorted({str(game.outcome.reason) for game in games if game.outcome is not None}),
        "openings": _openings(found),
    }


def _players(games: Iterable[StoredGame]) -> list[str]:
    """Return who has played whom; in a training game the network of one update plays itself."""
    chosen = [game for game in games if game.kind != "training"]
    return sorted({name for game in chosen for name in (game.black, game.white) if name})


def _openings(games: Iterable[StoredGame]) -> list[dict[str, Any]]:
    """Return the most frequent openings of even games."""
    counts = Counter(game.opening for game in games if game.opening and game.sfen == START_SFEN)
    return [
        {"moves": moves, "texts": opening_texts(START_SFEN, moves), "games": count}
        for moves, count in counts.most_common(_MOST_OPENINGS)
    ]
