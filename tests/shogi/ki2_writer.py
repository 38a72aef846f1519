"""A writer of KI2, made from the rules of the Japan Shogi Association alone, to check the reader with.

Which piece moves is told by the fewest words: how it moves (上 寄 引), else 直, else its side, else both.
"""

from keisei.shogi import Color, GameRecord, Move, ShogiGame

FILES, RANKS = "０１２３４５６７８９", "〇一二三四五六七八九"
NAMES = dict(
    zip(
        ["P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", "+B", "+R"],
        ["歩", "香", "桂", "銀", "金", "角", "飛", "玉", "と", "成香", "成桂", "成銀", "馬", "龍"],
        strict=True,
    )
)


def write_ki2(record: GameRecord, *, per_line: int = 6) -> str:
    """Return the moves of a record from the start position."""
    game = ShogiGame(record.sfen, max_moves=None, declaration="off")
    texts, last = [], ""
    for move in record.moves:
        texts.append("▲△"[game.turn] + ki2_move(game, move, last))
        game.push(move)
        last = move.to_square
    rows = [texts[start : start + per_line] for start in range(0, len(texts), per_line)]
    return "\n".join("    ".join(row) for row in rows) + "\n"


def ki2_move(game: ShogiGame, move: Move, last: str) -> str:
    kind = move.dropped or piece_on(game, str(move.from_square))
    others = [
        str(other.from_square)
        for other in game.legal_moves()
        if other.to_square == move.to_square
        and other.from_square not in (None, move.from_square)
        and piece_on(game, str(other.from_square)) == kind
    ]
    place = FILES[int(move.to_square[0])] + RANKS["_abcdefghi".index(move.to_square[1])]
    place = "同　" if move.to_square == last else place
    if move.from_square is None:
        return f"{place}{NAMES[kind]}{'打' if others else ''}"
    words = "" if not others else which(kind, move.from_square, set(others), move.to_square, game.turn)
    return f"{place}{NAMES[kind]}{words}{promotion(game, move, kind)}"


def piece_on(game: ShogiGame, square: str) -> str:
    return str(game.piece_at(square)).upper()


def promotion(game: ShogiGame, move: Move, kind: str) -> str:
    if move.promotes:
        return "成"
    far = "abc" if game.turn is Color.BLACK else "ghi"
    may = kind in "PLNSBR" and (str(move.from_square)[1] in far or move.to_square[1] in far)
    return "不成" if may else ""


def which(kind: str, start: str, others: set[str], to: str, turn: Color) -> str:
    def steps(square: str) -> tuple[int, int]:
        """Return how far a piece goes ahead and to the right."""
        sign = 1 if turn is Color.BLACK else -1
        return sign * (ord(square[1]) - ord(to[1])), sign * (int(square[0]) - int(to[0]))

    def way(square: str) -> str:
        ahead = steps(square)[0]
        return "上" if ahead > 0 else "引" if ahead < 0 else "寄"

    if way(start) not in {way(other) for other in others}:
        return way(start)
    if kind not in ("+B", "+R") and steps(start) == (1, 0):
        return "直"
    own = steps(start)[1]  # positive: it comes from the left
    if kind in ("+B", "+R"):
        (other,) = others
        return "左" if own > steps(other)[1] else "右"
    side = "左" if own > 0 else "右"
    alone = all(own * steps(other)[1] <= 0 for other in others)
    return side if alone else side + way(start)
