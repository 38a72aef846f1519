"""Draw a run's console as it looked at some step: python scripts/draw_console.py RUN docs/console.svg

RUN is a directory with metrics.jsonl and a checkpoint, which supplies the board. rich can export SVG too, but
counts characters where a terminal counts cells, which crushes a board of wide characters.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import rich.console
import yaml
from rich.cells import cell_len
from rich.color import Color, blend_rgb
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME

from keisei.errors import UserError
from keisei.runs.checkpoint import newest_checkpoint
from keisei.shogi.vector import VectorGames
from keisei.training.dashboard import draw
from keisei.training.listener import RunFacts
from keisei.training.metrics import read_metrics
from keisei.training.parallel.worker_status import WorkerStatus
from keisei.training.run_progress import Progress

WIDTH, HEIGHT = 118, 36
CELL, ROW, MARGIN = 12, 24, 16  # pixels of a narrow character's cell and around the screen
BASELINE = 18  # of letters, from the top of a row
NARROW, WIDE = 20, 22  # font sizes: 0.6 of the first is a cell, the second leaves air in two
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
WIDE_FONTS = (
    "'Noto Sans CJK JP', 'Noto Sans JP', 'Hiragino Sans', 'Yu Gothic', 'MS Gothic', 'IPAGothic', sans-serif"
)
# From the upper left corner of a cell. Lines and blocks are drawn: as letters they would leave gaps in some
# fonts.
LINES = {
    "─": f"m0 {ROW // 2}h{CELL}",
    "━": f"m0 {ROW // 2}h{CELL}",
    "│": f"m{CELL // 2} 0v{ROW}",
    "╭": "m6 24v-6q0 -6 6 -6",
    "╮": "m0 12q6 0 6 6v6",
    "╰": "m6 0v6q0 6 6 6",
    "╯": "m0 12q6 0 6 -6v-6",
}
THICK = {"━"}


def workers_in(row: Mapping[str, float]) -> list[WorkerStatus]:
    """Return the workers in an update's metrics, all as "playing": their state is not recorded."""
    found: list[WorkerStatus] = []
    while f"worker_{len(found)}/steps" in row:
        prefix = f"worker_{len(found)}/"
        own = {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
        found.append(
            WorkerStatus(
                worker=len(found),
                state="playing",
                incarnation=int(own["restarts"]),
                pid=None,
                utilization=own["utilization"],
                steps=int(own["steps"]),
                games=int(own["games"]),
                weights_version=int(own["weights_version"]),
                restarts=int(own["restarts"]),
                memory_bytes=int(own["memory_bytes"]),
                last_error="",
            )
        )
    return found


def block(character: str) -> tuple[float, float] | None:
    """Return the width and height of a block in shares of a cell, from its lower left corner; else None."""
    code = ord(character)
    if 0x2581 <= code <= 0x2588:  # ▁ to █
        return 1, (code - 0x2580) / 8
    if 0x2589 <= code <= 0x258F:  # ▉ to ▏
        return (0x2590 - code) / 8, 1
    return None


@dataclass
class Ink:
    """What is drawn in one style: letters with the middle of their cells, lines and blocks as paths."""

    letters: list[tuple[float, int, str]] = field(default_factory=list)  # x, row, character
    wide: list[tuple[float, int, str]] = field(default_factory=list)
    thin: list[str] = field(default_factory=list)
    thick: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)

    def add(self, character: str, column: int, row: int) -> None:
        """Draw a character whose first cell is in this column."""
        cells = cell_len(character)
        x, y = column * CELL, row * ROW
        if character in LINES:
            (self.thick if character in THICK else self.thin).append(f"M{x} {y}{LINES[character]}")
        elif shape := block(character):
            width, height = shape[0] * CELL, shape[1] * ROW
            self.blocks.append(f"M{x} {y + ROW - height:g}h{width:g}v{height:g}h-{width:g}z")
        elif not character.isspace():
            (self.wide if cells == 2 else self.letters).append((x + cells * CELL / 2, row, character))


def color_of(style: Style) -> str:
    """Return a style's foreground, dimmed as a terminal would."""
    color = (style.color or Color.default()).get_truecolor(THEME)
    return (blend_rgb(color, THEME.background_color, 0.4) if style.dim else color).hex


