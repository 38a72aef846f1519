"""Advantages for two players who move in turn: everything is from the mover's view, so signs alternate.

    delta_t = r_t - gamma * V(s_{t+1}) - V(s_t)
    A_t     = delta_t - gamma * lambda * A_{t+1}

At the last move of a game both next terms vanish. Where a segment stops in the middle of a game, the value of
the position after its last move, in the same game, stands in for the rest.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def advantages_and_returns(
    rewards: Floats,
    values: Floats,
    ended: npt.NDArray[np.bool_],
    bootstrap: Floats,
    *,
    gamma: float,
    gae_lambda: float,
) -> tuple[Floats, Floats]:
    """Return (advantages, returns), float32 [T, N], for N streams of games of T moves each.

    rewards: [T, N], for the player who moved. values: [T, N], of the positions before the moves, for the
    player to move.
    ended: [T, N], the move ended its game. bootstrap: [N], values of the positions after the last moves, for
        the player to move there; ignored where the last move ended a game.
    """
    advantages = np.zeros_like(values)
    next_value, next_advantage = bootstrap, np.zeros_like(bootstrap)
    for t in reversed(range(len(rewards))):
        goes_on = ~ended[t]
        delta = rewards[t] - gamma * np.where(goes_on, next_value, 0) - values[t]
        advantages[t] = delta - gamma * gae_lambda * np.where(goes_on, next_advantage, 0)
        next_value, next_advantage = values[t], advantages[t]
    return advantages, advantages + values
