"""The Gymnasium environment: the checks of Gymnasium and stable-baselines3, and who gets which reward."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from gymnasium.vector import AsyncVectorEnv
from gymnasium.wrappers import FlattenObservation
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_checker import check_env as stable_baselines_check_env

from keisei.envs import ShogiEnv
from keisei.envs.board_image import draw_rgb
from keisei.shogi import Color, RulesError, ShogiGame, encoding

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
BLACK_MAY_DECLARE = "+P+P+P1K+P+P+P+P/+P+P+P6/9/9/9/9/9/9/4k4 w RB8Prb 10"

SETTINGS: list[dict[str, Any]] = [
    {},
    {"opponent": "random"},
    {"opponent": "random", "agent_color": "white", "random_plies": 5, "max_moves": 40},
    {"render_mode": "ansi"},
    {"render_mode": "rgb_array"},
]


def action(move: str, turn: Color = Color.BLACK) -> int:
    return encoding.action_of(move, turn)


def random_action(env: ShogiEnv, random: np.random.Generator) -> int:
    return int(random.choice(np.flatnonzero(env.action_masks())))


@pytest.mark.parametrize("setting", SETTINGS)
def test_gymnasium_finds_nothing_wrong(setting: dict[str, Any]) -> None:
    env = gymnasium.make("keisei/Shogi-v0", **setting)
    assert isinstance(env.unwrapped, ShogiEnv)
    gymnasium_check_env(env.unwrapped)


@pytest.mark.parametrize("setting", SETTINGS)
def test_stable_baselines_finds_nothing_wrong(setting: dict[str, Any]) -> None:
    env = gymnasium.make("keisei/Shogi-v0", **setting)
    stable_baselines_check_env(FlattenObservation(env))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*image.*")  # planes are not an image
        stable_baselines_check_env(env)


def test_maskable_ppo_learns_on_it() -> None:
    env = gymnasium.make("keisei/Shogi-v0", opponent="random", max_moves=60)
    model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=2, seed=1, device="cpu")
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(256)
    assert model.num_timesteps == 256
    after = list(model.policy.parameters())
    assert any(bool((old != new).any()) for old, new in zip(before, after, strict=True))
    assert all(bool(parameter.isfinite().all()) for parameter in after)
    observation, _ = env.reset(seed=3)
    shogi = env.unwrapped
    assert isinstance(shogi, ShogiEnv)
    for _ in range(10):
        chosen, _ = model.predict(observation, action_masks=shogi.action_masks())
        assert shogi.action_masks()[int(chosen)]
        observation, _, terminated, _, _ = env.step(chosen)
        if terminated:
            observation, _ = env.reset()


def make_env() -> ShogiEnv:
    return ShogiEnv(max_moves=30)


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_two_processes_play_in_an_async_vector(context: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of fork beside threads
        envs = AsyncVectorEnv([make_env, make_env], context=context)
    processes = list(envs.processes)
    random = np.random.default_rng(1)
    try:
        observations, infos = envs.reset(seed=[1, 2])
        ended = 0
        for _ in range(70):
            masks = infos["action_mask"]
            actions = np.array([random.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks])
            observations, _, terminated, _, infos = envs.step(actions)
            ended += int(terminated.sum())
        assert observations.shape == (2, 46, 9, 9)
        assert ended == 4
        assert np.array(envs.call("action_masks")).shape == (2, 13_527)
    finally:
        envs.close(timeout=30)
    assert [process.exitcode for process in processes] == [0, 0]


# --------------------------------------------------------------------------------- self-play


def test_self_play_shows_each_side_its_own_view() -> None:
    env, game = ShogiEnv(), ShogiGame()
    observation, info = env.reset()
    assert (info["to_move"], info["ply"]) == (0, 0)
    random = np.random.default_rng(5)
    for ply in range(1, 60):
        packed = encoding.pack([game])
        assert np.array_equal(observation, encoding.planes(packed)[0])
        assert np.array_equal(env.action_masks(), encoding.legal_mask(packed)[0])
        assert np.array_equal(info["action_mask"], env.action_masks())
        chosen = random_action(env, random)
        game.push(encoding.move_of(chosen, game.turn))
        observation, reward, terminated, truncated, info = env.step(chosen)
        assert (reward, terminated, truncated) == (0, False, False)
        assert (info["to_move"], info["ply"]) == (ply % 2, ply)


def test_the_reward_of_a_mate_is_the_movers() -> None:
    env = ShogiEnv(starts=[MATE_IN_ONE])
    env.reset()
    _, reward, terminated, truncated, info = env.step(action("G*5b"))
    assert (reward, terminated, truncated) == (1, True, False)
    assert (info["winner"], info["reason"]) == (Color.BLACK, "checkmate")
    assert not info["action_mask"].any()
    with pytest.raises(RulesError, match="the game is over, black wins by checkmate: reset"):
        env.step(action("G*5b"))


def test_there_is_no_step_before_a_reset() -> None:
    with pytest.raises(RulesError, match="no game has begun"):
        ShogiEnv().step(action("7g7f"))


def test_the_maximum_length_is_the_end_and_no_truncation() -> None:
    env = ShogiEnv(max_moves=1)
    env.reset()
    _, reward, terminated, truncated, info = env.step(action("7g7f"))
    assert (reward, terminated, truncated) == (0, True, False)
    assert (info["winner"], info["reason"]) == (-1, "maximum length")


def test_a_win_by_declaration_is_the_loss_of_who_moved() -> None:
    env = ShogiEnv(starts=[BLACK_MAY_DECLARE])
    env.reset()
    _, reward, terminated, _, info = env.step(action("5i5h", Color.WHITE))
    assert (reward, terminated, info["winner"], info["reason"]) == (-1, True, Color.BLACK, "declaration")


def test_without_the_declaration_rule_nobody_declares() -> None:
    env = ShogiEnv(starts=[BLACK_MAY_DECLARE], declaration="off")
    env.reset()
    _, reward, terminated, _, info = env.step(action("5i5h", Color.WHITE))
    assert (reward, terminated) == (0, False)
    assert info["ply"] == 10  # the start is its game's tenth move


# ------------------------------------------------------------------------------- illegal actions


def test_an_illegal_action_loses() -> None:
    env = ShogiEnv()
    before, _ = env.reset()
    after, reward, terminated, _, info = env.step(action("7g7e"))
    assert (reward, terminated) == (-1, True)
    assert (info["winner"], info["reason"]) == (Color.WHITE, "illegal move")
    assert np.array_equal(before, after)
    assert not env.action_masks().any()
    with pytest.raises(RulesError, match="the game is over, white wins by illegal move"):
        env.step(action("7g7f"))


def test_an_illegal_action_can_be_an_error() -> None:
    env = ShogiEnv(illegal_action="raise")
    env.reset()
    with pytest.raises(
        RulesError, match=f"illegal action {action('7g7e')}: illegal move 7g7e in position lnsg"
    ):
        env.step(action("7g7e"))
    env.step(action("7g7f"))  # and the game goes on


@pytest.mark.parametrize("wrong", [-1, 13_527, 3.5, "7g7f", None])
def test_what_is_no_action_is_refused(wrong: Any) -> None:
    env = ShogiEnv()
    env.reset()
    with pytest.raises(ValueError, match="expected an integer from 0 to 13526"):
        env.step(wrong)


# ------------------------------------------------------------------------------- with an opponent


def first_legal(_: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[0])


@pytest.mark.parametrize(("color", "side"), [("black", Color.BLACK), ("white", Color.WHITE)])
def test_against_an_opponent_the_agent_always_moves_for_its_own_side(color: Any, side: Color) -> None:
    env = ShogiEnv(opponent=first_legal, agent_color=color, max_moves=30)
    random = np.random.default_rng(2)
    for _ in range(3):
        observation, info = env.reset()
        terminated = False
        while not terminated:
            assert info["to_move"] == side
            assert bool(observation[42].all()) is (side is Color.BLACK)
            observation, _, terminated, _, info = env.step(random_action(env, random))


def test_the_reward_is_the_agents_when_the_opponent_mates() -> None:
    mate = action("G*5h", Color.WHITE)
    start = "4k4/9/4P4/9/9/9/4p4/9/4K4 b Gg 1"
    env = ShogiEnv(opponent=lambda *_: mate, agent_color="black", starts=[start])
    env.reset()
    _, reward, terminated, _, info = env.step(action("G*1a"))
    assert (reward, terminated, info["winner"]) == (-1, True, Color.WHITE)
    env.reset()
    _, reward, terminated, _, info = env.step(action("G*5b"))
    assert (reward, terminated, info["winner"]) == (1, True, Color.BLACK)


@pytest.mark.parametrize(("color", "side"), [("black", Color.BLACK), ("white", Color.WHITE)])
@pytest.mark.parametrize("plies", [1, 2])
def test_the_opponent_moves_first_only_where_its_side_is_to_move(color: Any, side: Color, plies: int) -> None:
    env = ShogiEnv(opponent=first_legal, agent_color=color, random_plies=plies)
    _, info = env.reset()
    assert info["to_move"] == side
    assert info["ply"] == plies + (plies % 2 != side)


def test_the_opponent_sees_its_own_view() -> None:
    seen = []

    def watchful(observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        seen.append(observation)
        return first_legal(observation, mask)

    env, game = ShogiEnv(opponent=watchful, agent_color="black"), ShogiGame()
    env.reset()
    env.step(action("7g7f"))
    game.push("7g7f")
    assert np.array_equal(seen, encoding.planes(encoding.pack([game])))


def test_a_random_opponent_does_not_always_answer_the_same() -> None:
    env = ShogiEnv(opponent="random", agent_color="black")
    env.reset(seed=1)
    answers = set()
    for _ in range(20):
        env.reset()
        answers.add(env.step(action("7g7f"))[0].tobytes())
    assert len(answers) > 5


def test_the_color_is_drawn_anew_for_each_game() -> None:
    env = ShogiEnv(opponent="random")
    env.reset(seed=1)
    colors = [env.reset()[1]["to_move"] for _ in range(40)]
    assert 8 < sum(colors) < 32


@pytest.mark.parametrize("wrong", [0, -1, 13_527])
def test_an_opponent_that_plays_an_illegal_action_is_an_error_and_no_loss(wrong: int) -> None:
    answers = [wrong, action("3c3d", Color.WHITE)]
    env = ShogiEnv(opponent=lambda *_: answers.pop(0), agent_color="black")
    env.reset()
    with pytest.raises(RulesError, match=f"the opponent played illegal action {wrong} in lnsg"):
        env.step(action("7g7f"))
    # The agent's move is taken back, and it is the agent's turn again.
    _, reward, terminated, _, info = env.step(action("7g7f"))
    assert (reward, terminated, info["to_move"], info["ply"]) == (0, False, Color.BLACK, 2)


def test_an_opponent_that_fails_at_the_beginning_leaves_no_game() -> None:
    env = ShogiEnv(opponent=lambda *_: 0, agent_color="white")
    with pytest.raises(RulesError, match="the opponent played illegal action 0"):
        env.reset()
    with pytest.raises(RulesError, match="no game has begun"):
        env.step(action("7g7f"))


def test_an_opponent_that_always_wins_at_once_is_told() -> None:
    env = ShogiEnv(opponent=lambda *_: action("G*5b"), agent_color="white", starts=[MATE_IN_ONE])
    with pytest.raises(RulesError, match="the opponent ended 100 games in a row before the agent's first"):
        env.reset()


# ----------------------------------------------------------------------------- seeds, rendering, options


def test_the_same_seed_gives_the_same_games() -> None:
    def openings(seed: int) -> list[bytes]:
        env = ShogiEnv(random_plies=6, opponent="random")
        return [env.reset(seed=seed)[0].tobytes(), *(env.reset()[0].tobytes() for _ in range(5))]

    assert openings(1) == openings(1)
    assert openings(1) != openings(2)
    assert len(set(openings(1))) == 6


def test_it_draws_the_board() -> None:
    env = ShogiEnv(render_mode="ansi")
    env.reset()
    assert env.render() == str(ShogiGame())
    picture = ShogiEnv(render_mode="rgb_array").render()
    assert isinstance(picture, np.ndarray)
    assert picture.dtype == np.uint8
    assert picture.shape[2:] == (3,)
    assert ShogiEnv().render() is None


def test_the_picture_shows_the_last_move() -> None:
    env, game = ShogiEnv(render_mode="rgb_array"), ShogiGame()
    env.reset()
    for move in ("7g7f", "3c3d"):
        env.step(action(move, game.turn))
        game.push(move)
    picture: Any = env.render()
    assert np.array_equal(picture, draw_rgb(game.sfen(), game.history[-1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opponent": "strong"}, "opponent is 'strong', expected None, 'random' or a function"),
        ({"agent_color": "red"}, "agent_color is 'red', expected 'black', 'white' or 'random'"),
        ({"illegal_action": "ignore"}, "illegal_action is 'ignore', expected 'lose' or 'raise'"),
        ({"render_mode": "human"}, "render_mode is 'human', expected None, 'ansi' or 'rgb_array'"),
        ({"starts": ["x"]}, "bad sfen 'x'"),
        ({"max_moves": 0}, "max_moves is 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShogiEnv(**options)
