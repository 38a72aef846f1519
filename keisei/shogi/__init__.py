"""Shogi: the game, its notation and its records. Needs no torch."""

from keisei._native import START_SFEN, Move, NotationError, RulesError
from keisei.shogi.outcome import Color, Outcome, Reason
from keisei.shogi.perft_counts import perft
from keisei.shogi.records import (
    GameRecord,
    read_csa,
    read_csa_games,
    read_ki2,
    read_kif,
    read_record,
    read_records,
    read_usi,
    read_usi_games,
    write_csa,
    write_csa_games,
    write_kif,
    write_record,
    write_usi,
)
from keisei.shogi.shogi_game import ShogiGame

__all__ = [
    "START_SFEN",
    "Color",
    "GameRecord",
    "Move",
    "NotationError",
    "Outcome",
    "Reason",
    "RulesError",
    "ShogiGame",
    "perft",
    "read_csa",
    "read_csa_games",
    "read_ki2",
    "read_kif",
    "read_record",
    "read_records",
    "read_usi",
    "read_usi_games",
    "write_csa",
    "write_csa_games",
    "write_kif",
    "write_record",
    "write_usi",
]
