"""How the dashboard's panels share a terminal: rows of each, and how many boards there are beside them.

What does not fit is dropped, the boards first. Spare rows make the panels taller, spare columns show more
games.
"""

from dataclasses import dataclass

CURVES = 6  # rows that the learning panel needs
BOARD_WIDTH, BOARD_HEIGHT = 37, 18  # of its panel: 33 columns of board, 16 rows with both hands
PANELS_WIDTH = 80  # what the panels keep beside a board
ANOTHER_BOARD = 56  # columns for each further board: the panels get a third of them
ROOMY = 30  # rows needed to afford a blank one
NOTICES = 5
UPPER_ROWS = CURVES + 2  # minimum, like the two below
LOWER_ROWS = 5  # two borders and three rows
WORKER_ROWS = 3  # two borders and a row


@dataclass(frozen=True)
class PanelLayout:
    """Rows of the upper and lower panels, the workers and the notices; columns and rows of boards."""

    upper_rows: int
    lower_rows: int
    worker_rows: int
    notice_rows: int
    board_columns: int
    board_rows: int

    @property
    def middle_rows(self) -> int:
        """The height of all panels but the notices."""
        return self.upper_rows + self.lower_rows + self.worker_rows

    @property
    def boards(self) -> int:
        """How many boards fit."""
        return self.board_columns * self.board_rows

    @classmethod
    def of(cls, width: int, height: int, workers: int = 0) -> "PanelLayout":
        """Return the layout for a terminal; its last row stays free for the cursor."""
        room = height - 1 - (4 if height >= ROOMY else 3)
        worker_rows = _worker_rows(room, workers)
        room -= worker_rows
        # With workers the lower panels give up rows, so that the notice of a dead worker is visible.
        lower_before_notices = LOWER_ROWS if worker_rows else 8
        notices = min(NOTICES, max(room - UPPER_ROWS - lower_before_notices - 2, 0))
        room -= notices + 2 if notices else 0
        lower = min(max(room - UPPER_ROWS, 0), max(10, room // 3))
        lower = lower if lower >= LOWER_ROWS else 0
        upper = max(room - lower, UPPER_ROWS)
        board_columns = board_rows = 0
        if width >= PANELS_WIDTH + BOARD_WIDTH and notices == NOTICES:
            board_columns = max((width - PANELS_WIDTH) // ANOTHER_BOARD, 1)
            board_rows = (upper + lower + worker_rows) // BOARD_HEIGHT
        return cls(upper, lower, worker_rows, notices, board_columns, board_rows)

    def grid(self, boards: int) -> tuple[int, int]:
        """Return the columns and rows that so many boards fill, 0 and 0 if there is no room for them."""
        columns = min(self.board_columns, boards) if self.board_rows else 0
        return (columns, min(self.board_rows, boards // columns)) if columns else (0, 0)


def _worker_rows(room: int, workers: int) -> int:
    """Return the height of the workers' panel: at most a third of the room, and what the others can spare."""
    if not workers:
        return 0
    wanted = min(workers + 2, max(room // 3, 4))
    left = room - UPPER_ROWS - LOWER_ROWS
    beside_notice = left - 3  # two borders and one notice
    rows = min(wanted, beside_notice if beside_notice >= min(wanted, 4) else left)
    return rows if rows >= WORKER_ROWS else 0
