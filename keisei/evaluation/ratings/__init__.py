"""Elo ratings with intervals, sequential tests, and who should play next."""
