"""PPOAgent: a network that chooses moves and learns from what came of them.

In: planes and lists of legal actions, or a buffer of packed positions. Out: actions with their
log-probabilities and values, or the metrics of an update. The names are the paper's (Schulman et al., 2017).
Nothing here is random but by key, so weights, the optimiser's tensors, version and skipped_in_a_row are the
agent's whole state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from keisei.config.schema import AppConfig, validated
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.models import model_factory
from keisei.core.numerics import Evaluator, Numerics, choose_numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.schedules import scheduled
from keisei.core.sparse_policy import LegalMoves, entropy, sample
from keisei.shogi import encoding

_ADAM = ("step", "exp_avg", "exp_avg_sq")  # what it keeps for each parameter

ENTROPY_FLOOR = 0.2  # the share of entropy_coef that stays at the end of the run

MAX_SKIPPED = 3  # updates that were not finite, in a row, after which there is no hope

Decoded = tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], npt.NDArray[np.int32]]


def decode_shogi(packed: npt.NDArray[np.uint8], threads: int) -> Decoded:
    """Return (planes [B, 46, 9, 9], offsets [B + 1], legal actions) of packed positions [B, 104]."""
    offsets, actions = encoding.legal_actions(packed, threads=threads)
    return encoding.planes(packed, threads=threads), offsets, actions


class NotFiniteError(ArithmeticError):
    """Losses or gradients were NaN or infinite three times in a row; minibatch is the last one of them."""

    def __init__(self, message: str, minibatch: Minibatch) -> None:
        super().__init__(message)
        self.minibatch = minibatch


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Moves for N positions. actions: int32 [N]; log_probs, values: float32 [N]."""

    actions: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]


