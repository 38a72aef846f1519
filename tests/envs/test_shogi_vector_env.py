"""The vector environment: the native games behind gymnasium.vector's interface."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from keisei.envs import ShogiEnv, ShogiVectorEnv
from keisei.shogi import Color, RulesError, encoding
from keisei.shogi.vector import VectorGames

COUNT = 6


def random_actions(env: ShogiVectorEnv, random: np.random.Generator) -> Any:
    offsets, actions = env.legal_actions()
    return np.array([random.choice(actions[offsets[i] : offsets[i + 1]]) for i in range(env.num_envs)])


def test_make_vec_makes_it() -> None:
    env = gymnasium.make_vec("keisei/Shogi-v0", num_envs=COUNT, threads=2)
    assert isinstance(env, ShogiVectorEnv)
    assert isinstance(env, VectorEnv)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert env.single_action_space == gymnasium.spaces.Discrete(13_527)
    assert env.observation_space.shape == (COUNT, 46, 9, 9)
    observations, _ = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    env.close()


def test_it_plays_as_gymnasiums_own_vector_of_single_environments() -> None:
    """Play the same actions in SyncVectorEnv (same-step autoreset) over ShogiEnv, from fixed starts."""
    native = ShogiVectorEnv(COUNT, max_moves=40, threads=2)
    single = SyncVectorEnv([lambda: ShogiEnv(max_moves=40)] * COUNT, autoreset_mode=AutoresetMode.SAME_STEP)
    random = np.random.default_rng(3)
    ours, theirs = native.reset(seed=1), single.reset(seed=1)
    assert np.array_equal(ours[0], theirs[0])
    ended = 0
    for _ in range(130):
        actions = random_actions(native, random)
        mine: Any = native.step(actions)
        other: Any = single.step(actions)
        for part in range(4):
            assert np.array_equal(mine[part], other[part])
        for key in ("to_move", "ply"):
            assert np.array_equal(mine[4][key], other[4][key])
        assert [part.dtype for part in mine[:4]] == [part.dtype for part in other[:4]]
        assert np.array_equal(native.action_masks(), other[4]["action_mask"])
        for slot in np.flatnonzero(mine[2]):
            ended += 1
            assert np.array_equal(mine[4]["final_obs"][slot], other[4]["final_obs"][slot])
            for key in ("winner", "reason"):
                assert mine[4]["final_info"][key][slot] == other[4]["final_info"][key][slot]
        for key in ("_final_obs", "_final_info"):
            assert np.array_equal(mine[4].get(key, np.zeros(COUNT, np.bool_)), mine[2])
    assert ended >= 3 * COUNT


def test_wrappers_of_gymnasium_work_on_it() -> None:
    env = DictInfoToList(RecordEpisodeStatistics(ShogiVectorEnv(COUNT, max_moves=20)))
    env.reset(seed=1)
    random = np.random.default_rng(1)
    shogi = env.unwrapped
    assert isinstance(shogi, ShogiVectorEnv)
    for _ in range(20):
        _, _, terminated, _, infos = env.step(random_actions(shogi, random))
    assert terminated.all()
    assert [info["episode"]["l"] for info in infos] == [20] * COUNT
    assert [info["final_info"]["length"] for info in infos] == [20] * COUNT


def test_results_are_copies_unless_not_wanted() -> None:
    for copy in (True, False):
        env = ShogiVectorEnv(2, copy=copy)
        first, _ = env.reset(seed=1)
        before = first.copy()
        random = np.random.default_rng(1)
        second, rewards, ended, *_ = env.step(random_actions(env, random))
        assert np.array_equal(first, before) is copy
        assert np.shares_memory(first, second) is not copy
        _, later_rewards, later_ended, *_ = env.step(random_actions(env, random))
        assert not np.shares_memory(rewards, later_rewards)
        assert not np.shares_memory(ended, later_ended)


def test_a_seed_names_the_games() -> None:
    env = ShogiVectorEnv(COUNT, random_plies=8)
    first, again, other = (env.reset(seed=seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(env.reset()[0], env.reset()[0])


def test_the_result_of_a_finished_game_is_in_the_infos() -> None:
    start = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    env = ShogiVectorEnv(2, starts=[start])
    env.reset(seed=1)
    mate, wait = (encoding.action_of(move, Color.BLACK) for move in ("G*5b", "G*1a"))
    for number in (1, 3):  # the games of slot 1
        _, rewards, *_, infos = env.step(np.array([wait, mate]))
        assert rewards.tolist() == [0, 1]
        final = {key: values[1] for key, values in infos["final_info"].items() if key[0] != "_"}
        assert final == {"winner": Color.BLACK, "reason": "checkmate", "length": 1, "game": number}
        wait = encoding.action_of("5a4a", Color.WHITE)


def test_the_length_of_a_game_counts_its_random_moves() -> None:
    env = ShogiVectorEnv(1, random_plies=3, max_moves=4)
    env.reset(seed=1)
    *_, infos = env.step(random_actions(env, np.random.default_rng(1)))
    assert infos["final_info"]["length"].tolist() == [4]


def test_without_the_declaration_rule_nobody_declares() -> None:
    start = "+P+P+P1K+P+P+P+P/+P+P+P6/9/9/9/9/9/9/4k4 w RB8Prb 10"
    for declaration, reward in [("27", -1), ("off", 0)]:
        env = ShogiVectorEnv(1, starts=(start,), declaration=declaration)
        env.reset(seed=1)
        _, rewards, *_ = env.step(np.array([encoding.action_of("5i5h", Color.WHITE)]))
        assert rewards.tolist() == [reward]


def test_an_illegal_action_is_an_error_and_plays_nothing() -> None:
    env = ShogiVectorEnv(3)
    env.reset(seed=1)
    legal = random_actions(env, np.random.default_rng(1))
    wrong = legal.copy()
    wrong[2] = encoding.action_of("7g7e", Color.BLACK)
    with pytest.raises(RulesError, match=r"illegal action \d+ \(7g7e\) in slot 2"):
        env.step(wrong)
    observations, *_, infos = env.step(legal)
    assert infos["to_move"].tolist() == [1, 1, 1]
    assert np.allclose(observations[:, 43], 1 / 512)


@pytest.mark.parametrize("wrong", [[9054.0, 9054.0], ["9054", "9054"], [9054], [[9054, 9054]], [True, True]])
def test_what_are_no_actions_is_refused(wrong: Any) -> None:
    env = ShogiVectorEnv(2)
    with pytest.raises(ValueError, match=r"actions: expected integers of shape \(2,\)"):
        env.step(wrong)


def test_a_number_beyond_the_actions_is_not_taken_for_another() -> None:
    env = ShogiVectorEnv(2)
    for wrong in (2**32 + 9054, -(2**32) + 9054):
        with pytest.raises(RulesError, match="expected 0 to 13526 in slot 0"):
            env.step(np.array([wrong, 9054]))
    env.step(np.array([9054, 9054], np.uint16))


def test_it_shows_its_games_before_the_first_reset() -> None:
    env = ShogiVectorEnv(2)
    assert env.action_masks().sum() == 60
    assert len(env.legal_actions()[1]) == 60


def test_a_reset_of_some_games_is_refused() -> None:
    env = ShogiVectorEnv(2)
    with pytest.raises(ValueError, match="reset_mask is not supported"):
        env.reset(options={"reset_mask": np.array([True, False])})


def test_it_draws_every_board() -> None:
    env = ShogiVectorEnv(2, render_mode="ansi")
    env.reset(seed=1)
    assert env.render() == (str(VectorGames(1).game(0)),) * 2
    env.step(np.array([encoding.action_of(move, Color.BLACK) for move in ("7g7f", "2g2f")]))
    drawn = env.render()
    assert drawn is not None
    assert drawn[0] != drawn[1]
    assert ShogiVectorEnv(2).render() is None
