"""Analysis of finished games: what a network thinks of every position. Never torch, on a CPU."""
