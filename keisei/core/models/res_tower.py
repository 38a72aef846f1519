"""ActorCriticResTower: planes in, logits and a value out, both from the mover's view.

A residual tower with normalisation before each convolution. Group normalisation looks at one position at a
time, so the network computes the same function for any batch, in collecting and in learning. With batch
normalisation it would not, and PPO's ratio of new to old probabilities would not start at 1.
"""

import numpy as np
import torch
from torch import Tensor, nn

from keisei.config.schema import ModelConfig
from keisei.core.material import PIECE_VALUES
from keisei.core.native_tower import LINEAR_HEAD_CHANNELS, PIECE_PLANES, excitation_width
from keisei.core.policy_labels import ACTION_LABELS, LABELS
from keisei.shogi.encoding import ACTIONS, PLANES

WORTH_OF_A_PAWN = 0.07  # before the tanh, of textbook piece values

# From the sum of a plane to the number of pieces: a plane of pieces in hand has the share of its kind on
# every square.
_KINDS = np.array([18, 4, 4, 4, 4, 2, 2]) / 81
PIECES_OF_A_SUM = np.concatenate([np.ones(28), _KINDS, _KINDS]).astype(np.float32)
_ON_BOARD, _IN_HAND = PIECE_VALUES[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15]], PIECE_VALUES[1:8]
PLANE_VALUES = np.concatenate([_ON_BOARD, -_ON_BOARD, _IN_HAND, -_IN_HAND]).astype(np.float32)


class ResidualBlock(nn.Module):
    """x + conv(relu(norm(conv(relu(norm(x)))))), with optional squeeze-and-excitation."""

    def __init__(self, channels: int, groups: int, excitation: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(groups, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.excitation = SqueezeExcitation(channels, excitation) if excitation else nn.Identity()
        nn.init.zeros_(self.conv2.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, channels, 9, 9] for an input of that shape."""
        y: Tensor = self.conv1(torch.relu(self.norm1(x)))
        y = self.conv2(torch.relu(self.norm2(y)))
        y = self.excitation(y)
        return x + y


class SqueezeExcitation(nn.Module):
    """A scale from 0 to 2 for each channel, computed from its mean over the board."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(channels, hidden)
        self.excite = nn.Linear(hidden, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, channels, 9, 9] for an input of that shape."""
        scale = torch.sigmoid(self.excite(torch.relu(self.squeeze(x.mean((2, 3))))))
        return x * (2 * scale)[:, :, None, None]


class LabelPolicyHead(nn.Module):
    """27 planes of 81 destination squares: 2,187 logits, see keisei.core.policy_labels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, LABELS // 81, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [B, 2187] for [B, channels, 9, 9]."""
        logits: Tensor = self.conv(x)
        return logits.flatten(1)


class LinearPolicyHead(nn.Module):
    """A narrow convolution and one linear layer to all 13,527 actions, for comparison."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.narrow = nn.Conv2d(channels, LINEAR_HEAD_CHANNELS, 1)
        self.conv = nn.Linear(LINEAR_HEAD_CHANNELS * 81, ACTIONS)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [B, 13527] for [B, channels, 9, 9]."""
        logits: Tensor = self.conv(torch.relu(self.narrow(x)).flatten(1))
        return logits


class ValueHead(nn.Module):
    """Mean and maximum of each channel over the board, a hidden layer, tanh.

    piece_values: before the tanh, add a linear function of the numbers of pieces; its weights begin at 0
    (learned) or as in textbooks.
    """

    counts: Tensor

    def __init__(self, channels: int, hidden: int, piece_values: str) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * channels, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, 1)
        self.pieces: nn.Linear | None = None
        if piece_values != "none":
            self.pieces = nn.Linear(PIECE_PLANES, 1, bias=False)
            first = WORTH_OF_A_PAWN * PLANE_VALUES if piece_values == "textbook" else 0 * PLANE_VALUES
            with torch.no_grad():
                self.pieces.weight.copy_(torch.from_numpy(first))
            self.register_buffer("counts", torch.from_numpy(PIECES_OF_A_SUM), persistent=False)

    def forward(self, x: Tensor, planes: Tensor) -> Tensor:
        """Return values [B] in [-1, 1] for [B, channels, 9, 9] and the tower's input."""
        pooled = torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)
        out = self.out(torch.relu(self.norm(self.hidden(pooled))))
        if self.pieces is not None:
            out = out + self.pieces(planes[:, :PIECE_PLANES].sum((2, 3)) * self.counts)
        return torch.tanh(out).squeeze(1)


class ActorCriticResTower(nn.Module):
    """Stem, residual blocks, a policy head and a value head.

    logit_of_action: int64 [13527], numpy: the index of each action's logit.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        channels = config.channels
        self.stem = nn.Conv2d(PLANES, channels, 3, padding=1)
        self.blocks = nn.Sequential(
            *(
                ResidualBlock(channels, config.norm_groups, excitation_width(config))
                for _ in range(config.blocks)
            )
        )
        self.norm = nn.GroupNorm(config.norm_groups, channels)
        labels = config.policy_head == "labels"
        self.policy = LabelPolicyHead(channels) if labels else LinearPolicyHead(channels)
        self.value = ValueHead(channels, config.value_hidden, config.piece_values)
        self.logit_of_action = ACTION_LABELS.astype(np.int64) if labels else np.arange(ACTIONS)
        # The first policy is nearly uniform, and the first value nearly 0.
        for last in (self.policy.conv, self.value.out):
            nn.init.normal_(last.weight, std=0.01)
            if last.bias is not None:
                nn.init.zeros_(last.bias)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Return (logits [B, 2187] or [B, 13527], values [B]) for planes [B, 46, 9, 9]."""
        x = torch.relu(self.norm(self.blocks(self.stem(planes))))
        return self.policy(x), self.value(x, planes)