def draw_svg(lines: Iterable[Iterable[Segment]], width: int, height: int) -> str:
    """Return a screen of so many columns and rows as an SVG.

    Every character has its own x, the middle of its one or two cells, so columns line up in any font, also
    where a wide character is not twice as wide as a narrow one.
    """
    inks: defaultdict[tuple[str, bool], Ink] = defaultdict(Ink)
    for row, line in enumerate(lines):
        column = 0
        for text, style, _ in line:
            ink = inks[color_of(style or Style.null()), bool(style and style.bold)]
            for character in text:
                ink.add(character, column, row)
                column += cell_len(character)
    size = (width * CELL + 2 * MARGIN, height * ROW + 2 * MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" text-anchor="middle">',
        f"<style>text{{font:{NARROW}px {FONTS}}}.w{{font:{WIDE}px {WIDE_FONTS}}}"
        ".b{font-weight:bold}</style>",
        f'<rect width="{size[0]}" height="{size[1]}" rx="10" fill="{THEME.background_color.hex}"/>',
        f'<g transform="translate({MARGIN} {MARGIN})">',
    ]
    for (color, bold), ink in inks.items():
        parts += _drawn(ink, color, bold)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _drawn(ink: Ink, color: str, bold: bool) -> list[str]:
    """Return the elements of one style; its blocks share a path, so that no seams show between them."""
    parts = [f'<path fill="{color}" d="{"".join(ink.blocks)}"/>'] if ink.blocks else []
    for strokes, thickness in ((ink.thin, 1.5), (ink.thick, 4)):
        if strokes:
            parts.append(
                f'<path fill="none" stroke="{color}" stroke-width="{thickness}" d="{"".join(strokes)}"/>'
            )
    for letters, kind in ((ink.letters, ""), (ink.wide, "w")):
        classes = " ".join([kind] * bool(kind) + ["b"] * bold)
        attributes = (f' class="{classes}"' if classes else "") + (' xml:lang="ja"' if kind else "")
        for row in sorted({row for _, row, _ in letters}):
            there = [(x, character) for x, its_row, character in letters if its_row == row]
            xs = " ".join(f"{x:g}" for x, _ in there)
            text = escape("".join(character for _, character in there), quote=False)
            parts.append(
                f'<text x="{xs}" y="{row * ROW + BASELINE}" fill="{color}"{attributes}>{text}</text>'
            )
    return parts


def main() -> int:
    """Read the command line and write the picture; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--at", type=float, default=0.6, help="share of the run that is done (default 0.6)")
    arguments = parser.parse_args()
    try:
        draw_run(arguments.run, arguments.out, arguments.at)
    except UserError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


def draw_run(run: Path, out: Path, share: float) -> None:
    """Draw what the console showed when this share of a run was done."""
    if not 0 < share <= 1:
        raise UserError(f"--at is {share}, expected a share above 0, up to 1")
    if not out.parent.is_dir():
        raise UserError(f"cannot draw {out}: there is no directory {out.parent}")
    checkpoint, _ = newest_checkpoint(run / "checkpoints")
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    seed = json.loads((run / "run.json").read_text(encoding="utf-8"))["seed"]
    total = config["training"]["total_timesteps"]
    parameters = sum(tensor.numel() for tensor in checkpoint.tensors["weights"].values())
    facts = RunFacts(str(run), total, 0, parameters, "cpu", seed)

    seconds = 0.0
    progress = Progress(facts, lambda: seconds)
    for row in read_metrics(run / "metrics.jsonl"):
        step = int(row.pop("step"))
        if step > share * total:
            break
        seconds += sum(value for name, value in row.items() if name.startswith("time/"))
        progress.update(step, row, workers_in(row))
    games = VectorGames.restore(checkpoint.blobs["games_0"])
    boards = [str(games.game(index)) for index in range(len(games))]
    console = rich.console.Console(width=WIDTH, height=HEIGHT, force_terminal=True, emoji=False)
    lines = console.render_lines(draw(progress, boards, [], WIDTH, HEIGHT), pad=False)
    out.write_text(draw_svg(lines, WIDTH, len(lines)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
