"""Shared by the tests of analysis: positions, and an analysis made by hand."""

from keisei.analysis.game_analysis import GameAnalysis, PositionValue, ReviewedMove
from keisei.shogi import Color, GameRecord, Move

GOLD_MATES = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"  # with G*5b
DECLARABLE = "+P+P+P+PK+P+P+P+R/7+BR/9/9/9/9/9/9/4k4 b 6P 1"  # Black has 28 points
SHUFFLE = "2h3h 8b7b 3h2h 7b8b " * 3  # the fourth occurrence of the start position


def moves(text: str) -> tuple[Move, ...]:
    return tuple(Move.from_usi(word) for word in text.split())


RECORD = GameRecord(moves("7g7f 3c3d 8h2b+"), comments={1: "well known"}, seconds=(1, 2, 3))
RATES = [0.5, 0.5, 0.8, 0.3]  # of the side to move: Black's is 50, 50, 80 and 70
LINES = ["7g7f 3c3d", "8c8d 2g2f 8d8e", "8h2b+", "3a2b"]


def made(rates: list[float], network: str = "first@100") -> GameAnalysis:
    values = [
        PositionValue(Color(number % 2), rate, None, moves(line))
        for number, (rate, line) in enumerate(zip(rates, LINES, strict=True))
    ]
    reviewed = [
        ReviewedMove(number, *three)
        for number, three in enumerate(zip(RECORD.moves, values, values[1:], strict=False), 1)
    ]
    return GameAnalysis(network, 400, tuple(reviewed), tuple(values))


FIRST = made(RATES)
SECOND = made([0.1, 0.9, 0.1, 0.9], "second@7")
