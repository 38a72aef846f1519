"""PPOAgent: a policy that learns from the outcomes of its moves.

Takes a buffer of packed positions; returns the metrics of an update. The names are the paper's (Schulman et
al., 2017). All randomness is by key, so weights, the optimiser's tensors, version and skipped_in_a_row are
the agent's whole state.
"""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from keisei.config.schema import AppConfig
from keisei.core.evaluator import threads_of_torch
from keisei.core.exchange import Alone, Exchange
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.flat_weights import FlatWeights
from keisei.core.gradient_step import LOSS_PARTS, Floats, GradientStep, chosen_columns
from keisei.core.native_gradients import NativeGradients
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

    alone: the exchange in which it computes all shares. version: the number of updates. skipped_in_a_row:
    how many of the latest gradient steps were not finite and so were skipped.
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
        self._flat = FlatWeights(self.network)
        self._decode = decode
        self._threads = config.run.threads or torch.get_num_threads()
        self._native_gradients: NativeGradients | None = None
        if self.numerics.native:
            self._native_gradients = NativeGradients(
                self.config, kernels=self.numerics.native, threads=self._threads, clock=self.clock
            )
        learners = self.config.training.learners
        self.alone = Alone(1 if learners == "auto" else learners)
        self.version = self.skipped_in_a_row = 0

    def use_threads(self, threads: int) -> None:
        """Compute with this many threads of the CPU, from the calling thread."""
        super().use_threads(threads)
        self._threads = threads

    @cached_property
    def optimizer(self) -> torch.optim.Adam:
        """The optimiser, made on first use: torch takes a second for the first one."""
        lr = self.config.training.learning_rate
        optimizer = torch.optim.Adam([self._flat.weights], lr=lr, eps=1e-5, fused=True)
        optimizer.register_step_post_hook(lambda *_: self._weights_changed())
        return optimizer

    def learn(
        self,
        buffer: ExperienceBuffer,
        *,
        progress: float = 0.0,
        before_minibatch: Callable[[], None] = lambda: None,
        exchange: Exchange | None = None,
    ) -> Mapping[str, float]:
        """Update the weights by PPO on the buffer's moves, and return the metrics of the update.

        progress: the share of the run that is done, for the schedules. before_minibatch: called before each
        gradient step; an exception from it ends the update midway. exchange: who computes the gradients, such
        as ParallelManager.exchange; by default this process alone, in training.learners shares (auto is 1).
        """
        training, exchange = self.config.training, exchange or self.alone
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
                metrics = self._gradient_step(minibatch, entropy_coef, exchange)
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

    def _gradient_step(
        self, minibatch: Minibatch, entropy_coef: float, exchange: Exchange
    ) -> dict[str, float] | None:
        """Take one optimiser step and return its metrics, or None if it was not finite and was skipped.

        Everything that is decided here is decided on the sum of all shares.
        """
        training = self.config.training
        # The threads that torch keeps waiting would take cores from the native kernels' threads.
        with threads_of_torch(1 if self.numerics.native else None):
            step = GradientStep.of(minibatch, entropy_coef, normalize=training.normalize_advantages)
            total = exchange.total(self, step)
            with self.clock("update"):
                self._flat.weights.grad = total[: len(self._flat)]
                grad_norm = float(nn.utils.clip_grad_norm_(self._flat.weights, training.max_grad_norm))
                values = dict(zip(LOSS_PARTS, total[-len(LOSS_PARTS) :].tolist(), strict=True))
                values["loss/total"] = (
                    values["loss/policy"]
                    + training.value_coef * values["loss/value"]
                    - entropy_coef * values["policy/entropy"]
                )
                values["update/grad_norm"] = grad_norm
                if not np.isfinite(list(values.values())).all():
                    self._skip(values, minibatch)
                    return None
                self.skipped_in_a_row = 0
                self.optimizer.step()
        return values

    def gradients(self, step: GradientStep, threads: int | None = None) -> Tensor:
        """Return the gradients of a step's moves for all weights, then the LOSS_PARTS, as one flat tensor.

        threads: to compute with on a CPU; the agent's if None. The last bits of what torch computes depend on
        them, so there a share always has one: whoever computes it, the result is the same.
        """
        threads = threads or self._threads
        if not self.numerics.native and len(step) < step.minibatch:
            threads = 1
        if self._native_gradients is not None:
            with self.clock("update"):
                self._native_gradients.use_threads(threads)
                self._native_gradients.load_flat(self.flat_weights())
            total = torch.empty(self._native_gradients.size)
            self._native_gradients.write_gradients(step, total.numpy())
            return total
        if not len(step):
            return torch.zeros(len(self._flat) + len(LOSS_PARTS), device=self.device)
        with self.clock("encode"):
            positions = self._decode(step.moves.packed, threads)
            columns = chosen_columns(positions, step.moves.actions)
        with self.clock("update"), threads_of_torch(threads):
            loss, parts = self._loss(step, positions, columns)
            found = torch.autograd.grad(loss, list(self.network.parameters()), materialize_grads=True)
            flat = self._flat.flattened(found, len(LOSS_PARTS))
            flat[len(self._flat) :] = parts
            return flat

    def flat_weights(self) -> Floats:
        """Return the weights as one flat array; on a CPU they are the network's own, and change with it."""
        flat: Floats = self._flat.weights.detach().cpu().numpy()
        return flat

    def load_flat(self, weights: Floats) -> None:
        """Load what `flat_weights` of an agent of the same architecture and numerics returns."""
        self._flat.weights.copy_(torch.from_numpy(weights))
        self._weights_changed()

    def write_gradients(self, step: GradientStep, out: Floats) -> None:
        """Write what `gradients` returns, for a worker: computed with one thread."""
        out[:] = self.gradients(step, threads=1).numpy()

    def _loss(
        self, step: GradientStep, positions: Positions, columns: npt.NDArray[np.int32]
    ) -> tuple[Tensor, Tensor]:
        """Return a step's part of PPO's loss, by torch, and the LOSS_PARTS."""
        training, moves = self.config.training, step.moves
        mb_log_probs, mb_values, mb_advantages, mb_returns, mb_columns = (
            torch.from_numpy(array).to(self.device)
            for array in (
                moves.log_probs,
                moves.values,
                moves.advantages,
                moves.returns,
                columns.astype(np.int64),
            )
        )
        legal = LegalMoves.of(positions, self._logit_of_action, self.device)
        logits, values = self._evaluate(torch.from_numpy(positions.planes))
        all_log_probs = legal.log_probs(legal.pick(logits))
        log_ratio = all_log_probs.gather(1, mb_columns[:, None])[:, 0] - mb_log_probs
        ratio = log_ratio.exp()

        clipped = ratio.clamp(1 - training.clip_coef, 1 + training.clip_coef)
        policy_loss = -torch.min(mb_advantages * ratio, mb_advantages * clipped).sum() / step.minibatch
        value_loss = mse_loss(values, mb_returns, reduction="none")
        if training.value_clip is not None:
            near = mb_values + (values - mb_values).clamp(-training.value_clip, training.value_clip)
            value_loss = torch.max(value_loss, mse_loss(near, mb_returns, reduction="none"))
        value_loss = value_loss.sum() / step.minibatch
        mean_entropy = entropy(all_log_probs).sum() / step.minibatch
        loss = policy_loss + training.value_coef * value_loss - step.entropy_coef * mean_entropy
        with torch.no_grad():
            approx_kl = (ratio - 1 - log_ratio).sum() / step.minibatch
            clip_fraction = ((ratio - 1).abs() > training.clip_coef).float().sum() / step.minibatch
            return loss, torch.stack([policy_loss, value_loss, mean_entropy, approx_kl, clip_fraction])

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
        for kind, flat in self.optimizer.state.get(self._flat.weights, {}).items():
            for name in self._flat.names:
                tensor = flat if kind == "step" else self._flat.named(flat)[name]
                optimizer[f"{name}.{kind}"] = tensor.detach().cpu().clone()
        return {"weights": self.weights(), "optimizer": optimizer}

    def load_tensors(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Load weights and optimiser tensors returned by `tensors`; ValueError if they do not fit."""
        weights, optimizer = tensors["weights"], tensors.get("optimizer", {})
        self._check_architecture(weights)
        self._check_optimizer(optimizer)
        self.load_weights(weights)
        self.optimizer.state.pop(self._flat.weights, None)
        if not optimizer:
            return
        by_kind = {kind: [optimizer[f"{name}.{kind}"] for name in self._flat.names] for kind in _ADAM}
        self.optimizer.state[self._flat.weights] = {
            kind: given[0].to(self.device, copy=True) if kind == "step" else self._flat.flattened(given)
            for kind, given in by_kind.items()
        }

    def _check_optimizer(self, tensors: Mapping[str, Tensor]) -> None:
        """ValueError unless these are Adam's tensors for all parameters, after as many steps, or none."""
        shapes = {name: parameter.shape for name, parameter in self.network.named_parameters()}
        for key, tensor in tensors.items():
            name, _, kind = key.rpartition(".")
            if kind not in _ADAM or name not in shapes:
                raise ValueError(f"optimiser tensor {key} does not belong to Adam on this network")
            expected = torch.Size() if kind == "step" else shapes[name]
            if tensor.shape != expected:
                raise ValueError(
                    f"optimiser tensor {key} is {shape_text(tensor.shape)}, expected {shape_text(expected)}"
                )
        missing = [f"{name}.{kind}" for name in shapes for kind in _ADAM if f"{name}.{kind}" not in tensors]
        if tensors and missing:
            raise ValueError(f"optimiser tensor {missing[0]} is absent ({len(missing)} are)")
        steps = {float(tensors[f"{name}.step"]) for name in shapes} if tensors else set()
        if len(steps) > 1:
            raise ValueError(f"parameters were trained for different numbers of steps: {sorted(steps)}")


def _explained_variance(moves: Minibatch) -> float:
    """Return how well the values predicted the returns: 1 perfectly, 0 like their mean, less is worse."""
    if not np.isfinite(moves.returns).all():
        return 0.0
    variance = float(np.var(moves.returns))
    return 1 - float(np.var(moves.returns - moves.values)) / variance if variance > 0 else 0.0
