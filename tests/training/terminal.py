"""A minimal terminal: it shows text and obeys the few commands that rich sends."""

import re

from rich.cells import cell_len

TOKEN = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|\x1b\][^\x07]*\x07|(.)", re.DOTALL)
BEGUN = re.compile(r"\x1b(\[[\d;?]*|\][^\x07]*)?$")  # an incomplete command


class Terminal:
    """Rows of cells; a wide character takes two, the second one empty."""

    def __init__(self, columns: int, rows: int) -> None:
        self.cursor_shown = True
        self.columns, self.rows = columns, rows
        self._x = self._y = 0
        self._lines: list[list[str]] = [[]]
        self._rest = ""

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; rows that are now too long are wrapped, as most terminals do."""
        self.columns, self.rows = columns, rows
        broken = [
            line[begin : begin + columns]
            for line in self._lines
            for begin in range(0, max(len(line), 1), columns)
        ]
        self._lines = broken[-rows:]
        self._y = len(self._lines) - 1

    @property
    def text(self) -> str:
        """What the user sees."""
        return "\n".join("".join(line).rstrip() for line in self._lines)

    def feed(self, output: str) -> None:
        """Process a program's output."""
        output = self._rest + output
        begun = BEGUN.search(output)
        self._rest = begun.group() if begun else ""
        for arguments, command, character in TOKEN.findall(output.removesuffix(self._rest)):
            if character:
                self._put(character)
            elif command:
                self._obey(arguments, command)

    def _put(self, character: str) -> None:
        if character == "\r":
            self._x = 0
        elif character == "\n":
            self._y += 1
            if self._y == self.rows:
                self._y -= 1
                del self._lines[0]
            while len(self._lines) <= self._y:
                self._lines.append([])
        else:
            width = cell_len(character)
            if self._x + width > self.columns:
                self._put("\r")
                self._put("\n")
            line = self._lines[self._y]
            line += [" "] * (self._x + width - len(line))
            line[self._x : self._x + width] = [character, ""][:width]
            self._x += width

    def _obey(self, arguments: str, command: str) -> None:
        if command in "hl" and arguments == "?25":
            self.cursor_shown = command == "h"
        elif command == "A":
            self._y = max(self._y - int(arguments or 1), 0)
        elif command == "K":
            self._lines[self._y] = []
        elif command == "J":
            self._clear()
        elif command == "H":
            self._x = self._y = 0
        else:
            assert command == "m", f"unknown command {arguments}{command}"

    def _clear(self) -> None:
        self._lines = [[]]
        self._x = self._y = 0
