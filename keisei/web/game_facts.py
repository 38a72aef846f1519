"""What pages are told of games: moves in both languages, results, and records to download."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from keisei.language import ENGLISH, JAPANESE
from keisei.shogi import GameRecord, Move, Outcome, ShogiGame, write_csa, write_kif, write_usi
from keisei.web.game_store import StoredGame

WRITERS: dict[str, Callable[[GameRecord], str]] = {
    "kif": write_kif,
    "csa": write_csa,
    "usi": lambda record: write_usi(record) + "\n",
}
FORMATS = tuple(WRITERS)


def outcome_facts(outcome: Outcome | None) -> dict[str, Any]:
    """Return winner, reason and text of a result; winner 0 is Black, 1 White, null nobody."""
    winner = None if outcome is None or outcome.winner is None else int(outcome.winner)
    reason = None if outcome is None else str(outcome.reason)
    text = {"en": ENGLISH.outcome(outcome), "ja": JAPANESE.outcome(outcome)}
    return {"winner": winner, "reason": reason, "text": text}


def game_at(sfen: str, moves: Sequence[str]) -> ShogiGame:
    """Return a game after these moves, without a maximum length or declarations: a record is what it is."""
    game = ShogiGame(sfen, max_moves=None, declaration="off")
    for move in moves:
        game.push(move)
    return game


def texts_of_line(game: ShogiGame, moves: Sequence[Move]) -> dict[str, list[str]]:
    """Return moves that follow a position, as the readers of each language write them."""
    trial, texts = game.copy(), {"en": list[str](), "ja": list[str]()}
    for move in moves:
        texts["en"].append(ENGLISH.move(trial, move))
        texts["ja"].append(JAPANESE.move(trial, move))
        trial.push(move)
    return texts


@lru_cache(maxsize=10_000)
def opening_texts(sfen: str, moves: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the first moves of a game, likewise."""
    return texts_of_line(ShogiGame(sfen), [Move.from_usi(move) for move in moves])


def listed(game: StoredGame) -> dict[str, Any]:
    """Return what a listing says of a game."""
    return {
        "id": game.id,
        "run": game.run,
        "kind": game.kind,
        "black": game.black,
        "white": game.white,
        **outcome_facts(game.outcome),
        "plies": game.plies,
        "step": game.step,
        "opening": game.opening,
        "opening_texts": opening_texts(game.sfen, game.opening),
    }


def whole(game: StoredGame) -> dict[str, Any]:
    """Return everything of a game."""
    record = game.record()
    texts = texts_of_line(game_at(game.sfen, ()), record.moves)
    return listed(game) | {"sfen": game.sfen, "moves": game.moves, "texts": texts, "black_percent": None}


def written(record: GameRecord, kind: str) -> bytes:
    """Return a record as a file."""
    return WRITERS[kind](record).encode()


def file_name(*parts: object, kind: str) -> str:
    """Return a name for a download, of plain letters."""
    text = "-".join(str(part) for part in parts if part not in (None, ""))
    plain = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "@.-_") else "_" for letter in text
    )
    return f"{plain[:120] or 'game'}.{kind}"
