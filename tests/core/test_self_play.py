"""SelfPlay: what it collects is what was played, with the weights of the time, and it can be saved."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from learning import one_thread as one_thread
from vector_play import STARTS

from keisei.config.schema import AppConfig, EnvConfig
from keisei.core.keyed_random import uniforms
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent
from keisei.core.segment import Segment
from keisei.core.self_play import Collected, SavedGames, SelfPlay, position_before_end
from keisei.shogi import ShogiGame, encoding
from keisei.shogi.positions import Positions
from keisei.shogi.vector import FinishedGame, VectorGames

FIELDS = Segment.__slots__
MAX_MOVES = 44
# Games of every kind, with every kind of end; in the last two every sixth move or so mates.
BEGINNINGS = [*STARTS, "8k/9/7GG/9/9/9/9/9/K8 b - 1", "8k/9/9/9/9/9/gg7/9/K8 w - 1"]


@pytest.fixture(scope="module")
def agent() -> PPOAgent:
    """Return a small network with a distinctive policy."""
    model = {"blocks": 1, "channels": 8, "norm_groups": 4, "value_hidden": 16}
    made = PPOAgent(AppConfig.model_validate({"model": model}), numerics=Numerics())
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in made.network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return made


def env_config(**fields: Any) -> EnvConfig:
    return EnvConfig.model_validate({"max_moves": MAX_MOVES, "late_start_share": 0.0, **fields})


def self_play(
    count: int = 8, *, seed: int = 1, first_number: int = 0, stride: int | None = None, **fields: Any
) -> SelfPlay:
    config = env_config(**fields)
    games = VectorGames(
        count,
        seed=seed,
        max_moves=config.max_moves,
        declaration=config.declaration,
        random_plies=config.random_plies,
        starts=BEGINNINGS,
        first_number=first_number,
        stride=stride,
    )
    return SelfPlay(games, config)


def contents(collected: Collected) -> list[object]:
    """Return everything a rollout collected, for comparison."""
    arrays = [getattr(collected.segment, name).tobytes() for name in FIELDS]
    return [*arrays, [facts(game) for game in collected.finished]]


def facts(game: FinishedGame) -> tuple[object, ...]:
    return (game.slot, game.number, game.start_sfen, game.opening, game.late_start, game.moves, game.outcome)


# ------------------------------------------------------------------------ what is collected


class Replay:
    """One slot of a rollout, followed move by move with ShogiGame."""

    def __init__(self, play: SelfPlay, slot: int) -> None:
        self.game, self.slot = play.games.game(slot), slot

    def follow(self, segment: Segment, t: int) -> bool:
        """Play the t-th action, check what was collected about it, and return whether the game ended."""
        game, at = self.game, (t, self.slot)
        assert np.array_equal(segment.packed[at], encoding.pack([game])[0])
        mover, move = game.turn, encoding.move_of(int(segment.actions[at]), game.turn)
        assert move in game.legal_moves()
        game.push(move)
        if game.outcome() is None and game.can_declare():
            game.declare()
        outcome = game.outcome()
        assert segment.ended[at] == (outcome is not None)
        winner = None if outcome is None else outcome.winner
        assert segment.rewards[at] == (0 if winner is None else 1 if winner == mover else -1)
        return outcome is not None


def test_what_is_collected_is_what_was_played(agent: PPOAgent) -> None:
    steps, play = 120, self_play(16, random_plies=1)
    replays = [Replay(play, slot) for slot in range(16)]
    collected = play.rollout(agent, steps)
    ends = set()
    for slot, replay in enumerate(replays):
        finished = iter([game for game in collected.finished if game.slot == slot])
        game = next(finished, None)
        for t in range(steps):
            if not replay.follow(collected.segment, t):
                continue
            assert game is not None
            assert tuple(replay.game.history) == game.moves
            assert replay.game.outcome() == game.outcome
            ends.add(str(game.outcome))
            game = next(finished, None)
            last = play.games.game(slot)
            start = last.start_sfen if game is None else game.start_sfen
            moves = last.history if game is None else game.moves
            opening = len(moves) - (steps - 1 - t) if game is None else game.opening
            replay.game = ShogiGame(start, max_moves=MAX_MOVES)
            for move in moves[:opening]:
                replay.game.push(move)
        assert game is None
        assert np.array_equal(collected.segment.after[slot], encoding.pack([replay.game])[0])
        assert replay.game.history == play.games.game(slot).history
    assert ends >= {
        "black wins by checkmate",
        "white wins by checkmate",
        "black wins by declaration",
        "white wins by declaration",
        "draw by maximum length",
    }


def test_log_probs_and_values_are_those_of_the_weights(agent: PPOAgent) -> None:
    segment = self_play().rollout(agent, 6).segment
    for t in range(6):
        packed = segment.packed[t]
        with torch.no_grad():
            labels, values = agent.network(torch.from_numpy(encoding.planes(packed)))
        logits = labels[:, torch.from_numpy(np.asarray(agent.network.logit_of_action))]
        mask = torch.from_numpy(encoding.legal_mask(packed))
        dense = torch.log_softmax(logits.masked_fill(~mask, -torch.inf), 1).numpy()
        np.testing.assert_allclose(segment.log_probs[t], dense[np.arange(8), segment.actions[t]], atol=1e-5)
        np.testing.assert_allclose(segment.values[t], values, atol=1e-6)
    assert np.ptp(segment.values) > 0.05
    assert np.ptp(segment.log_probs) > 0.5


def test_the_bootstrap_is_the_value_of_the_position_after(agent: PPOAgent) -> None:
    play = self_play()
    for _ in range(3):
        segment = play.rollout(agent, 5).segment
        assert np.array_equal(segment.bootstrap, agent.get_value(encoding.planes(segment.after)))
        assert np.array_equal(segment.after, encoding.pack([play.games.game(slot) for slot in range(8)]))
    assert np.ptp(segment.bootstrap) > 0.01


def test_moves_are_drawn_by_the_games_number_and_ply(agent: PPOAgent) -> None:
    play = self_play()
    numbers = np.array(play.games.numbers, np.uint64)
    segment = play.rollout(agent, 1).segment
    packed = segment.packed[0]
    chances = uniforms(1, numbers, encoding.plies(packed))
    choice = agent.select_action(Positions.of_packed(packed), chances)
    assert np.array_equal(choice.actions, segment.actions[0])


# ------------------------------------------------------------------------ the same again


def test_the_same_seed_plays_the_same_and_another_does_not(agent: PPOAgent) -> None:
    first, second, other = (self_play(seed=seed).rollout(agent, 30) for seed in (1, 1, 2))
    assert contents(first) == contents(second)
    assert not np.array_equal(first.segment.actions, other.segment.actions)


def test_the_beginning_is_that_of_the_config(agent: PPOAgent) -> None:
    config = env_config(max_moves=10, random_plies=4, declaration="off")
    play = SelfPlay.begin(config, games=3, seed=9, threads=2)
    assert (len(play.games), play.games.seed, play.games.threads) == (3, 9, 2)
    assert (play.games.max_moves, play.games.declaration) == (10, "off")
    assert [len(play.games.game(slot).history) for slot in range(3)] == [4, 4, 4]
    finished = play.rollout(agent, 9).finished
    assert {game.opening for game in finished} == {4}
    assert {len(game.moves) for game in finished} == {10}


def test_two_short_rollouts_are_one_long_one(agent: PPOAgent) -> None:
    whole, halved = self_play(), self_play()
    together = whole.rollout(agent, 64)
    parts = [halved.rollout(agent, 32) for _ in range(2)]
    for name in set(FIELDS) - {"after", "bootstrap"}:
        joined = np.concatenate([getattr(part.segment, name) for part in parts])
        assert np.array_equal(joined, getattr(together.segment, name)), name
    for name in ("after", "bootstrap"):
        assert np.array_equal(getattr(parts[1].segment, name), getattr(together.segment, name)), name
    games = [facts(game) for part in parts for game in part.finished]
    assert games == [facts(game) for game in together.finished]
    assert games


def test_a_game_is_the_same_in_whatever_slot_it_is_played(agent: PPOAgent) -> None:
    def played(*vectors: SelfPlay) -> dict[int, object]:
        finished = [game for play in vectors for game in play.rollout(agent, 60).finished]
        return {game.number: facts(game)[2:] for game in finished}

    together = played(self_play(8))
    apart = played(*(self_play(2, first_number=first, stride=8) for first in (0, 2, 4, 6)))
    assert len(together) > 8
    assert together == apart
    moved = played(self_play(8, first_number=1, stride=8))
    shared = together.keys() & moved.keys()
    assert len(shared) > 8
    assert all(moved[number] == together[number] for number in shared)


def test_what_is_raised_before_a_step_ends_the_rollout(agent: PPOAgent) -> None:
    play, calls = self_play(), []

    def stop() -> None:
        calls.append(play.games.game(0).ply)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play.rollout(agent, 10, before_step=stop)
    assert len(calls) == 4
    assert len(set(calls)) == 4


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_saved_games_go_on_exactly(agent: PPOAgent, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.core.self_play.LATE_START_POOL", 5)
    fields: dict[str, Any] = {"late_start_share": share, "random_plies": 2, "scattered_start_share": share}
    play = self_play(16, **fields)
    for steps in (40, 17):
        play.rollout(agent, steps)
    saved = play.save()
    through_json = SavedGames(saved.games, json.loads(json.dumps(saved.state)))
    again = SelfPlay.restore(through_json, env_config(**fields), threads=2)
    late = 0
    for _ in range(4):
        first, second = play.rollout(agent, 20), again.rollout(agent, 20)
        assert contents(first) == contents(second)
        late += sum(game.late_start for game in first.finished)
    assert play.save() == again.save()
    assert (late > 0) == (share > 0)


def test_rollouts_are_replayed_without_a_policy_from_where_they_began(agent: PPOAgent) -> None:
    fields: dict[str, Any] = {"late_start_share": 0.5, "random_plies": 2, "scattered_start_share": 0.3}
    play = self_play(16, **fields)
    begun = play.save()
    rollouts = [play.rollout(agent, steps) for steps in (40, 60, 60, 1)]
    again = SelfPlay.restore(begun, env_config(**fields))
    assert again.replay(rollouts[1].segment) is None
    for rollout in rollouts:
        finished = again.replay(rollout.segment)
        assert finished is not None
        assert list(map(facts, finished)) == list(map(facts, rollout.finished))
    assert any(game.late_start for game in rollouts[2].finished)
    assert again.save() == play.save()


# ------------------------------------------------------------------------ late starts


def positions_before_end(game: FinishedGame, plies: range) -> list[str]:
    replayed, sfens = ShogiGame(game.start_sfen, max_moves=None, declaration="off"), []
    for move in game.moves:
        sfens.append(replayed.sfen())
        replayed.push(move)
    return [sfens[-back] for back in plies if back <= len(sfens) - game.opening]


def test_late_starts_are_shortly_before_the_end_of_a_recent_decisive_game(
    agent: PPOAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keisei.core.self_play.LATE_START_PLIES", 3)
    play = self_play(16, late_start_share=0.5, random_plies=2)
    allowed: set[str] = set()
    taken: set[int] = set()
    begun_late = 0
    for _ in range(12):
        finished = play.rollout(agent, 20).finished
        for game in finished:
            if game.late_start:
                assert game.opening == 0
                assert game.start_sfen in allowed
                begun_late += 1
        pool = play.save().state["late_starts"]
        for game in finished:
            if game.outcome.winner is not None:
                sfens = positions_before_end(game, range(1, 4))
                allowed |= set(sfens)
                taken |= {back for back, sfen in enumerate(sfens, 1) if sfen in pool}
        assert set(pool) <= allowed
    assert begun_late > 20
    assert taken == {1, 2, 3}


def test_the_pool_keeps_the_latest_only(agent: PPOAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.core.self_play.LATE_START_PLIES", 2)
    large = self_play(16, late_start_share=0.5)
    monkeypatch.setattr("keisei.core.self_play.LATE_START_POOL", 4)
    small = self_play(16, late_start_share=0.5)
    for play in (small, large):
        play.rollout(agent, 150)
    kept, every = (play.save().state["late_starts"] for play in (small, large))
    assert len(every) > 8
    assert kept == every[-4:]


def test_without_a_share_there_are_none(agent: PPOAgent) -> None:
    play = self_play(16)
    finished = [game for _ in range(4) for game in play.rollout(agent, 20).finished]
    assert any(game.outcome.winner is not None for game in finished)
    assert not any(game.late_start for game in finished)
    assert play.save().state == {"late_starts": []}


def test_a_position_before_the_end_by_hand() -> None:
    moves = ["7g7f", "3c3d", "8h2b+", "3a2b"]
    game = ShogiGame()
    for move in moves[:2]:
        game.push(move)
    sfen = game.sfen()
    for move in moves[2:]:
        game.push(move)
    outcome = ShogiGame("4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1").outcome()
    assert outcome is not None
    packed: npt.NDArray[np.uint8] = encoding.pack([game])[0]
    done = FinishedGame(0, 0, outcome, 0, False, game.start_sfen, tuple(game.history), packed)
    assert position_before_end(done, 2) == sfen
    assert position_before_end(done, 4) == game.start_sfen


def test_late_starts_that_are_switched_off_on_restoring_begin_no_more_games(agent: PPOAgent) -> None:
    on = EnvConfig(max_moves=200, random_plies=150, late_start_share=1.0)
    played = SelfPlay.begin(on, games=16, seed=1)
    played.rollout(agent, 120)
    saved = played.save()
    assert saved.state["late_starts"]
    under_way = set(played.games.numbers)
    off = SelfPlay.restore(saved, on.model_copy(update={"late_start_share": 0.0}))
    begun_since = [game for game in off.rollout(agent, 120).finished if game.number not in under_way]
    assert begun_since
    assert not any(game.late_start for game in begun_since)
