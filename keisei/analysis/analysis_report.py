"""An analysis as text: a table of the moves, a graph of the win rate, and comments for the record."""

from collections.abc import Sequence

from keisei.analysis.game_analysis import GameAnalysis, PositionValue, ReviewedMove
from keisei.language import ENGLISH, Speaker, padded
from keisei.shogi import Color, GameRecord, ShogiGame
from keisei.shogi.records.kif import kif_move

_MARKS = {Color.BLACK: "☗", Color.WHITE: "☖"}
_LINE = 6  # moves of a line that are shown
POINTS = "*o"  # of the first and the second network
_HEIGHT = 10  # of the graph, in rows of ten percent


def percent(rate: float) -> str:
    """Return a rate such as "54 %"."""
    return f"{100 * rate:.0f} %"


def table(
    record: GameRecord, analyses: Sequence[GameAnalysis], missed: float, speaker: Speaker = ENGLISH
) -> list[str]:
    """Return a line for each move: the win rates before it, what it lost, and the better move if missed.

    missed: the loss from which a better move counts as missed, 0 to 1. A second network adds its win rate
    and its best move.
    """
    first, others = analyses[0], analyses[1:]
    width = 7 if speaker == ENGLISH else 14  # of a move
    name = {key: speaker(f"analysis.{key}") for key in ("move", "black", "mover", "lost", "best", "better")}
    heading = f"{padded(name['move'], 4, right=True)} {'':{width + 1}}"
    for key, columns in (("black", 6), ("mover", 6), ("lost", 5)):
        heading += f" {padded(name[key], columns, right=True)}"
    for _ in others:
        heading += f"  {POINTS[1]} {padded(name['black'], 5, right=True)} {padded(name['best'], width - 1)}"
    lines = [f"{heading}  {name['better']}"]
    game = ShogiGame(record.sfen, max_moves=None)
    for index, move in enumerate(first.moves):
        shown = f"{_MARKS[move.side]}{move.move}" if speaker == ENGLISH else speaker.move(game, move.move)
        text = f"{move.number:4} {padded(shown, width + 1)}"
        text += f" {percent(move.before.win_rate_of(Color.BLACK)):>6} {percent(move.before.win_rate):>6}"
        text += f" {round(100 * move.loss) or '':>5}"
        for other in others:
            before = other.moves[index].before
            best = padded(_line(game, before, 1, speaker), width - 1)
            text += f"    {percent(before.win_rate_of(Color.BLACK)):>5} {best}"
        better = f"  {_better(game, move, speaker)}" if move.loss >= missed else ""
        lines.append(f"{text}{better}".rstrip())
        game.push(move.move)
    return lines


def summary(analysis: GameAnalysis, missed: float, speaker: Speaker = ENGLISH) -> list[str]:
    """Return a line for each side: what it lost on average, and how many moves it missed."""
    lines = []
    for side in Color:
        losses = [move.loss for move in analysis.moves if move.side is side]
        if losses:
            line = speaker(
                "analysis.summary",
                side=speaker.side(side),
                best=sum(move.is_best for move in analysis.moves if move.side is side),
                moves=len(losses),
                missed=sum(loss >= missed for loss in losses),
                average=f"{100 * sum(losses) / len(losses):.1f}",
            )
            lines.append(f"{_MARKS[side]}{line}")
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


def commented(
    record: GameRecord, analysis: GameAnalysis, missed: float, speaker: Speaker = ENGLISH
) -> GameRecord:
    """Return the record with Black's win rate after each move, and better moves, added to its comments."""
    comments = dict(record.comments)
    opening = {"network": analysis.network, "visits": analysis.visits}
    rate = percent(analysis.black_win_rates[0])
    _add(comments, 0, speaker("analysis.opening comment", **opening, rate=rate))
    game = ShogiGame(record.sfen, max_moves=None)
    for move in analysis.moves:
        rate = percent(move.after.win_rate_of(Color.BLACK))
        _add(comments, move.number, speaker("analysis.comment", rate=rate))
        if move.loss >= missed:
            line = speaker(
                "analysis.missed comment",
                side=speaker.side(move.side).capitalize(),
                points=round(100 * move.loss),
                line=_kif_line(game, move.before),
            )
            _add(comments, move.number, line)
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


def _line(game: ShogiGame, value: PositionValue, length: int, speaker: Speaker) -> str:
    """Return the best moves of a position."""
    return speaker.line(game, value.line[:length]) if value.line else speaker("declare")


def _better(game: ShogiGame, move: ReviewedMove, speaker: Speaker) -> str:
    mate = move.before.mate
    proven = f" ({speaker('mate', plies=mate)})" if mate is not None and mate > 0 else ""
    return f"{_line(game, move.before, _LINE, speaker)}{proven}"


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
