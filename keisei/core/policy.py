"""NetworkPolicy: a network that chooses moves. It plays; PPOAgent learns.

Takes positions; returns actions with their log-probabilities and values, or the probabilities of all legal
actions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from keisei.config.schema import AppConfig, validated
from keisei.core.models import model_factory
from keisei.core.numerics import Evaluator, Numerics, choose_numerics, synchronize
from keisei.core.phase_clock import PhaseClock
from keisei.core.sparse_policy import LegalMoves, sample
from keisei.shogi.encoding import PLANES
from keisei.shogi.positions import Positions


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Moves for N positions. actions: int32 [N]; log_probs, values: float32 [N]."""

    actions: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]


class NetworkPolicy:
    """A network on a device; pass `network` only for games other than shogi. numerics: measured if None."""

    def __init__(
        self,
        config: AppConfig,
        device: str | torch.device = "cpu",
        *,
        network: nn.Module | None = None,
        numerics: Numerics | None = None,
        clock: PhaseClock | None = None,
    ) -> None:
        self.config = validated(config)
        self.device = torch.device(device)
        self.clock = clock or PhaseClock()
        self.network = network or model_factory(config.model, seed=config.run.seed)
        self.network.to(self.device)
        self._logit_of_action: npt.NDArray[np.int64] = self.network.logit_of_action  # type: ignore[assignment]
        if numerics is None:
            shape = (config.training.minibatch_size, PLANES, 9, 9)
            sample_planes = torch.rand(shape, generator=torch.Generator().manual_seed(0))
            numerics = choose_numerics(self.network, config.run, self.device, sample_planes)
        self.numerics = numerics
        sizes = (config.training.games, config.training.minibatch_size)
        self._evaluate = Evaluator(self.network, numerics, self.device, sizes)

    @property
    def parameters(self) -> int:
        """The number of parameters in the network."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    @torch.inference_mode()
    def select_action(
        self, positions: Positions, uniforms: npt.NDArray[np.float64], temperature: float = 1.0
    ) -> Choice:
        """Choose a legal action in each of N positions: the one picked by its number in [0, 1).

        A temperature below 1 sharpens the choice; 0 takes the most probable move.
        """
        with self.clock("inference"):
            logits, values = self._evaluate(torch.from_numpy(positions.planes))
            synchronize(self.device)  # a GPU only queues the work; sampling would be charged for it
        with self.clock("sampling"):
            legal = LegalMoves.of(positions, self._logit_of_action, self.device)
            log_probs = legal.log_probs(logits, temperature or 1.0).cpu()  # not every device has float64
            if temperature == 0:
                columns = log_probs.argmax(1)
            else:
                columns = sample(log_probs, torch.from_numpy(uniforms))
            chosen = log_probs.gather(1, columns[:, None])[:, 0]
            actions = positions.actions[positions.offsets[:-1] + columns.numpy()]
            return Choice(actions, chosen.float().numpy(), values.cpu().numpy())

    @torch.inference_mode()
    def evaluate(self, positions: Positions) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return (priors [M], values [N]): the probability of each legal action, and who is ahead.

        priors are in the order of positions.actions. A value is for the player to move, -1 to 1.
        """
        logits, values = self._evaluate(torch.from_numpy(positions.planes))
        legal = LegalMoves.of(positions, self._logit_of_action, self.device)
        priors: npt.NDArray[np.float32] = legal.log_probs(logits).exp()[legal.legal].cpu().numpy()
        return priors, values.cpu().numpy()

    @torch.inference_mode()
    def get_value(self, planes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the values [N] of positions with planes [N, 46, 9, 9], for the player to move."""
        with self.clock("inference"):
            values: npt.NDArray[np.float32] = self._evaluate(torch.from_numpy(planes))[1].cpu().numpy()
            return values

    def weights(self) -> dict[str, Tensor]:
        """Return copies of the weights, by name, on the CPU."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.network.state_dict().items()}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load weights returned by `weights`; ValueError if they are of another architecture."""
        self._check_architecture(weights)
        self.network.load_state_dict(dict(weights))

    def _check_architecture(self, weights: Mapping[str, Tensor]) -> None:
        mine = {name: tensor.shape for name, tensor in self.network.state_dict().items()}
        given = {name: tensor.shape for name, tensor in weights.items()}
        if mine != given:
            odd = sorted(name for name in {*mine, *given} if mine.get(name) != given.get(name))
            raise ValueError(
                f"weights are of another architecture: {odd[0]} is {shape_text(given.get(odd[0]))}, "
                f"expected {shape_text(mine.get(odd[0]))} ({len(odd)} tensors differ)"
            )


def shape_text(shape: torch.Size | None) -> str:
    """Return a shape as text for errors: "[8, 8, 3, 3]", or "absent"."""
    return "absent" if shape is None else f"[{', '.join(map(str, shape))}]"