class PPOAgent:
    """A player and learner; `network` and `decode` are other than shogi's only for other games.

    version: how many updates the weights have seen. skipped_in_a_row: the last gradient steps that were not
    finite and so not taken.
    """

    def __init__(
        self,
        config: AppConfig,
        device: str | torch.device = "cpu",
        *,
        network: nn.Module | None = None,
        decode: Callable[[npt.NDArray[np.uint8], int], Decoded] = decode_shogi,
        numerics: Numerics | None = None,
        clock: PhaseClock | None = None,
    ) -> None:
        self.config = validated(config)
        self.device = torch.device(device)
        self.clock = clock or PhaseClock()
        self.version = 0
        self.network = network or model_factory(config.model, seed=config.run.seed)
        self.network.to(self.device)
        self._decode = decode
        self._threads = config.run.threads or torch.get_num_threads()
        self._logit_of_action: npt.NDArray[np.int64] = self.network.logit_of_action  # type: ignore[assignment]
        if numerics is None:
            shape = (config.training.minibatch_size, encoding.PLANES, 9, 9)
            sample_planes = torch.rand(shape, generator=torch.Generator().manual_seed(0))
            numerics = choose_numerics(self.network, config.run, self.device, sample_planes)
        self.numerics = numerics
        sizes = (config.training.games, config.training.minibatch_size)
        self._evaluate = Evaluator(self.network, numerics, self.device, sizes)
        self.skipped_in_a_row = 0

    @cached_property
    def optimizer(self) -> torch.optim.Adam:
        """Made when it is first needed: who only plays does without, and starts a second sooner."""
        return torch.optim.Adam(
            self.network.parameters(), lr=self.config.training.learning_rate, eps=1e-5, fused=True
        )

    @property
    def parameters(self) -> int:
        """How many numbers the network has learned."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    @torch.inference_mode()
    def select_action(
        self,
        planes: npt.NDArray[np.float32],
        offsets: npt.NDArray[np.int32],
        actions: npt.NDArray[np.int32],
        uniforms: npt.NDArray[np.float64],
        temperature: float = 1.0,
    ) -> Choice:
        """Choose a legal action in each of N positions: the one that its number in [0, 1) picks.

        planes: [N, 46, 9, 9]. The legal actions of position i are actions[offsets[i]:offsets[i + 1]]. A
        temperature below 1 sharpens the choice; 0 takes the most probable move.
        """
        with self.clock("inference"):
            logits, values = self._evaluate(torch.from_numpy(planes))
        with self.clock("sampling"):
            legal = LegalMoves.from_lists(offsets, actions, self._logit_of_action, self.device)
            log_probs = legal.log_probs(logits, temperature or 1.0).cpu()  # not every device has float64
            if temperature == 0:
                columns = log_probs.argmax(1)
            else:
                columns = sample(log_probs, torch.from_numpy(uniforms))
            chosen = log_probs.gather(1, columns[:, None])[:, 0]
            return Choice(
                actions[offsets[:-1] + columns.numpy()], chosen.float().numpy(), values.cpu().numpy()
            )

    @torch.inference_mode()
    def evaluate(
        self,
        planes: npt.NDArray[np.float32],
        offsets: npt.NDArray[np.int32],
        actions: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return (priors [M], values [N]): the probability of each legal action, and who stands better.

        planes: [N, 46, 9, 9]. The legal actions of position i are actions[offsets[i]:offsets[i + 1]], and
        priors has the same order; M is offsets[N]. A value is the player's to move, -1 to 1.
        """
        logits, values = self._evaluate(torch.from_numpy(planes))
        legal = LegalMoves.from_lists(offsets, actions, self._logit_of_action, self.device)
        priors: npt.NDArray[np.float32] = legal.log_probs(logits).exp()[legal.legal].cpu().numpy()
        return priors, values.cpu().numpy()

    @torch.inference_mode()
    def get_value(self, planes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the values [N] of positions with planes [N, 46, 9, 9], for the player to move."""
        with self.clock("inference"):
            values: npt.NDArray[np.float32] = self._evaluate(torch.from_numpy(planes))[1].cpu().numpy()
            return values

    def learn(
        self,
        buffer: ExperienceBuffer,
        *,
        progress: float = 0.0,
        before_minibatch: Callable[[], None] = lambda: None,
    ) -> Mapping[str, float]:
        """Update the weights by PPO on the buffer's moves, and return the metrics of the update.

        progress: the share of the run that is done, for the schedules. before_minibatch: called before each
        gradient step; what it raises ends the update in the middle.
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
            # In the upper words: the lower ones count the draws, and would run into the next update's.
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
        """Take one step of the optimiser and return its metrics; None if it was not finite and not taken."""
        with self.clock("encode"):
            planes, offsets, actions = self._decode(minibatch.packed, self._threads)
            legal = LegalMoves.from_lists(offsets, actions, self._logit_of_action, self.device)
            # Where the chosen move is among the legal ones.
            chosen = np.flatnonzero(actions == np.repeat(minibatch.actions, np.diff(offsets)))
            if len(chosen) != len(minibatch.actions):
                raise ValueError("the buffer has an action that is not legal in its position")
            columns = chosen - offsets[:-1]
        with self.clock("update"):
            loss, metrics = self.loss(planes, legal, columns, minibatch, entropy_coef)
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
        planes: npt.NDArray[np.float32],
        legal: LegalMoves,
        columns: npt.NDArray[np.intp],
        minibatch: Minibatch,
        entropy_coef: float,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return PPO's loss for a decoded minibatch, and its parts."""
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
        logits, values = self._evaluate(torch.from_numpy(planes))
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
        """Return copies of the weights and of the optimiser's tensors, by name, on the CPU."""
        optimizer = {}
        for name, parameter in self.network.named_parameters():
            for key, tensor in self.optimizer.state.get(parameter, {}).items():
                optimizer[f"{name}.{key}"] = tensor.detach().cpu().clone()
        weights = {name: tensor.detach().cpu().clone() for name, tensor in self.network.state_dict().items()}
        return {"weights": weights, "optimizer": optimizer}

    def load_tensors(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Take weights, and the optimiser's tensors, that `tensors` returned; others are a ValueError."""
        weights, optimizer = tensors["weights"], tensors.get("optimizer", {})
        mine = {name: tensor.shape for name, tensor in self.network.state_dict().items()}
        given = {name: tensor.shape for name, tensor in weights.items()}
        if mine != given:
            odd = sorted(name for name in {*mine, *given} if mine.get(name) != given.get(name))
            raise ValueError(
                f"weights of another architecture: {odd[0]} is {_shape(given.get(odd[0]))}, "
                f"expected {_shape(mine.get(odd[0]))} ({len(odd)} tensors differ)"
            )
        parameters = dict(self.network.named_parameters())
        for key, tensor in optimizer.items():
            name, _, kind = key.rpartition(".")
            if kind not in _ADAM or name not in parameters:
                raise ValueError(f"optimiser's tensor {key} is not one of this network and Adam")
            expected = torch.Size() if kind == "step" else parameters[name].shape
            if tensor.shape != expected:
                raise ValueError(f"optimiser's {key} is {_shape(tensor.shape)}, expected {_shape(expected)}")
        self.network.load_state_dict(dict(weights))
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


def _shape(shape: torch.Size | None) -> str:
    return "absent" if shape is None else f"[{', '.join(map(str, shape))}]"


def _explained_variance(moves: Minibatch) -> float:
    """Return how much of the returns the values foretold: 1 all, 0 nothing, less worse than their mean."""
    if not np.isfinite(moves.returns).all():
        return 0.0
    variance = float(np.var(moves.returns))
    return 1 - float(np.var(moves.returns - moves.values)) / variance if variance > 0 else 0.0
