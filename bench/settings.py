"""How much to measure, and which peers there are to measure against."""

import importlib.util
from dataclasses import dataclass, field

from results import fairy_stockfish_path

from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.shogi.positions import Positions
from keisei.shogi.vector import Batch, VectorGames

# The module or program that shows a peer to be installed, and what installs it.
KNOWN = {
    "fairy-stockfish": ("", "apt-get install fairy-stockfish"),
    "cshogi": ("cshogi", "cshogi"),
    "rsshogi": ("rsshogi", "rsshogi"),
    "open_spiel": ("pyspiel", "open_spiel"),
    "envpool": ("envpool", "envpool"),
    "pgx": ("pgx", "pgx jax"),
    "gymnasium": ("gymnasium", "gymnasium"),
    "sb3-contrib": ("sb3_contrib", "sb3-contrib"),
    "pufferlib": ("pufferlib", "pufferlib"),
    "torchrl": ("torchrl", "torchrl"),
}


@dataclass(frozen=True)
class Scale:
    """How much work a turn is: share of the full amount; `is_tiny` for a test of seconds.

    workers: processes for the contests that have them. network: blocks and channels. run: a run or checkpoint
    whose network plays in the suite of strength; None trains one for some seconds.
    """

    share: float = 1.0
    is_tiny: bool = False
    workers: int = 2
    network: tuple[int, int] = (3, 32)
    run: str | None = None

    def of(self, amount: int, least: int = 1) -> int:
        """Return this share of an amount, at least `least`."""
        return max(least, int(amount * self.share))


@dataclass
class Peers:
    """The peers asked for; `missing` collects those that a suite asked about and that are not installed.

    wanted: names from KNOWN, or None for all.
    """

    wanted: frozenset[str] | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Return whether a peer takes part; note it if it is wanted and missing."""
        if self.wanted is not None and name not in self.wanted:
            return False
        module, install = KNOWN[name]
        if fairy_stockfish_path() if name == "fairy-stockfish" else _found(module):
            return True
        self.missing[name] = install if not module else f"pip install {install}"
        return False


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # the package around it is missing
        return False


def config_of(
    scale: Scale,
    *,
    games: int = 64,
    workers: int = 0,
    lag: int = 0,
    learners: int = 1,
    shared_memory: bool = True,
) -> AppConfig:
    """Return the config of PPO with this network and number of games, in a format that is fast on CPUs.

    PPO, since that is what the peers learn by. games: in all, divided among the workers if there are any.
    4,096 moves an update unless the scale is tiny.
    """
    blocks, channels = scale.network
    settings: dict[str, object] = {
        "model.blocks": blocks,
        "model.channels": channels,
        "training.total_timesteps": 10**9,  # so that no schedule moves
        "training.games": games,
        "training.steps_per_epoch": epoch_moves(scale),
        "training.minibatch_size": 256,
        "training.learners": learners,
        "training.parallel.enabled": workers > 0,
        "training.parallel.num_workers": max(1, workers),
        "training.parallel.episodes_per_worker": max(1, games // max(1, workers)),
        "training.parallel.max_policy_lag": lag,
        "training.parallel.use_shared_memory": shared_memory,
        "run.numerics": "native",
        "run.console": "off",
    }
    return load_config("ppo", [f"{name}={value}" for name, value in settings.items()])


def epoch_moves(scale: Scale) -> int:
    """Return the number of moves in an update."""
    return 512 if scale.is_tiny else 4096


def midgame_positions(count: int) -> Positions:
    """Return positions after 40 random moves."""
    batch = Batch.empty(count, planes=False)
    VectorGames(count, seed=1, random_plies=40).observe(batch)
    return Positions.of_packed(batch.packed)
