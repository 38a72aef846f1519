"""LearningAgent: a policy that learns, whatever the algorithm; PPOAgent and SearchAgent say how.

Takes a buffer of packed positions; returns the metrics of an update. All randomness is by key, so its
tensors, version and skipped_in_a_row are an agent's whole state.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from keisei.config.schema import Algorithm, AppConfig
from keisei.core.evaluator import threads_of_torch
from keisei.core.exchange import Alone, Exchange
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.flat_weights import FlatWeights
from keisei.core.gradient_step import LOSS_PARTS, PARTS, Floats, GradientStep
from keisei.core.native_gradients import NativeGradients
from keisei.core.native_tower import shape_text
from keisei.core.network_policy import NetworkPolicy
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.schedules import scheduled
from keisei.shogi.positions import Positions

_ADAM = ("step", "exp_avg", "exp_avg_sq")  # what Adam keeps for each parameter

ENTROPY_FLOOR = 0.2  # the share of entropy_coef left at the end of the run

MAX_SKIPPED = 3  # gradient steps in a row that were not finite, after which there is no hope


class NotFiniteError(ArithmeticError):
    """Losses or gradients that were NaN or infinite three times in a row; minibatch is the last one."""

    def __init__(self, message: str, minibatch: Minibatch) -> None:
        super().__init__(message)
        self.minibatch = minibatch


class LearningAgent(NetworkPolicy, ABC):
    """A policy that learns; pass `network` and `decode` only for games other than shogi.

    algorithm: of its config, whatever was given. alone: the exchange in which it computes all shares.
    version: the number of updates. skipped_in_a_row: how many of the latest gradient steps were not finite
    and so were skipped.
    """

    algorithm: Algorithm

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
        training = config.training.model_copy(update={"algorithm": self.algorithm})
        config = config.model_copy(update={"training": training})
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
        """Update the weights by what the buffer's moves teach, and return the metrics of the update.

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
        for minibatch in self._minibatches(buffer):
            before_minibatch()
            metrics = self._gradient_step(minibatch, entropy_coef, exchange)
            if metrics is None:
                skipped += 1
                continue
            steps.append(metrics)
            early_stop = self._is_enough(metrics)
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

    @abstractmethod
    def _minibatches(self, buffer: ExperienceBuffer) -> Iterator[Minibatch]:
        """Yield the minibatches of an update."""

    @abstractmethod
    def _step_of(self, minibatch: Minibatch, entropy_coef: float) -> GradientStep:
        """Return the gradient step of a whole minibatch."""

    @abstractmethod
    def _loss(self, step: GradientStep, positions: Positions) -> tuple[Tensor, Tensor]:
        """Return a step's part of the loss, by torch, and the loss's parts."""

    def _is_enough(self, metrics: Mapping[str, float]) -> bool:  # noqa: ARG002
        """Return whether the update ends after a step with these metrics."""
        return False

    def _random(self, epoch: int) -> np.random.Generator:
        """Return random numbers for a pass of this update."""
        # In the upper words: the lower ones count the draws, and would run into the next update's key.
        key = np.random.Philox(key=self.config.run.seed, counter=[0, 0, epoch, self.version])
        return np.random.Generator(key)

    def _gradient_step(
        self, minibatch: Minibatch, entropy_coef: float, exchange: Exchange
    ) -> dict[str, float] | None:
        """Take one optimiser step and return its metrics, or None if it was not finite and was skipped.

        Everything that is decided here is decided on the sum of all shares.
        """
        training = self.config.training
        # The threads that torch keeps waiting would take cores from the native kernels' threads.
        with threads_of_torch(1 if self.numerics.native else None):
            step = self._step_of(minibatch, entropy_coef)
            total = exchange.total(self, step)
            with self.clock("update"):
                self._flat.weights.grad = total[: len(self._flat)]
                grad_norm = float(nn.utils.clip_grad_norm_(self._flat.weights, training.max_grad_norm))
                parts = LOSS_PARTS[self.algorithm]
                values = dict(zip(parts, total[-PARTS:].tolist(), strict=True))
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
        """Return the gradients of a step's moves for all weights, then the loss's parts, as one flat tensor.

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
            return torch.zeros(len(self._flat) + PARTS, device=self.device)
        with self.clock("encode"):
            positions = self._decode(step.moves.packed, threads)
        with self.clock("update"), threads_of_torch(threads):
            loss, parts = self._loss(step, positions)
            found = torch.autograd.grad(loss, list(self.network.parameters()), materialize_grads=True)
            flat = self._flat.flattened(found, PARTS)
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
