"""Alpha-beta search on material, and a one-move lookahead: native, many games per call, without the GIL.

    alpha_beta(games, depth, seeds, threads) -> [(move, score), …]
    material_moves(games, seeds) -> [move, …]

The games are not changed, must not be over and must have both kings. native/alpha_beta.h defines the search.
A seed breaks ties between equal moves.
"""

from keisei._native import alpha_beta, material_moves

__all__ = ["alpha_beta", "material_moves"]
