"""FlatWeights: the parameters of a network as views of one flat tensor: one operation covers them all."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class FlatWeights:
    """`weights` is the flat tensor; the network's parameters become views of it, in the layout they have.

    Flat tensors of gradients and of the optimiser's state are in the same order.
    """

    def __init__(self, network: nn.Module) -> None:
        parameters = dict(network.named_parameters())
        self._views = [(name, one.shape, one.stride()) for name, one in parameters.items()]
        self._sizes = [one.numel() for one in parameters.values()]
        device = next(iter(parameters.values())).device
        self.weights = nn.Parameter(torch.empty(sum(self._sizes), device=device), requires_grad=False)
        for name, view in self.named(self.weights.data).items():
            view.copy_(parameters[name].data)
            parameters[name].data = view

    @property
    def names(self) -> list[str]:
        """The names of the parameters, in order."""
        return [name for name, *_ in self._views]

    def __len__(self) -> int:
        """Return the number of weights."""
        return self.weights.numel()

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Return views of a flat tensor by parameter name, with the parameters' shapes and layouts."""
        parts = flat[: len(self)].split(self._sizes)
        return {
            name: part.as_strided(shape, stride)
            for (name, shape, stride), part in zip(self._views, parts, strict=True)
        }

    def flattened(self, tensors: Sequence[Tensor], more: int = 0) -> Tensor:
        """Return tensors of the parameters' shapes as a flat one with room for more numbers at its end."""
        flat = torch.empty(len(self) + more, device=self.weights.device)
        for view, tensor in zip(self.named(flat).values(), tensors, strict=True):
            view.copy_(tensor.detach())
        return flat
