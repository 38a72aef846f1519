"""The PettingZoo environment: PettingZoo's own tests, and who gets which reward."""

import warnings
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test

from keisei.envs import shogi_v0
from keisei.shogi import Color, RulesError, ShogiGame, encoding

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


@pytest.mark.parametrize(
    "options", [{}, {"max_moves": 12}, {"starts": ["4k4/9/9/9/9/9/9/9/4K4 w - 1"], "render_mode": "ansi"}]
)
@pytest.mark.parametrize("make", [shogi_v0.env, shogi_v0.raw_env])
def test_the_api_test_passes(make: Any, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        # It warns about dictionaries, which every game with an action mask needs.
        warnings.filterwarnings("ignore", message="Observation space for each agent probably should be")
        warnings.filterwarnings("ignore", message="Observation is not a NumPy array")
        api_test(make(**options), num_cycles=300)


def test_the_seed_test_passes() -> None:
    seed_test(lambda: shogi_v0.env(random_plies=6, max_moves=30), num_cycles=100)


def test_a_seed_names_the_game() -> None:
    env = shogi_v0.env(random_plies=6)
    seen = []
    for seed in (0, 0, 1, 1, 2, None, None):
        env.reset(seed=seed)
        seen.append(env.observe("player_0")["observation"].tobytes())
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert len(set(seen)) == 5


def test_each_agent_sees_its_own_side() -> None:
    env, game = shogi_v0.raw_env(), ShogiGame()
    env.reset()
    random = np.random.default_rng(1)
    for ply in range(40):
        mover, other = ("player_0", "player_1") if ply % 2 == 0 else ("player_1", "player_0")
        assert env.agent_selection == mover
        own, others = env.observe(mover), env.observe(other)
        assert np.array_equal(own["observation"], encoding.planes(encoding.pack([game]))[0])
        assert np.array_equal(own["action_mask"], encoding.legal_mask(encoding.pack([game]))[0])
        assert not others["action_mask"].any()
        # The other side's own pieces are the mover's enemies, rotated.
        assert np.array_equal(others["observation"][:14], own["observation"][14:28, ::-1, ::-1])
        assert np.array_equal(others["observation"][28:35], own["observation"][35:42])
        assert not others["observation"][45].any()
        chosen = int(random.choice(np.flatnonzero(own["action_mask"])))
        game.push(encoding.move_of(chosen, game.turn))
        env.step(chosen)


def test_both_get_their_reward_at_the_end() -> None:
    env = shogi_v0.env(starts=[MATE_IN_ONE])
    env.reset()
    env.step(encoding.action_of("G*5b", Color.BLACK))
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
    assert env.infos["player_1"] == {"winner": 0, "reason": "checkmate"}
    rewards = {}
    for agent in env.agent_iter():
        _, rewards[agent], terminated, truncated, _ = env.last()
        assert (terminated, truncated) == (True, False)
        env.step(None)
    assert rewards == {"player_0": 1.0, "player_1": -1.0}
    assert env.agents == []


@pytest.mark.parametrize("flip", [False, True])
def test_the_other_view_is_that_of_the_position_with_the_other_side_to_move(flip: bool) -> None:
    side, other = ("w", "b") if flip else ("b", "w")
    sfen = f"4k4/1r7/9/3+P5/9/6n2/9/7B1/4K4 {side} RG2Pgs3p 7"
    env = shogi_v0.raw_env(starts=[sfen], max_moves=100)
    env.reset()
    seen = encoding.planes(encoding.pack_sfens([sfen.replace(f" {side} ", f" {other} ")], max_moves=100))[0]
    assert np.array_equal(env.observe("player_0" if flip else "player_1")["observation"], seen)


def test_a_check_is_seen_by_the_side_in_check_alone() -> None:
    env = shogi_v0.raw_env(starts=["4k4/9/9/4+R4/9/9/9/9/4K4 w - 1"])
    env.reset()
    assert env.observe("player_1")["observation"][45].all()
    assert not env.observe("player_0")["observation"][45].any()


def test_a_draw_rewards_nobody_and_is_no_truncation() -> None:
    env = shogi_v0.raw_env(max_moves=1)
    env.reset()
    env.step(encoding.action_of("7g7f", Color.BLACK))
    assert env.rewards == {"player_0": 0, "player_1": 0}
    assert (env.terminations, env.truncations) == (
        {"player_0": True, "player_1": True},
        {"player_0": False, "player_1": False},
    )
    assert env.infos["player_0"] == {"winner": -1, "reason": "maximum length"}
    for agent in env.possible_agents:
        assert not env.observe(agent)["action_mask"].any()


def test_a_reset_leaves_nothing_of_the_game_before() -> None:
    env = shogi_v0.raw_env(starts=[MATE_IN_ONE])
    for _ in range(2):
        env.reset()
        assert env.agents == ["player_0", "player_1"]
        assert env.last()[1:] == (0, False, False, {})
        assert env.rewards == {"player_0": 0, "player_1": 0}
        env.step(encoding.action_of("G*5b", Color.BLACK))
        assert env.last()[1:] == (-1, True, False, {"winner": 0, "reason": "checkmate"})


def test_who_may_declare_after_the_others_move_has_won() -> None:
    start = "+P+P+P1K+P+P+P+P/+P+P+P6/9/9/9/9/9/9/4k4 w RB8Prb 10"
    for declaration, reward in [("27", 1), ("off", 0)]:
        env = shogi_v0.raw_env(starts=[start], declaration=declaration)
        env.reset()
        assert env.agent_selection == "player_1"
        env.step(encoding.action_of("5i5h", Color.WHITE))
        assert env.rewards == {"player_0": reward, "player_1": -reward}


def test_an_illegal_action_loses() -> None:
    env = shogi_v0.env()
    env.reset()
    env.step(encoding.action_of("7g7e", Color.BLACK))
    assert env.rewards == {"player_0": -1.0, "player_1": 1.0}
    assert env.terminations == {"player_0": True, "player_1": True}
    assert env.truncations == {"player_0": False, "player_1": False}
    assert env.infos["player_0"] == {"winner": 1, "reason": "illegal move"}


def test_an_illegal_action_can_be_an_error() -> None:
    env = shogi_v0.raw_env(illegal_action="raise")
    with pytest.raises(RulesError, match="illegal move 7g7e"):
        env.step(encoding.action_of("7g7e", Color.BLACK))
    with pytest.raises(ValueError, match="the game is not over"):
        env.step(None)
    env.step(encoding.action_of("7g7f", Color.BLACK))
    assert env.agent_selection == "player_1"
