"""The conditions of a match: rules and openings. Results are combined only if these agree."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keisei.config.schema import AppConfig
from keisei.core.keyed_random import uniforms
from keisei.errors import refuse_special
from keisei.shogi import NotationError, RulesError, ShogiGame, read_usi

START = "startpos"
RANDOM_PLIES = 4  # so that games differ, and no side is lost before the players begin


@dataclass(frozen=True, slots=True)
class MatchConditions:
    """Rules and openings of a match.

    random_plies: random moves before the players take over. One that would end the game is not played, and
    the opening is then shorter.
    openings: start positions, used in turn for each pair, as USI position lines ("startpos moves …",
    "sfen …"); see read_openings.
    """

    random_plies: int = RANDOM_PLIES
    max_moves: int = 512
    declaration: str = "27"
    openings: tuple[str, ...] = (START,)

    def __post_init__(self) -> None:
        """Reject conditions under which no game could be played."""
        if self.random_plies < 0:
            raise ValueError(f"random_plies is {self.random_plies}, expected 0 or more")
        if not self.openings:
            raise ValueError("openings is empty, expected at least one position")
        for number, opening in enumerate(self.openings, 1):
            try:
                game = self._opened(opening)
            except RulesError as error:  # such as a move beyond max_moves
                raise RulesError(f"opening {number}, {opening}: {error}") from error
            if game.outcome() is not None or game.can_declare():
                raise RulesError(
                    f"opening {number}, {opening}: the game is already over (at most {self.max_moves}"
                    f" moves, declaration {self.declaration}), expected a position to play from"
                )

    def __str__(self) -> str:
        """Return the conditions in one line, a list of openings as its hash."""
        digest = hashlib.sha256("\n".join(self.openings).encode()).hexdigest()[:12]
        count = f"{len(self.openings)} opening{'s' * (len(self.openings) > 1)}"
        openings = START if self.openings == (START,) else f"{count} {digest}"
        return (
            f"{openings}, {self.random_plies} random plies, at most {self.max_moves} moves,"
            f" declaration {self.declaration}"
        )

    def begin(self, pair: int, seed: int) -> ShogiGame:
        """Return the opening of a pair of games, always the same for a seed and number."""
        game = self._opened(self.openings[pair % len(self.openings)])
        for _ in range(self.random_plies):
            draw = uniforms(seed, np.array([pair], np.uint64), np.array([game.ply], np.int64)).item()
            legal = game.legal_moves()
            game.push(legal[int(draw * len(legal))])
            if game.outcome() is not None or game.can_declare():
                game.pop()
                break
        return game

    def _opened(self, opening: str) -> ShogiGame:
        record = read_usi(opening)
        game = ShogiGame(record.sfen, max_moves=self.max_moves, declaration=self.declaration)
        for move in record.moves:
            game.push(move)
        return game


def conditions_of(config: AppConfig) -> MatchConditions:
    """Return the conditions of the matches played during a run."""
    evaluation = config.evaluation
    return MatchConditions(max_moves=evaluation.max_moves, declaration=config.env.declaration)


def read_openings(path: Path) -> tuple[str, ...]:
    """Return the positions in a file, one per line: an SFEN, or a USI position line with moves.

    Empty lines and lines that start with # are skipped. A line that is not a playable position is an error
    that names it.
    """
    found = []
    refuse_special(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise NotationError(f"{path} is not a text file: expected an SFEN on each line, in UTF-8") from error
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        words = text.removeprefix("position ")
        position = words if words.startswith(("sfen ", START)) else f"sfen {words}"
        try:
            game = read_usi(position).game()
        except (NotationError, RulesError) as error:
            raise type(error)(f"{path}, line {number}: {error}") from error
        if game.outcome() is not None or game.can_declare():
            raise RulesError(
                f"{path}, line {number}: the game is already over, expected a position to play from"
            )
        found.append(position)
    if not found:
        raise NotationError(f"{path} has no positions: expected an SFEN on each line")
    return tuple(found)
