"""Trainer: an agent that learns, and its progress. Who plays the games is the loop's business.

It knows nothing of files, consoles or processes; `snapshot` is its whole state and the games', and a trainer
made from one continues bit for bit.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch

from keisei.config.schema import AppConfig, config_from, validated
from keisei.core.agents import agent_of
from keisei.core.exchange import Exchange
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.material import leads_at_length, material_gains
from keisei.core.native_tower import usable_kernels
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.schedules import scheduled
from keisei.core.segment import Segment
from keisei.core.self_play import GameResult, SavedGames
from keisei.runs.checkpoint import Checkpoint, CheckpointError
from keisei.shogi import Color
from keisei.training.metrics import REASONS, reason_name

Metrics = Mapping[str, float]

# The material reward falls to 0 by this share of the run, so that the rest is about winning alone.
MATERIAL_REWARD_UNTIL = 0.8


class Trainer:
    """An agent that learns from its own games.

    steps: moves trained on. games: games finished. best: step and score of the best evaluation.
    clock: counts the time by phase; a new one if not given.
    """

    def __init__(
        self,
        config: AppConfig,
        device: str | torch.device = "cpu",
        *,
        numerics: Numerics | None = None,
        clock: PhaseClock | None = None,
    ) -> None:
        self.config = validated(config)
        self.clock = clock or PhaseClock()
        self.agent = agent_of(self.config, device, numerics=numerics, clock=self.clock)
        self.steps = 0
        self.games = 0
        self.best: tuple[int, float] | None = None

    @property
    def progress(self) -> float:
        """The share of the run that is done."""
        return self.steps / self.config.training.total_timesteps

    def steps_of_next_epoch(self) -> int:
        """Return the number of moves to play before the next update; the last epoch may be shorter."""
        training = self.config.training
        return min(training.total_timesteps - self.steps, training.steps_per_epoch)

    def perform_update(
        self,
        segments: Sequence[Segment],
        *,
        before_minibatch: Callable[[], None] = lambda: None,
        exchange: Exchange | None = None,
    ) -> Metrics:
        """Learn from the segments and return the update's metrics; arguments as for LearningAgent.learn."""
        training = self.config.training
        buffer = ExperienceBuffer(gamma=training.gamma, gae_lambda=training.gae_lambda)
        material_reward = self.material_reward()
        with self.clock("encode"):
            for segment in segments:
                rewards = segment.rewards
                if material_reward:
                    rewards = rewards + material_reward * material_gains(segment)
                if training.length_reward:
                    rewards = rewards + training.length_reward * leads_at_length(segment)
                buffer.add_batch(replace(segment, rewards=rewards))
        metrics = self.agent.learn(
            buffer, progress=self.progress, before_minibatch=before_minibatch, exchange=exchange
        )
        self.steps += len(buffer)
        return {**metrics, "schedule/material_reward": material_reward}

    perform_ppo_update = perform_update  # its name when there was only PPO

    def material_reward(self) -> float:
        """Return the current reward for winning a pawn's worth of material."""
        training = self.config.training
        if self.progress >= MATERIAL_REWARD_UNTIL:
            return 0.0
        return scheduled(training.material_reward, "linear", 0.0, self.progress / MATERIAL_REWARD_UNTIL)

    def snapshot(self, games: Sequence[SavedGames]) -> Checkpoint:
        """Return copies of everything that determines the future; games: one entry per vector of games."""
        return Checkpoint(
            step=self.steps,
            tensors=self.agent.tensors(),
            blobs={f"games_{number}": saved.games for number, saved in enumerate(games)},
            state={
                "config": self.config.model_dump(mode="json"),
                "numerics": asdict(self.agent.numerics),
                "device": self.agent.device.type,
                "updates": self.agent.version,
                "skipped_in_a_row": self.agent.skipped_in_a_row,
                "games": self.games,
                "best": None if self.best is None else list(self.best),
                "self_play": [saved.state for saved in games],
            },
        )

    @classmethod
    def from_snapshot(cls, snapshot: Checkpoint, config: AppConfig, device: torch.device) -> "Trainer":
        """Return a trainer that continues exactly there; the config may differ in what is safe to change."""
        state: Mapping[str, Any] = snapshot.state
        trainer = cls(config, device, numerics=_kept_numerics(snapshot, config, device))
        trainer.agent.load_tensors(snapshot.tensors)
        trainer.agent.version = state["updates"]
        trainer.agent.skipped_in_a_row = state["skipped_in_a_row"]
        trainer.steps, trainer.games = snapshot.step, state["games"]
        trainer.best = tuple(state["best"]) if state["best"] else None
        return trainer


def config_of(snapshot: Checkpoint) -> AppConfig:
    """Return the config in a snapshot; raise CheckpointError if training state is missing."""
    needed = {"config", "numerics", "device", "updates", "skipped_in_a_row", "games", "best", "self_play"}
    missing = needed - set(snapshot.state)
    missing |= {"weights", "optimizer"} - set(snapshot.tensors) | {"games_0"} - set(snapshot.blobs)
    if missing:
        raise CheckpointError(
            f"the checkpoint of step {snapshot.step} cannot be resumed: {sorted(missing)} are missing"
        )
    return config_from(snapshot.state["config"])


def games_of(snapshot: Checkpoint) -> list[SavedGames]:
    """Return the vectors of games in a snapshot."""
    states = snapshot.state["self_play"]
    return [SavedGames(snapshot.blobs[f"games_{number}"], state) for number, state in enumerate(states)]


def _kept_numerics(snapshot: Checkpoint, config: AppConfig, device: torch.device) -> Numerics | None:
    """Return the numeric formats a run has chosen; None to choose again for a new setting or device."""
    old, state = config_of(snapshot).run, snapshot.state
    same = (old.numerics, state["device"]) == (config.run.numerics, device.type)
    kept = Numerics(**state["numerics"])
    usable = not kept.native or kept.native in usable_kernels()
    return kept if same and usable else None


def kernels_notice(snapshot: Checkpoint, trainer: "Trainer") -> list[str]:
    """Return what to tell if a run goes on with other kernels than the snapshot's."""
    before, now = snapshot.state["numerics"].get("native", ""), trainer.agent.numerics
    if before in ("", now.native):
        return []
    return [f"the run computed with native {before} so far, now with {now}: last digits will differ"]


def game_metrics(finished: Sequence[GameResult]) -> Metrics:
    """Return the results of the finished games, by colour and by reason."""
    winners = Counter(game.outcome.winner for game in finished)
    reasons = Counter(game.outcome.reason for game in finished)
    metrics: dict[str, float] = {
        "games/finished": len(finished),
        "games/black_wins": winners[Color.BLACK],
        "games/white_wins": winners[Color.WHITE],
        "games/draws": winners[None],
        "games/late_starts": sum(game.late_start for game in finished),
    }
    metrics |= {reason_name(reason): reasons[reason] for reason in REASONS}
    if finished:
        metrics["games/length"] = sum(game.length for game in finished) / len(finished)
    return metrics
