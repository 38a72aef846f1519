"""The position that a GUI sets up, as a game. Every move is checked.

A GUI may play on where this program's rules end a game: beyond the maximum length, or after a repetition. The
game then continues here too, from the position alone, because an engine that does not answer loses.
"""

from keisei.shogi import Reason, ShogiGame
from keisei.usi.protocol import SetPosition

# A game that ended this way may be continued; one that ended in mate cannot.
_ARBITRARY_ENDS = {
    Reason.MAXIMUM_LENGTH,
    Reason.REPETITION,
    Reason.PERPETUAL_CHECK,
    Reason.DECLARATION,
}


def set_up(
    position: SetPosition, *, max_moves: int | None, declaration: str, kings: str = "both"
) -> ShogiGame:
    """Return the game; a malformed SFEN or move raises NotationError, a breach of the rules RulesError."""
    game = ShogiGame(position.sfen, max_moves=max_moves, declaration=declaration, kings=kings)
    for move in position.moves:
        game = _continued(game)
        game.push(move)
    return _continued(game)


def game_length(position: SetPosition, max_moves: int, trained: int | None) -> int | None:
    """Return the maximum length of a game to think about: the GUI's, or if it has none, one far away.

    The network sees the ply as a share of the length, so without a limit it is shown shares as in training
    and an end that is never near.
    """
    if max_moves:
        return max_moves
    if trained is None:
        return None
    start = ShogiGame(position.sfen, max_moves=None).ply
    return max(trained, 2 * (start + len(position.moves)))


def _continued(game: ShogiGame) -> ShogiGame:
    outcome = game.outcome()
    if outcome is None or outcome.reason not in _ARBITRARY_ENDS:
        return game
    declaration = "off" if outcome.reason is Reason.DECLARATION else game.declaration
    # A start has the side to move that may lack its king: after its move, the position before it is one.
    again = [game.pop()] if game.kings == "defender" and len(game.history) % 2 else []
    fresh = ShogiGame(game.sfen(), max_moves=None, declaration=declaration, kings=game.kings)
    for move in again:
        fresh.push(move)
    return fresh
