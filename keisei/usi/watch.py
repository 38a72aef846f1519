"""Games of a running training in the terminal: a board that follows one game to its end, then the next.

Elsewhere than on a terminal, a line per move. Ctrl-C ends it; so does the end of the training.
"""

import glob
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from keisei.language import ENGLISH, Speaker
from keisei.runs.find import has_checkpoint
from keisei.runs.kept_games import kept_games
from keisei.runs.live_games import LiveGame, keep_watching, read_live_games, stop_watching
from keisei.runs.run_directory import is_running
from keisei.shogi import Move, Outcome, ShogiGame
from keisei.usi.board_text import board_text, wants_colors

_TOUCH_SECONDS, _LOOK_SECONDS = 2.0, 0.2
_PAUSE_MOVES = 3  # a game that has ended stays for as long as so many moves
_CLEAR = "\x1b[H\x1b[2J"


class Followed:
    """A game and how far it has been shown."""

    def __init__(self, live: LiveGame) -> None:
        self._live = live
        self._begin(live)

    def _begin(self, live: LiveGame) -> None:
        self._live, self.shown = live, live.before
        self.game = ShogiGame(live.sfen, max_moves=None, declaration="off")

    @property
    def number(self) -> int:
        """The game's number in the training."""
        return self._live.number

    @property
    def outcome(self) -> Outcome | None:
        """The result, once the game has ended."""
        return self._live.outcome

    def take(self, newer: LiveGame) -> None:
        """Add the moves made since; if there are too many to know them all, go on with those known."""
        live = self._live
        gap = newer.before - live.before
        if gap > len(live.moves):
            self._begin(newer)
        else:
            moves = (*live.moves[:gap], *newer.moves)
            percents = (*live.black_percent[:gap], *newer.black_percent)
            self._live = replace(live, moves=moves, black_percent=percents, outcome=newer.outcome)

    def next_move(self, speaker: Speaker = ENGLISH) -> str | None:
        """Make the next move and return it in words; None if no further one is known."""
        at = self.shown - self._live.before
        if at == len(self._live.moves):
            return None
        move = Move.from_usi(self._live.moves[at])
        text = speaker.move(self.game, move)
        self.game.push(move)
        self.shown += 1
        return text

    def black_percent(self) -> int | None:
        """Return the network's estimate of this position, or else of the one before; None if unknown."""
        at, known = self.shown - self._live.before, self._live.black_percent
        now = known[at] if at < len(known) else None
        return now if now is not None or at == 0 else known[at - 1]


class Watcher:
    """Shows the games of a run; speed: moves per second. speaker: in which language."""

    def __init__(self, run: Path, speed: float, out: TextIO, speaker: Speaker = ENGLISH) -> None:
        self._run, self._seconds, self._out, self._speaker = run, 1 / speed, out, speaker
        self._colors, self._screen = wants_colors(out), out.isatty()
        self._step, self._touched_at = 0, 0.0
        self._latest: tuple[LiveGame, ...] = ()
        self._seen: set[int] = set()

    def watch(self) -> None:
        """Show games until the training has ended."""
        try:
            self._say(self._speaker("watch.start", run=self._run))
            while (followed := self._next_game()) is not None:
                self._show(followed)
        finally:
            stop_watching(self._run)
        self._say("\n".join(after_the_end(self._run, self._speaker)))

    def _next_game(self) -> Followed | None:
        """Wait for a game not seen yet, that with the most moves; None if the training has ended."""
        while True:
            running = is_running(self._run)
            self._look()
            new = [game for game in self._latest if game.number not in self._seen]
            if new:
                chosen = max(new, key=lambda game: game.before + len(game.moves))
                self._seen.add(chosen.number)
                return Followed(chosen)
            if not running:
                return None
            time.sleep(_LOOK_SECONDS)

    def _show(self, followed: Followed) -> None:
        """Show a game until it has ended, or the training has."""
        while True:
            running = is_running(self._run)
            self._look()
            for newer in self._latest:
                if newer.number == followed.number:
                    followed.take(newer)
            if (move := followed.next_move(self._speaker)) is not None:
                self._draw(followed, move)
                time.sleep(self._seconds)
            elif followed.outcome is not None:
                outcome = self._speaker.outcome(followed.outcome)
                facts = {"number": followed.number, "outcome": outcome, "moves": followed.shown}
                self._say(self._speaker("watch.end", **facts))
                time.sleep(_PAUSE_MOVES * self._seconds)
                return
            elif not running:
                return
            else:
                time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        if time.monotonic() - self._touched_at > _TOUCH_SECONDS:
            keep_watching(self._run)
            self._touched_at = time.monotonic()
        if (live := read_live_games(self._run)) is not None:
            self._step, self._latest = live.step, live.games

    def _draw(self, followed: Followed, move: str) -> None:
        percent = followed.black_percent()
        say, estimate = self._speaker, ""
        if percent is not None:
            estimate = say("watch.estimate", black=percent, white=100 - percent)
        head = say("watch.move", number=followed.number, move=followed.shown)
        if not self._screen:
            self._say(f"{head}: {move}{estimate}")
            return
        board = board_text(followed.game, colors=self._colors, speaker=say)
        top = say("watch.training", run=self._run, step=f"{self._step:,}")
        self._say(f"{_CLEAR}{top}\n{head}{estimate}\n\n{board}")

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)


def after_the_end(run: Path, speaker: Speaker = ENGLISH) -> Sequence[str]:
    """Return that a run is not training, and the commands that show its games."""
    where = shlex.quote(str(run))
    lines = [speaker("watch.not training", run=run)]
    if kept := kept_games(run / "games"):
        what = speaker("watch.kept", games=len(kept))
        lines.append(f"  keisei show {shlex.quote(str(kept[-1]))}  # {what}")
    if matches := sorted((run / "evaluation" / "games").glob(f"*{glob.escape(run.name)}@*.csa")):
        what = speaker("watch.evaluated")
        lines.append(f"  keisei show {shlex.quote(str(matches[-1]))} --game 1  # {what}")
    if has_checkpoint(run):
        lines += [f"  keisei play {where}", f"  keisei train --resume {where}"]
    return lines
