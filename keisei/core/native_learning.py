"""The tower's forward and backward pass by our own kernels, as one differentiable operation of torch.

Takes the network's weights as they are in torch, so the loss, the optimiser and everything else stay torch's.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from keisei.core.native_tower import NativeTower
from keisei.shogi.positions import Positions


def tower_operation(tower: NativeTower, network: nn.Module, positions: Positions) -> tuple[Tensor, Tensor]:
    """Return the legal moves' logits [M] and the values [N], with gradients for the network's weights."""
    logits, values = _TowerOperation.apply(tower, positions, *network.parameters())  # type: ignore[no-untyped-call]
    return logits, values


class _TowerOperation(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tower: NativeTower, positions: Positions, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        _load(tower, weights)
        evaluated = tower.evaluate(positions, keep=True)
        ctx.tower, ctx.positions, ctx.evaluated, ctx.loads = tower, positions, evaluated, tower.loads
        ctx.save_for_backward(*weights)
        return torch.from_numpy(evaluated.logits), torch.from_numpy(evaluated.values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_logits: Tensor, d_values: Tensor) -> tuple[Tensor | None, ...]:
        weights = ctx.saved_tensors  # an error of torch's if they were changed meanwhile
        if ctx.loads != ctx.tower.loads:
            _load(ctx.tower, weights)
        gradients = ctx.tower.gradients(
            ctx.positions, ctx.evaluated, d_logits.contiguous().numpy(), d_values.contiguous().numpy()
        )
        return None, None, *map(torch.from_numpy, gradients.values())


def _load(tower: NativeTower, weights: Sequence[Tensor]) -> None:
    arrays = (weight.detach().numpy() for weight in weights)
    tower.load(dict(zip(tower.shapes, arrays, strict=True)), learning=True)
