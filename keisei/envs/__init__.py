"""Shogi for other people's learners: Gymnasium (single and vector) and, in shogi_v0, PettingZoo.

Importing this registers `keisei/Shogi-v0`. It needs the extra `gym` and never torch. docs/shogi.md explains
who gets which reward.
"""

from keisei.errors import install_command

try:
    import gymnasium
except ImportError as error:
    raise ImportError(f"keisei.envs needs Gymnasium: {install_command('gym')}") from error

from keisei.envs.shogi_env import ShogiEnv
from keisei.envs.shogi_vector_env import ShogiVectorEnv

gymnasium.register(
    "keisei/Shogi-v0",
    entry_point="keisei.envs.shogi_env:ShogiEnv",
    vector_entry_point="keisei.envs.shogi_vector_env:ShogiVectorEnv",
)

__all__ = ["ShogiEnv", "ShogiVectorEnv"]
