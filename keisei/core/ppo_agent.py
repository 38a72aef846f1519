"""PPOAgent: a policy that learns from the outcomes of its moves.

Takes a buffer of packed positions; returns the metrics of an update. The names are the paper's (Schulman et
al., 2017). All randomness is by key, so weights, the optimiser's tensors, version and skipped_in_a_row are
the agent's whole state.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from keisei.config.schema import AppConfig
from keisei.core.evaluator import one_thread
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.native_tower import shape_text
from keisei.core.network_policy import NetworkPolicy
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.schedules import scheduled
from keisei.core.sparse_policy import LegalMoves, entropy
from keisei.shogi.positions import Positions

_ADAM = ("step", "exp_avg", "exp_avg_sq")  # what Adam keeps for each parameter

ENTROPY_FLOOR = 0.2  # the share of entropy_coef left at the end of the run

MAX_SKIPPED = 3  # gradient steps in a row that were not finite, after which there is no hope


class NotFiniteError(ArithmeticError):
    """Losses or gradients that were NaN or infinite three times in a row; minibatch is the last one."""

    def __init__(self, message: str, minibatch: Minibatch) -> None:
        super().__init__(message)
        self.minibatch = minibatch


class PPOAgent(NetworkPolicy):
    """A policy that learns; pass `network` and `decode` only for games other than shogi.

    version: the number of updates. skipped_in_a_row: how many of the latest gradient steps were not finite
    and so were skipped.
    """

    def __init__(
        self,
        config: AppConfig,
        device: str | torch.device = "cpu",
        *,
        network: nn.Module | None = None,
        decode: Callable[[npt.NDArray[np.uint8], int], Positions] = Positions.of_packed,
        numerics: Numerics | None = None,
        clock: PhaseClock | None = None,
    ) -> None:
        super().__init__(config, device, network=network, numerics=numerics, clock=clock)
        self._decode = decode
        self._threads = config.run.threads or torch.get_num_threads()
        self.version = self.skipped_in_a_row = 0

    @cached_property
    def optimizer(self) -> torch.optim.Adam:
        """The optimiser, made on first use: torch takes a second for the first one."""
        optimizer = torch.optim.Adam(
            self.network.parameters(), lr=self.config.training.learning_rate, eps=1e-5, fused=True
        )
        optimizer.register_step_post_hook(lambda *_: self._weights_changed())
        return optimizer

    def learn(
        self,
        buffer: ExperienceBuffer,
        *,
        progress: float = 0.0,
        before_minibatch: Callable[[], None] = lambda: None,
    ) -> Mapping[str, float]:
        """Update the weights by PPO on the buffer's moves, and return the metrics of the update.

        progress: the share of the run that is done, for the schedules. before_minibatch: called before each
        gradient step; an exception from it ends the update midway.
        """
        training = self.config.training
        learning_rate = scheduled(
            training.learning_rate, training.schedule, training.learning_rate_floor, progress
        )
        entropy_coef = scheduled(training.entropy_coef, training.schedule, ENTROPY_FLOOR, progress)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        steps: list[dict[str, float]] = []
        skipped, early_stop = 0, False
        for epoch in range(training.ppo_epochs):
            # In the upper words: the lower ones count the draws, and would run into the next update's key.
            shuffle = np.random.Generator(
                np.random.Philox(key=self.config.run.seed, counter=[0, 0, epoch, self.version])
            )
            for minibatch in buffer.minibatches(training.minibatch_size, shuffle):
                before_minibatch()
                metrics = self._gradient_step(minibatch, entropy_coef)
                if metrics is None:
                    skipped += 1
                    continue
                steps.append(metrics)
                early_stop = (
                    training.target_kl is not None and metrics["policy/approx_kl"] > training.target_kl
                )
                if early_stop:
                    break
            if early_stop:
                break
        self.version += 1
        return {
            **{name: float(np.mean([step[name] for step in steps])) for name in (steps[0] if steps else ())},
            "value/explained_variance": _explained_variance(buffer.all()),
            "update/minibatches": len(steps),
            "update/skipped": skipped,
            "update/early_stop": float(early_stop),
            "schedule/learning_rate": learning_rate,
            "schedule/entropy_coef": entropy_coef,
        }

    def _gradient_step(self, minibatch: Minibatch, entropy_coef: float) -> dict[str, float] | None:
        """Take one optimiser step and return its metrics, or None if it was not finite and was skipped."""
        with self.clock("encode"):
            positions = self._decode(minibatch.packed, self._threads)
            legal = LegalMoves.of(positions, self._logit_of_action, self.device)
            # The index of the chosen move among the legal ones.
            moves = np.repeat(minibatch.actions, np.diff(positions.offsets))
            chosen = np.flatnonzero(positions.actions == moves)
            if len(chosen) != len(minibatch.actions):
                raise ValueError("the buffer has an action that is illegal in its position")
            columns = chosen - positions.offsets[:-1]
        # The threads that torch keeps waiting would take cores from the native kernels' threads.
        with self.clock("update"), one_thread() if self.numerics.native else nullcontext():
            loss, metrics = self.loss(positions, legal, columns, minibatch, entropy_coef)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            grad_norm = float(
                nn.utils.clip_grad_norm_(self.network.parameters(), self.config.training.max_grad_norm)
            )
            values = dict(zip(metrics, torch.stack(list(metrics.values())).tolist(), strict=True))
            values["update/grad_norm"] = grad_norm
            if not np.isfinite(list(values.values())).all():
                self._skip(values, minibatch)
                return None
            self.skipped_in_a_row = 0
            self.optimizer.step()
        return values

    def loss(
        self,
        positions: Positions,
        legal: LegalMoves,
        columns: npt.NDArray[np.intp],
        minibatch: Minibatch,
        entropy_coef: float,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return PPO's loss for a decoded minibatch, and its parts as metrics."""
        training = self.config.training
        mb_log_probs, mb_values, mb_advantages, mb_returns, mb_columns = (
            torch.from_numpy(array).to(self.device)
            for array in (
                minibatch.log_probs,
                minibatch.values,
                minibatch.advantages,
                minibatch.returns,
                columns,
            )
        )
        logits, values = self._legal_logits(positions, legal)
        all_log_probs = legal.log_probs(logits)
        log_ratio = all_log_probs.gather(1, mb_columns[:, None])[:, 0] - mb_log_probs
        ratio = log_ratio.exp()
        if training.normalize_advantages:
            mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std(correction=0) + 1e-8)

        clipped = ratio.clamp(1 - training.clip_coef, 1 + training.clip_coef)
        policy_loss = -torch.min(mb_advantages * ratio, mb_advantages * clipped).mean()
        value_loss = mse_loss(values, mb_returns, reduction="none")
        if training.value_clip is not None:
            near = mb_values + (values - mb_values).clamp(-training.value_clip, training.value_clip)
            value_loss = torch.max(value_loss, mse_loss(near, mb_returns, reduction="none"))
        value_loss = value_loss.mean()
        mean_entropy = entropy(all_log_probs).mean()
        loss = policy_loss + training.value_coef * value_loss - entropy_coef * mean_entropy
        with torch.no_grad():
            metrics = {
                "loss/policy": policy_loss,
                "loss/value": value_loss,
                "loss/total": loss,
                "policy/entropy": mean_entropy,
                "policy/approx_kl": (ratio - 1 - log_ratio).mean(),
                "policy/clip_fraction": ((ratio - 1).abs() > training.clip_coef).float().mean(),
            }
        return loss, {name: metric.detach() for name, metric in metrics.items()}

    def _skip(self, values: Mapping[str, float], minibatch: Minibatch) -> None:
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row == MAX_SKIPPED:
            facts = ", ".join(f"{name} {value:g}" for name, value in values.items())
            raise NotFiniteError(
                f"losses or gradients were not finite in {MAX_SKIPPED} gradient steps in a row, "
                f"in update {self.version}: {facts}; a lower training.learning_rate may help",
                minibatch,
            )

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return copies of the weights and the optimiser's tensors, by name, on the CPU."""
        optimizer = {}
        for name, parameter in self.network.named_parameters():
            for key, tensor in self.optimizer.state.get(parameter, {}).items():
                optimizer[f"{name}.{key}"] = tensor.detach().cpu().clone()
        return {"weights": self.weights(), "optimizer": optimizer}

    def load_tensors(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Load weights and optimiser tensors returned by `tensors`; ValueError if they do not fit."""
        weights, optimizer = tensors["weights"], tensors.get("optimizer", {})
        self._check_architecture(weights)
        parameters = dict(self.network.named_parameters())
        for key, tensor in optimizer.items():
            name, _, kind = key.rpartition(".")
            if kind not in _ADAM or name not in parameters:
                raise ValueError(f"optimiser tensor {key} does not belong to Adam on this network")
            expected = torch.Size() if kind == "step" else parameters[name].shape
            if tensor.shape != expected:
                raise ValueError(
                    f"optimiser tensor {key} is {shape_text(tensor.shape)}, expected {shape_text(expected)}"
                )
        self.load_weights(weights)
        for name, parameter in parameters.items():
            keys = [key for key in _ADAM if f"{name}.{key}" in optimizer]
            self.optimizer.state[parameter] = {
                key: optimizer[f"{name}.{key}"].to(self.device, copy=True)
                if key == "step"
                else torch.empty_like(parameter).copy_(optimizer[f"{name}.{key}"])
                for key in keys
            }
            if not keys:
                del self.optimizer.state[parameter]


def _explained_variance(moves: Minibatch) -> float:
    """Return how well the values predicted the returns: 1 perfectly, 0 like their mean, less is worse."""
    if not np.isfinite(moves.returns).all():
        return 0.0
    variance = float(np.var(moves.returns))
    return 1 - float(np.var(moves.returns - moves.values)) / variance if variance > 0 else 0.0
