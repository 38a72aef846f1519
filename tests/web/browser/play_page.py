"""The play page as a person uses it: by presses or by keys, at a table that is closed at the end."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from playwright.sync_api import expect
from web_fixtures import PATIENCE_MS
from web_server import Web

from keisei.search.alpha_beta import alpha_beta
from keisei.shogi import ShogiGame

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

RANKS = "abcdefghi"
expect.set_options(timeout=PATIENCE_MS)


class PlayPage:
    """A page and the site it is on."""

    def __init__(self, page: "Page", site: Web) -> None:
        self.page, self.site = page, site

    def set_up(self, sfen: str | None = None, *, opponent: str = "random", side: str = "black") -> None:
        """Open the form of a new game and fill it."""
        self.page.goto(f"{self.site.base}/play" + (f"?sfen={quote(sfen)}" if sfen else ""))
        self.page.locator("[name=opponent]").select_option(self.site.player(opponent))
        self.page.locator(f"[name=side][value={side}]").check(force=True)  # its text lies over it

    def start(self, sfen: str | None = None, *, opponent: str = "random", side: str = "black") -> None:
        """Begin a game, until the board is there."""
        self.set_up(sfen, opponent=opponent, side=side)
        self.begin()

    def begin(self) -> None:
        """Send the form."""
        self.page.get_by_role("button", name="Start the game").click()
        expect(self.status).to_be_visible()

    @property
    def id(self) -> str:
        """The table's id, from the address."""
        return str(self.page.url).rpartition("/play/")[2]

    @property
    def status(self) -> "Locator":
        """Whose turn it is, or how it ended."""
        return self.page.locator(".status")

    def table(self) -> Any:
        """Return what the server says of the table."""
        return self.site.get(f"/api/tables/{self.id}")

    def at(self, place: str) -> "Locator":
        """Return a square ("7g") or a piece in hand ("P*") that can be pressed."""
        return self.page.locator(f'[data-at="{place}"]')

    def press(self, *places: str) -> None:
        """Press squares and pieces in hand, one after the other."""
        for place in places:
            self.at(place).click()

    def press_move(self, move: str) -> None:
        """Play a move by presses; where it may promote, answer the question."""
        self.press(move[:2], move[2:4])
        self._answer(move)

    def key_move(self, move: str) -> None:
        """Play a move by keys alone."""
        if move[1] == "*":
            self.page.keyboard.press(move[0].lower())
        else:
            self._walk(move[:2])
            self.page.keyboard.press("Enter")
        self._walk(move[2:4])
        self.page.keyboard.press("Enter")
        self._answer(move, by_key=True)

    def _answer(self, move: str, *, by_key: bool = False) -> None:
        dialog = self.page.locator("dialog.promotion")
        if not dialog.count():
            return
        if not by_key:
            dialog.locator(f'[data-move="{move}"]').click()
            return
        if not move.endswith("+"):
            self.page.keyboard.press("ArrowRight")  # the first answer is to promote
        self.page.keyboard.press("Enter")

    def _walk(self, square: str) -> None:
        """Move the cursor to a square with the arrow keys."""
        here = self.page.evaluate("document.activeElement.dataset.at")
        assert str(here)[-1] in RANKS, f"the focus is not on a square, at {here}"
        columns, rows = int(here[0]) - int(square[0]), RANKS.index(square[1]) - RANKS.index(here[1])
        if self.page.locator("[data-at='1a']").evaluate("cell => cell.x.baseVal.value") == 0:  # seen by White
            columns, rows = -columns, -rows
        for key, steps in (
            ("ArrowRight", columns),
            ("ArrowLeft", -columns),
            ("ArrowDown", rows),
            ("ArrowUp", -rows),
        ):
            for _ in range(steps):
                self.page.keyboard.press(key)
        assert self.page.evaluate("document.activeElement.dataset.at") == square

    def expect_moves(self, count: int) -> None:
        """Wait until so many moves are in the list."""
        expect(self.page.locator(".moves li")).to_have_count(count)

    def has_answered(self, plies: int) -> bool:
        """Return whether the opponent has answered the move after so many, or the game is over."""
        table = self.table()
        return table["state"] in ("yours", "over") and len(table["moves"]) > plies

    def dots(self) -> set[str]:
        """Return the squares that are marked as legal."""
        return {str(dot.get_attribute("data-to")) for dot in self.page.locator(".dot").all()}

    def close(self) -> None:
        """End the table, so that the next test has room."""
        if "/play/" in self.page.url:
            self.site.ask(
                "POST", f"/api/tables/{self.id}", b'{"do":"close"}', {"content-type": "application/json"}
            )


def strong_move(table: Any, seed: int = 1) -> str:
    """Return a good move for a table's position, so that a game against random play ends in mate."""
    game = replayed(table["start_sfen"], table["moves"])
    ((move, _),) = alpha_beta([game], 3, [seed], 1)
    return str(move)


def replayed(sfen: str, moves: Iterable[str]) -> ShogiGame:
    """Return the game after USI moves."""
    game = ShogiGame(sfen)
    for move in moves:
        game.push(move)
    return game
