"""Keisei (形勢): shogi self-play training."""
