"""A network of your own, trained for some seconds: python examples/own_network.py

Copy the class to a file of yours, say mine.py. Beside it, every command knows it by its import path:

    keisei train run.name=mine model.name=mine:SquareTransformer 'model.options={width: 64}'
    KEISEI_OWN_NETWORK=mine:SquareTransformer keisei play mine

docs/training.md says what a network has to do.
"""

import argparse

import torch
from torch import Tensor, nn

from keisei.training import train
from keisei.training.listener import SilentListener, Update
from keisei.utils import load_config

PLANES, SQUARES, MOVES_TO_A_SQUARE = 46, 81, 27


class SquareTransformer(nn.Module):
    """Attention between the 81 squares: each is a token, and gets the logits of the moves that end there."""

    def __init__(self, width: int = 32, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(PLANES, width)
        self.place = nn.Parameter(torch.randn(SQUARES, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.policy = nn.Linear(width, MOVES_TO_A_SQUARE)
        self.value = nn.Linear(width, 1)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Return (logits [B, 2187], values [B]) for planes [B, 46, 9, 9]."""
        squares = planes.flatten(2).transpose(1, 2)  # [B, 81, 46]
        x = self.layers(self.embed(squares) + self.place)
        logits = self.policy(x).transpose(1, 2).flatten(1)  # a label is plane * 81 + destination
        return logits, torch.tanh(self.value(x.mean(1))).squeeze(1)


class Progress(SilentListener):
    """A listener: it is told of every update."""

    def update(self, update: Update) -> None:
        """Print a line."""
        loss, entropy = update.metrics["loss/total"], update.metrics["policy/entropy"]
        print(f"{update.step:6,} moves: loss {loss:.3f}, entropy {entropy:.3f}", flush=True)


def main() -> None:
    """Train for a few updates and say where the run is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=4096, help="moves to train on (default 4096)")
    parser.add_argument("--width", type=int, default=32, help="numbers per square (default 32)")
    arguments = parser.parse_args()
    config = load_config(
        "tiny",
        [
            "model.name=own_network:SquareTransformer",  # this file
            f"model.options={{width: {arguments.width}}}",
            "run.numerics=float32",
            f"training.total_timesteps={arguments.steps}",
            "run.console=off",
        ],
    )
    result = train(config, listeners=[Progress()])
    print(f"{result.steps:,} moves in {result.directory}: {result.message}")


if __name__ == "__main__":  # the workers import this file too
    main()
