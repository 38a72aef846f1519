"""Shared by the record tests: positions, one game in every format, random games."""

from conftest import random_play

from keisei.shogi import START_SFEN, Color, GameRecord, Move, Outcome, Reason, RulesError, ShogiGame

BLACK, WHITE = Color.BLACK, Color.WHITE
SHUFFLE = ["2h3h", "8b7b", "3h2h", "7b8b"] * 3  # the fourth occurrence of the start position
DRAGON_CHECKS = "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1"
PERPETUAL = ["5a4a", "5d4d", "4a5a", "4d5d"] * 3
GOLD_MATES = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"  # with G*5b
STALEMATED = "k8/9/1+R7/9/9/9/9/9/4K4 w - 1"  # White has no move and is not in check
DECLARABLE = "+P+P+P+PK+P+P+P+R/7+BR/9/9/9/9/9/9/4k4 b 6P 1"  # Black has 28 points
EVERY_PIECE = "lnsgkgsnl/9/ppppppppp/9/+P+L+N+S4+p/1+B5+r1/9/9/4K4 b R2Pb2gsnl5p 1"


def moves(text: str) -> tuple[Move, ...]:
    return tuple(Move.from_usi(word) for word in text.split())


def usi(record: GameRecord) -> str:
    return " ".join(map(str, record.moves))


def without_pieces(squares: str) -> str:
    """Return the SFEN of a handicap: the start without White's pieces on these squares, White to move."""
    rows = [list("lnsgkgsnl"), list(".r.....b.")]
    for square in squares.split():
        rows["ab".index(square[1])][9 - int(square[0])] = "."
    text = "/".join("".join(row) for row in rows)
    for gap in range(9, 0, -1):
        text = text.replace("." * gap, str(gap))
    return f"{text}/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"


# The contents of tests/data/exchange.csa and exchange.kif.
EXCHANGE = GameRecord(
    moves=moves("7g7f 3c3d 8h2b+ 3a2b B*4e"),
    black="Engine, first",
    white="エンジン　二号",
    outcome=Outcome(BLACK, Reason.RESIGNATION),
    comments={0: "before the first move", 3: "takes, and promotes\n\n two lines below an empty one"},
    seconds=(12, 6, 0, 3, 125),
)

SHOWN = [  # start, moves, what the position shows, its words in CSA and KIF
    (GOLD_MATES, "G*5b", Outcome(BLACK, Reason.CHECKMATE), "TSUMI", "詰み"),
    (STALEMATED, "", Outcome(BLACK, Reason.NO_LEGAL_MOVE), "TSUMI", "詰み"),
    (START_SFEN, " ".join(SHUFFLE), Outcome(None, Reason.REPETITION), "SENNICHITE", "千日手"),
    (
        DRAGON_CHECKS,
        " ".join(PERPETUAL),
        Outcome(WHITE, Reason.PERPETUAL_CHECK),
        "+ILLEGAL_ACTION",
        "反則勝ち",
    ),
]

FIRST_MOVES = "PI\n+\n+7776FU\n-3334FU\n"  # in CSA

# EVERY_PIECE: its board in CSA, and the whole position in KIF.
ROWS = """\
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 *  *  *  *  *  *  *  *  *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5+TO+NY+NK+NG *  *  *  * -TO
P6 * +UM *  *  *  *  * -RY *
P7 *  *  *  *  *  *  *  *  *
P8 *  *  *  *  *  *  *  *  *
P9 *  *  *  * +OU *  *  *  *
"""
BOD = """\
後手の持駒：角　金二　銀　桂　香　歩五
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
|v香v桂v銀v金v玉v金v銀v桂v香|一
| ・ ・ ・ ・ ・ ・ ・ ・ ・|二
|v歩v歩v歩v歩v歩v歩v歩v歩v歩|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| と 杏 圭 全 ・ ・ ・ ・vと|五
| ・ 馬 ・ ・ ・ ・ ・v龍 ・|六
| ・ ・ ・ ・ ・ ・ ・ ・ ・|七
| ・ ・ ・ ・ ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ 玉 ・ ・ ・ ・|九
+---------------------------+
先手の持駒：飛　歩二
"""

RICH = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"  # random play soon ends in mate here
ENDINGS = ["unfinished", "resignation", "maximum length", "repetition", "mate"]


def is_quiet(game: ShogiGame, move: Move) -> bool:
    return move.from_square is not None and not move.promotes and game.piece_at(move.to_square) is None


def shuffle(game: ShogiGame) -> None:
    """Move a piece of each side back and forth until the position repeats, if possible."""
    for first in filter(lambda move: is_quiet(game, move), game.legal_moves()):
        trial = game.copy()
        trial.push(first)
        for second in filter(lambda move: is_quiet(trial, move), trial.legal_moves()):
            back = [f"{move.to_square}{move.from_square}" for move in (first, second)]
            try:
                for move in [str(first), str(second), *back] * 3:
                    game.push(move)
            except RulesError:
                while len(game.history) >= len(trial.history):
                    game.pop()
            else:
                return


def random_game(seed: int, earlier_plies: int, plies: int, ending: str) -> ShogiGame:
    """Return a random game from a random position that ends in this way unless the rules end it first."""
    *_, before = random_play(seed, earlier_plies, RICH if ending == "mate" else None)
    *_, played = random_play(seed + 1, 400 if ending == "mate" else plies, before.sfen())
    max_moves = max(1, played.ply) if ending == "maximum length" else None
    game = ShogiGame(played.start_sfen, max_moves=max_moves, declaration="off")
    for move in played.history:
        game.push(move)
    if ending == "repetition" and game.outcome() is None:
        shuffle(game)
    if ending == "resignation" and game.outcome() is None:
        game.resign()
    return game
