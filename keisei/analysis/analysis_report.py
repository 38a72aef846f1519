"""An analysis as text: a table of the moves, a graph of the win rate, and comments for the record."""

from collections.abc import Sequence

from keisei.analysis.game_analysis import GameAnalysis, PositionValue, ReviewedMove
from keisei.shogi import Color, GameRecord, ShogiGame
from keisei.shogi.records.kif import kif_move

_MARKS = {Color.BLACK: "☗", Color.WHITE: "☖"}
_LINE = 6  # moves of a line that are shown
POINTS = "*o"  # of the first and the second network
_HEIGHT = 10  # of the graph, in rows of ten percent


def percent(rate: float) -> str:
    """Return a rate such as "54 %"."""
    return f"{100 * rate:.0f} %"


def table(analyses: Sequence[GameAnalysis], missed: float) -> list[str]:
    """Return a line for each move: the win rates before it, what it lost, and the better move if missed.

    missed: the loss from which a better move counts as missed, 0 to 1. A second network adds its win rate
    and its best move.
    """
    first, others = analyses[0], analyses[1:]
    heading = f"{'move':>4} {'':8} {'Black':>6} {'mover':>6} {'lost':>5}"
    heading += "".join(f"  {POINTS[1]} {'Black':>5} {'move':6}" for _ in others)
    lines = [f"{heading}  better"]
    for index, move in enumerate(first.moves):
        text = f"{move.number:4} {_MARKS[move.side]}{move.move!s:7}"
        text += f" {percent(move.before.win_rate_of(Color.BLACK)):>6} {percent(move.before.win_rate):>6}"
        text += f" {round(100 * move.loss) or '':>5}"
        for other in others:
            before = other.moves[index].before
            text += f"    {percent(before.win_rate_of(Color.BLACK)):>5} {_best(before):6}"
        better = f"  {_better(move)}" if move.loss >= missed else ""
        lines.append(f"{text}{better}".rstrip())
    return lines


def summary(analysis: GameAnalysis, missed: float) -> list[str]:
    """Return a line for each side: what it lost on average, and how many moves it missed."""
    lines = []
    for side in Color:
        losses = [move.loss for move in analysis.moves if move.side is side]
        if losses:
            average = 100 * sum(losses) / len(losses)
            count = sum(loss >= missed for loss in losses)
            best = sum(move.is_best for move in analysis.moves if move.side is side)
            lines.append(
                f"{_MARKS[side]}{side}: {best} of {len(losses)} moves are the network's own, "
                f"{count} missed a better one, {average:.1f} points lost on average"
            )
    return lines


def graph(analyses: Sequence[GameAnalysis], width: int = 72) -> list[str]:
    """Return Black's win rate over the game as a picture of characters, at most `width` columns wide."""
    curves = [analysis.black_win_rates for analysis in analyses]
    last = len(curves[0]) - 1
    columns = max(1, min(width - 8, last + 1))
    # The position that each column shows; a game of one position has one.
    shown = [round(column * last / max(1, columns - 1)) for column in range(columns)]
    rows = [[" "] * columns for _ in range(_HEIGHT + 1)]
    rows[_HEIGHT // 2] = ["-"] * columns
    for points, curve in reversed(list(zip(POINTS, curves, strict=False))):
        for column, position in enumerate(shown):
            rows[_HEIGHT - round(_HEIGHT * curve[position])][column] = points
    lines = [
        f"{percent(1 - row / _HEIGHT) if row % (_HEIGHT // 2) == 0 else '':>6} |{''.join(cells)}".rstrip()
        for row, cells in enumerate(rows)
    ]
    ends = f"0{last:>{columns - 1}}" if columns > len(str(last)) else "0"
    return [*lines, f"{'':7}+{'-' * columns}", f"{'':8}{ends}"]


def commented(record: GameRecord, analysis: GameAnalysis, missed: float) -> GameRecord:
    """Return the record with Black's win rate after each move, and better moves, added to its comments."""
    comments = dict(record.comments)
    opening = f"{analysis.network}, {analysis.visits} visits: Black's win rate is"
    _add(comments, 0, f"{opening} {percent(analysis.black_win_rates[0])}")
    game = ShogiGame(record.sfen, max_moves=None)
    for move in analysis.moves:
        _add(comments, move.number, f"Black's win rate {percent(move.after.win_rate_of(Color.BLACK))}")
        if move.loss >= missed:
            lost = f"{str(move.side).capitalize()} lost {round(100 * move.loss)} points"
            _add(comments, move.number, f"{lost}; better: {_kif_line(game, move.before)}")
        game.push(move.move)
    return GameRecord(
        record.moves,
        record.sfen,
        record.black,
        record.white,
        record.outcome,
        comments,
        record.seconds,
        record.headers,
    )


def _add(comments: dict[int, str], number: int, line: str) -> None:
    comments[number] = f"{comments[number]}\n{line}" if number in comments else line


def _best(value: PositionValue) -> str:
    return str(value.line[0]) if value.line else "declare"


def _better(move: ReviewedMove) -> str:
    if not move.before.line:
        return "declare"
    mate = move.before.mate
    proven = f" (mate in {mate})" if mate is not None and mate > 0 else ""
    return " ".join(map(str, move.before.line[:_LINE])) + proven


def _kif_line(game: ShogiGame, value: PositionValue) -> str:
    """Return a line of play in Japanese, as its readers expect it in a KIF record."""
    if not value.line:
        return "宣言 (declare)"
    trial, texts, last = game.copy(), [], ""
    for move in value.line[:_LINE]:
        texts.append(f"{'▲△'[trial.turn]}{kif_move(trial, move, last)}")
        trial.push(move)
        last = move.to_square
    return " ".join(texts)
