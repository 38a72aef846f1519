"""python bench/network_errors.py [--seeds 5]: how far results and gradients are from those in float64.

For networks of 3 and 10 blocks and widths 4 to 256, with random weights that all matter: the largest error of
the logits and the values, and of any weight's gradient, as a share of the largest such number. Beside our own
kernels stands torch in float32, which rounds too.

Networks in which a number before a ReLU is nearly 0 are passed over: rounding may change its sign, and a
gradient then jumps, whoever computes it. With two positions few wide networks are left, with more none.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from settings import midgame_positions
from torch import Tensor

from keisei.config.schema import ModelConfig
from keisei.core.models import ActorCriticResTower
from keisei.core.native_tower import NativeTower, usable_kernels
from keisei.shogi.positions import Positions

POSITIONS = 2
NEAR = 3e-6
WIDTHS = (4, 8, 16, 32, 64, 128, 256)

Forward = Callable[[], tuple[Tensor, Tensor]]
Results = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], list[npt.NDArray[np.float64]]]


def random_network(config: ModelConfig, seed: int = 1) -> ActorCriticResTower:
    """Return a network in which every weight matters: as it begins, some are 0 and some very small."""
    network = ActorCriticResTower(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            fan_in = weight[0].numel() if weight.ndim > 1 else 4
            weight.copy_(torch.randn(weight.shape, generator=generator) / fan_in**0.5)
            if "norm" in name and name.endswith("weight"):
                weight.add_(1)
    return network


def beginnings(logits: int, values: int) -> list[Tensor]:
    """Return gradients of logits and values to begin with: random, but always the same."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, generator=generator) for size in (logits, values)]


def native_results(network: ActorCriticResTower, tower: NativeTower, positions: Positions) -> Results:
    """Return what `results` does, by our own kernels."""
    tower.load({name: tensor.numpy() for name, tensor in network.state_dict().items()}, learning=True)
    found = tower.evaluate(positions, keep=True)
    starts = [start.numpy() for start in beginnings(len(found.logits), len(found.values))]
    gradients = tower.gradients(positions, found, *starts)
    return (
        found.logits.astype(np.float64),
        found.values.astype(np.float64),
        [gradient.astype(np.float64) for gradient in gradients.values()],
    )


def results(network: ActorCriticResTower, forward: Forward) -> Results:
    """Return logits of legal moves, values and gradients, by torch."""
    network.zero_grad()
    logits, values = forward()
    starts = [start.to(values.dtype) for start in beginnings(len(logits), len(values))]
    torch.autograd.backward([logits, values], starts)
    gradients = [
        weight.grad.double().numpy().copy() for weight in network.parameters() if weight.grad is not None
    ]
    return logits.detach().double().numpy(), values.detach().double().numpy(), gradients


def by_torch(network: ActorCriticResTower, positions: Positions, kind: torch.dtype) -> Forward:
    """Return a forward pass of torch in this type."""
    rows = torch.from_numpy(np.repeat(np.arange(len(positions)), np.diff(positions.offsets)))
    columns = torch.from_numpy(network.logit_of_action[positions.actions])

    def forward() -> tuple[Tensor, Tensor]:
        logits, values = network(torch.from_numpy(positions.planes).to(kind))
        return logits[rows, columns], values

    return forward


def nearest(network: ActorCriticResTower, forward: Forward) -> float:
    """Return the distance from 0 of the number nearest to it that goes into a ReLU."""
    found: list[float] = []
    hooks = [
        module.register_forward_hook(lambda _module, _given, out: found.append(float(out.abs().min())))
        for name, module in network.named_modules()
        if name.rpartition(".")[2] in ("norm", "norm1", "norm2")
    ]
    with torch.no_grad():
        forward()
    for hook in hooks:
        hook.remove()
    return min(found)


def networks(config: ModelConfig, positions: Positions, count: int) -> Iterator[ActorCriticResTower]:
    """Yield so many networks without numbers near 0."""
    seed = 0
    while count:
        network, seed = random_network(config, seed).double(), seed + 1
        if nearest(network, by_torch(network, positions, torch.float64)) > NEAR:
            count -= 1
            yield network.float()


def errors(found: Results, expected: Results) -> tuple[float, float]:
    """Return the error of the results and that of the gradients."""
    forward = max(
        np.abs(a - b).max() / max(np.abs(b).max(), 1) for a, b in zip(found[:2], expected[:2], strict=True)
    )
    largest = max(np.abs(gradient).max() for gradient in expected[2])
    # Some gradients vanish in exact arithmetic; a tenth of the largest of all is their scale.
    backward = max(
        np.abs(a - b).max() / max(np.abs(b).max(), 0.1 * largest)
        for a, b in zip(found[2], expected[2], strict=True)
    )
    return float(forward), float(backward)


def main() -> None:
    """Compute and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="networks of each size (default 5)")
    arguments = parser.parse_args()
    positions, names = midgame_positions(POSITIONS), ["torch float32", *usable_kernels()]
    print(f"| blocks × width | {' | '.join(f'{name}: results, gradients' for name in names)} |")
    print(f"|---|{'---|' * len(names)}", flush=True)
    for blocks in (3, 10):
        for width in WIDTHS:
            config = ModelConfig(blocks=blocks, channels=width)
            worst = dict.fromkeys(names, (0.0, 0.0))
            for network in networks(config, positions, arguments.seeds):
                found = {names[0]: results(network, by_torch(network, positions, torch.float32))}
                for name in names[1:]:
                    tower = NativeTower(config, kernels=name, threads=2)
                    found[name] = native_results(network, tower, positions)
                network.double()
                expected = results(network, by_torch(network, positions, torch.float64))
                for name, own in found.items():
                    now = errors(own, expected)
                    worst[name] = max(worst[name][0], now[0]), max(worst[name][1], now[1])
            cells = " | ".join(f"{forward:.1e}, {backward:.1e}" for forward, backward in worst.values())
            print(f"| {blocks} × {width} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
