"""The picture of the console: every character has the cells that it has in a terminal."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

from rich.segment import Segment
from rich.style import Style

from keisei.shogi import ShogiGame

SVG = "{http://www.w3.org/2000/svg}"


def draw_console() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts" / "draw_console.py"
    spec = importlib.util.spec_from_file_location("draw_console", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = draw_console()


def letters(svg: str) -> list[tuple[int, float, str]]:
    """Every letter with its row and the middle of its cells, in columns."""
    found = []
    for element in ET.fromstring(svg).iter(f"{SVG}text"):
        row = (int(element.attrib["y"]) - SCRIPT.BASELINE) // SCRIPT.ROW
        xs = [float(x) / SCRIPT.CELL for x in element.attrib["x"].split()]
        found += [(row, x, letter) for x, letter in zip(xs, element.text or "", strict=True)]
    return sorted(found)


def test_a_wide_character_is_two_cells_wide() -> None:
    line = [Segment("a 歩", Style(bold=True)), Segment("v金<"), Segment("&", Style(dim=True))]
    svg = SCRIPT.draw_svg([line, [Segment("形勢|")]], 10, 2)
    assert letters(svg) == [
        (0, 0.5, "a"),
        (0, 3.0, "歩"),
        (0, 4.5, "v"),
        (0, 6.0, "金"),
        (0, 7.5, "<"),
        (0, 8.5, "&"),
        (1, 1.0, "形"),
        (1, 3.0, "勢"),
        (1, 4.5, "|"),
    ]
    root = ET.fromstring(svg)
    assert root.attrib["text-anchor"] == "middle"  # x is the middle, whatever the font's widths
    sizes = {
        letter: "w" in element.attrib.get("class", "").split()
        for element in root.iter(f"{SVG}text")
        for letter in element.text or ""
    }
    assert [sizes[letter] for letter in "a歩v形"] == [False, True, False, True]


def test_the_ranks_of_a_board_end_in_one_column() -> None:
    board = str(ShogiGame()).splitlines()
    drawn = letters(SCRIPT.draw_svg([[Segment(line)] for line in board], 40, len(board)))
    borders = [x for _, x, letter in drawn if letter == "|"]
    assert sorted(borders) == [0.5] * 9 + [28.5] * 9


def test_lines_and_blocks_are_drawn_and_not_written() -> None:
    svg = SCRIPT.draw_svg([[Segment("╭─━│╯"), Segment("█▄▌", Style(color="red"))]], 8, 1)
    assert letters(svg) == []
    paths = [path.attrib for path in ET.fromstring(svg).iter(f"{SVG}path")]
    assert [path.get("stroke-width") for path in paths] == ["1.5", "4", None]
    assert paths[2]["d"] == "M60 0h12v24h-12zM72 12h12v12h-12zM84 0h6v24h-6z"
