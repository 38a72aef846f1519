"""Alpha-beta search by material, and a look one move ahead: native, many games in one call, without the GIL.

    alpha_beta(games, depth, seeds, threads) -> [(move, score), …]
    material_moves(games, seeds) -> [move, …]

The games are left as they are, must not be over, and must have both kings. native/alpha_beta.h says what is
searched. A seed decides between moves that are equal.
"""

from keisei._native import alpha_beta, material_moves

__all__ = ["alpha_beta", "material_moves"]
