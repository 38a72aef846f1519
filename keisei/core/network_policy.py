"""NetworkPolicy: a network of torch that chooses moves. It plays; a LearningAgent learns.

Takes positions; returns actions with their log-probabilities and values, or the probabilities of all legal
actions. With native numerics a NativePolicy computes them, with the weights that the network has at the time.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from keisei.config.schema import AppConfig, validated
from keisei.core.evaluator import Evaluator, choose_numerics, synchronize
from keisei.core.models import model_factory
from keisei.core.native_policy import NativePolicy
from keisei.core.native_tower import check_shapes
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.policy import Choice
from keisei.core.sparse_policy import LegalMoves, sample
from keisei.shogi.encoding import PLANES
from keisei.shogi.positions import Positions


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
        self._native: NativePolicy | None = None
        self._native_version = -1  # of the weights that it has, see weights_version
        if numerics.native:
            threads = config.run.threads or torch.get_num_threads()
            self._native = NativePolicy(config, kernels=numerics.native, threads=threads, strict=False)

    @property
    def parameters(self) -> int:
        """The number of parameters in the network."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def use_threads(self, threads: int) -> None:
        """Compute with this many threads of the CPU, from the calling thread: OpenMP counts them for each."""
        torch.set_num_threads(threads)
        if self._native is not None:
            self._native.use_threads(threads)

    @torch.inference_mode()
    def select_action(
        self, positions: Positions, uniforms: npt.NDArray[np.float64], temperature: float = 1.0
    ) -> Choice:
        """Choose a legal action in each of N positions: the one picked by its number in [0, 1).

        A temperature below 1 sharpens the choice; 0 takes the most probable move.
        """
        if self._native is not None:
            return self._player(self._native).select_action(positions, uniforms, temperature)
        with self.clock("inference"):
            logits, values = self._evaluate(torch.from_numpy(positions.planes))
            synchronize(self.device)  # a GPU only queues the work; sampling would be charged for it
        with self.clock("sampling"):
            legal = LegalMoves.of(positions, self._logit_of_action, self.device)
            # On the CPU: not every device has float64.
            log_probs = legal.log_probs(legal.pick(logits), temperature or 1.0).cpu()
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
        if self._native is not None:
            return self._player(self._native).evaluate(positions)
        logits, values = self._evaluate(torch.from_numpy(positions.planes))
        legal = LegalMoves.of(positions, self._logit_of_action, self.device)
        priors: npt.NDArray[np.float32] = legal.log_probs(legal.pick(logits)).exp()[legal.legal].cpu().numpy()
        return priors, values.cpu().numpy()

    @torch.inference_mode()
    def get_value(self, planes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the values [N] of positions with planes [N, 46, 9, 9], for the player to move."""
        if self._native is not None:
            return self._player(self._native).get_value(planes)
        with self.clock("inference"):
            values: npt.NDArray[np.float32] = self._evaluate(torch.from_numpy(planes))[1].cpu().numpy()
            return values

    def weights(self) -> dict[str, Tensor]:
        """Return copies of the weights, by name, on the CPU."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.network.state_dict().items()}

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the weights by name; on a CPU they are the network's own, and change with it."""
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.network.state_dict().items()}

    def load_arrays(self, weights: Mapping[str, npt.NDArray[np.floating]]) -> None:
        """Load weights by name; ValueError if they are of another architecture."""
        self.load_weights({name: torch.from_numpy(array) for name, array in weights.items()})

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load weights returned by `weights`; ValueError if they are of another architecture."""
        self._check_architecture(weights)
        self.network.load_state_dict(dict(weights))

    def _check_architecture(self, weights: Mapping[str, Tensor]) -> None:
        mine, given = (
            {name: tuple(tensor.shape) for name, tensor in tensors.items()}
            for tensors in (self.network.state_dict(), weights)
        )
        check_shapes(mine, given)

    def _weights_changed(self) -> None:
        """Let the next move be chosen with new weights; needed where weights_version does not notice."""
        self._native_version = -1

    def _player(self, native: NativePolicy) -> NativePolicy:
        """Return the policy that plays, with the network's weights of now."""
        native.clock = self.clock
        version = weights_version(self.network)
        if version != self._native_version:
            native.load_arrays(self.arrays())
            self._native_version = version
        return native


def weights_version(network: nn.Module) -> int:
    """Return a number that grows whenever a weight is changed, except by torch's fused optimisers."""
    return sum(weight._version for weight in network.parameters())
