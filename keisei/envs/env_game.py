"""One game as every environment plays it: starting positions, action indices, observations, pictures."""

from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.envs.board_image import draw_rgb
from keisei.shogi import RulesError, ShogiGame, encoding
from keisei.shogi.outcome import Color, Outcome, Reason
from keisei.shogi.vector import VectorGames

RENDER_MODES = ["ansi", "rgb_array"]
Frame = str | npt.NDArray[np.uint8]


class EnvGame:
    """A game in progress, played by action indices.

    beginnings: a vector of one game that supplies the starting positions.
    illegal_action: "lose" loses the game, as the rules of shogi say; "raise" raises a RulesError.
    """

    def __init__(self, beginnings: VectorGames, illegal_action: str) -> None:
        if illegal_action not in ("lose", "raise"):
            raise ValueError(f"illegal_action is {illegal_action!r}, expected 'lose' or 'raise'")
        self._illegal_loses = illegal_action == "lose"
        self._beginnings = beginnings
        self.begin(0)

    def begin(self, seed: int) -> None:
        """Set up the first game of this seed."""
        self._beginnings.restart(seed=seed)
        self.game: ShogiGame = self._beginnings.game(0)
        self._illegal: Outcome | None = None

    @property
    def turn(self) -> Color:
        """The side to move."""
        return self.game.turn

    def outcome(self) -> Outcome | None:
        """Return how the game ended, or None if it has not."""
        return self._illegal or self.game.outcome()

    def play(self, action: int) -> None:
        """Play an action, then declare a win for the other side if it is entitled to one."""
        try:
            self.game.push(encoding.move_of(action, self.turn))
        except RulesError as error:
            if not self._illegal_loses:
                raise RulesError(f"illegal action {action}: {error}") from error
            self._illegal = Outcome(self.turn.opponent, Reason.ILLEGAL_MOVE)
            return
        if self.game.can_declare():
            self.game.declare()

    def observation(self, viewer: Color | None = None) -> npt.NDArray[np.float32]:
        """Return the planes, float32 [46, 9, 9], as the side to move (or `viewer`) sees the board."""
        seen = encoding.planes(encoding.pack([self.game])).reshape(encoding.PLANES, 9, 9)
        return seen if viewer in (None, self.turn) else _from_the_other_side(seen)

    def mask(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions, bool [13527]; none once the game is over."""
        if self.outcome():
            return np.zeros(encoding.ACTIONS, np.bool_)
        return encoding.legal_mask(encoding.pack([self.game])).reshape(encoding.ACTIONS)


def _from_the_other_side(seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the planes as the side not to move sees the board; the check plane is cleared."""
    own, enemy = seen[:14, ::-1, ::-1], seen[14:28, ::-1, ::-1]
    own_hand, enemy_hand = seen[28:35], seen[35:42]
    is_black, length_and_repetition, check = seen[42:43], seen[43:45], seen[45:]
    parts = [enemy, own, enemy_hand, own_hand, 1 - is_black, length_and_repetition, np.zeros_like(check)]
    return np.concatenate(parts)


def render(game: ShogiGame, mode: str) -> Frame:
    """Return a game's board as text ("ansi") or as a picture, uint8 [H, W, 3] ("rgb_array")."""
    if mode == "ansi":
        return str(game)
    history = game.history
    return draw_rgb(game.sfen(), history[-1] if history else None)


def checked_render_mode(mode: str | None) -> str | None:
    """Return a valid render mode or None; anything else is a ValueError."""
    if mode is not None and mode not in RENDER_MODES:
        raise ValueError(f"render_mode is {mode!r}, expected None, 'ansi' or 'rgb_array'")
    return mode


def result(outcome: Outcome) -> dict[str, Any]:
    """Return the result as reported in infos: winner (0 Black, 1 White, -1 nobody) and reason."""
    winner = -1 if outcome.winner is None else int(outcome.winner)
    return {"winner": winner, "reason": str(outcome.reason)}


def reward(outcome: Outcome | None, side: Color) -> float:
    """Return a side's reward, 1, 0 or -1; 0 while the game goes on."""
    if outcome is None or outcome.winner is None:
        return 0.0
    return 1.0 if outcome.winner is side else -1.0
