"""Game-tree search: PUCT, alpha-beta and mate search. Needs keisei.shogi and numpy, never torch."""
