"""The shogi learner on games with known solutions: it finds them, for both sides."""

import numpy as np
import numpy.typing as npt
import pytest
from learning import buffer_of, small_config
from learning import one_thread as one_thread
from small_games import Nim, SmallGame, SmallNetwork, SmallSelfPlay, Solver, State, TicTacToe

from keisei.core import experience_buffer
from keisei.core.advantages import Floats
from keisei.core.learning_agent import LearningAgent
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent
from keisei.core.search_agent import SearchAgent

pytestmark = pytest.mark.timeout(900)  # they compute for a minute; on a busy machine that took 200 s

# For each game: entropy coefficient, learning rate, width and updates of 1,024 moves. Seconds on one core.
SEARCH_SETTINGS = {Nim: (0.1, 0.01, 75), TicTacToe: (0.05, 0.005, 150)}  # the same, without the width
SETTINGS = {Nim: (0.3, 0.01, 64, 75), TicTacToe: (0.1, 0.005, 128, 120)}


def train(game: SmallGame, learners: int = 1) -> PPOAgent:
    """Return an agent trained from scratch by self-play, with the shogi learner."""
    entropy_coef, learning_rate, width, updates = SETTINGS[type(game)]
    config = small_config(
        games=64,
        steps_per_epoch=1024,
        minibatch_size=256,
        ppo_epochs=4,
        learning_rate=learning_rate,
        entropy_coef=entropy_coef,
        learners=learners,
    )
    network = SmallNetwork(game, width, seed=1)
    agent = PPOAgent(config, network=network, decode=game.decode, numerics=Numerics())
    self_play = SmallSelfPlay(game, 64, seed=1)
    for update in range(updates):
        segment = self_play.rollout(agent, 16)
        agent.learn(buffer_of(segment, gamma=0.97, gae_lambda=0.9), progress=update / updates)
    return agent


def train_by_search(game: SmallGame) -> SearchAgent:
    """Return an agent that has learned from looking one move ahead, with the shogi learner."""
    entropy_coef, learning_rate, updates = SEARCH_SETTINGS[type(game)]
    config = small_config(
        algorithm="search",
        search={"candidates": game.actions, "window": 4096, "reuse": 4.0},
        games=64,
        steps_per_epoch=1024,
        minibatch_size=256,
        learning_rate=learning_rate,
        entropy_coef=entropy_coef,
        value_coef=1.0,
    )
    network = SmallNetwork(game, 128, seed=1)
    agent = SearchAgent(config, network=network, decode=game.decode, numerics=Numerics())
    self_play = SmallSelfPlay(game, 64, seed=1)
    for update in range(updates):
        segment = self_play.rollout(agent, 16, searches=True)
        agent.learn(buffer_of(segment, gamma=0.97, gae_lambda=0.7), progress=update / updates)
    return agent


def greedy(agent: LearningAgent, game: SmallGame, states: list[State]) -> dict[State, int]:
    """Return the most probable move in each position."""
    rows = np.array(states, np.uint8)
    choice = agent.select_action(game.decode(rows), np.zeros(len(rows)), temperature=0)
    return dict(zip(states, choice.actions.tolist(), strict=True))


def wrong_nim_moves(agent: LearningAgent) -> list[State]:
    """Return the won Nim positions in which the agent's move does not win."""
    solver = Solver(Nim())
    states = [s for s in np.ndindex(4, 5, 6) if any(s) and solver.value(s) == 1]
    assert states == [s for s in np.ndindex(4, 5, 6) if s[0] ^ s[1] ^ s[2]], "the theory of Nim"
    chosen = greedy(agent, solver.game, states)
    return [
        state
        for state in states
        if not any(move[0] == chosen[state] and solver.worth(move) == 1 for move in solver.moves(state))
    ]


def lost_games(agent: LearningAgent, solver: Solver, agent_begins: bool) -> tuple[int, int]:
    """Return (lost, all) games from the start, one for each way an opponent can play against the agent."""
    start: State = (0,) * 18
    layer, agents_turn, lost, ends = [start], agent_begins, 0, 0
    while layer:
        chosen = greedy(agent, solver.game, sorted(set(layer))) if agents_turn else {}
        following = []
        for state in layer:
            for action, after, reward, over in solver.moves(state):
                if agents_turn and action != chosen[state]:
                    continue
                if not over:
                    following.append(after)
                ends += over
                lost += over and reward == 1 and not agents_turn
        layer, agents_turn = following, not agents_turn
    return lost, ends


@pytest.mark.parametrize("learners", [1, 3])
def test_nim_is_won_from_every_position_that_can_be_won(learners: int) -> None:
    assert wrong_nim_moves(train(Nim(), learners)) == []


def test_tic_tac_toe_is_never_lost_by_either_side() -> None:
    agent, solver = train(TicTacToe()), Solver(TicTacToe())
    assert solver.value((0,) * 18) == 0
    for begins in (True, False):
        lost, ends = lost_games(agent, solver, begins)
        assert ends > 50
        assert lost == 0


def test_looking_ahead_solves_both_games_too() -> None:
    """All but 1 % of the ways to play tic-tac-toe against it: some are met too rarely to be learned."""
    assert wrong_nim_moves(train_by_search(Nim())) == []
    agent, solver = train_by_search(TicTacToe()), Solver(TicTacToe())
    for begins in (True, False):
        lost, ends = lost_games(agent, solver, begins)
        assert ends > 50
        assert lost <= ends // 100


def as_if_alone(
    rewards: Floats,
    values: Floats,
    ended: npt.NDArray[np.bool_],
    bootstrap: Floats,
    *,
    gamma: float,
    gae_lambda: float,
) -> tuple[Floats, Floats]:
    """Compute the usual single-player advantages, where the next position is the same player's."""
    advantages, following, after = np.zeros_like(values), np.zeros_like(bootstrap), bootstrap
    for t in reversed(range(len(rewards))):
        goes_on = np.where(ended[t], 0, 1).astype(np.float32)
        delta = rewards[t] + gamma * goes_on * after - values[t]
        advantages[t] = following = delta + gamma * gae_lambda * goes_on * following
        after = values[t]
    return advantages, advantages + values


def test_a_learner_that_forgets_its_opponent_learns_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """This shows that the tests above would notice a wrong sign."""
    monkeypatch.setattr(experience_buffer, "advantages_and_returns", as_if_alone)
    assert len(wrong_nim_moves(train_by_search(Nim()))) > 20
    assert len(wrong_nim_moves(train(Nim()))) > 20
    agent, solver = train(TicTacToe()), Solver(TicTacToe())
    assert sum(lost_games(agent, solver, begins)[0] for begins in (True, False)) > 20
