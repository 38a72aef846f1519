"""GameRecorder: keeps every n-th training game as a KIF record in RUN/games.

Games are chosen by their number, so it does not matter who plays them, and each record is read back before it
is written. A kept game changes nothing in the training.
"""

from collections.abc import Callable
from pathlib import Path

from keisei.runs import durable
from keisei.runs.kept_games import kept_game_path, kept_games
from keisei.shogi import GameRecord, NotationError, RulesError, read_kif, write_kif
from keisei.shogi.vector import FinishedGame
from keisei.training.game_streams import GameStreams
from keisei.training.listener import SilentListener, Update


class GameRecorder(SilentListener):
    """A listener that keeps the games whose number is a multiple of `every`.

    games: a directory in the run's own. resume_step: where a run goes on; games that ended later are played
    again, so their records are removed. notice: gets a line about a game that cannot be kept.
    """

    def __init__(
        self,
        games: Path,
        every: int,
        streams: GameStreams,
        resume_step: int | None,
        notice: Callable[[str], None],
    ) -> None:
        self._games, self._run = games, games.parent.name
        self._every, self._streams, self._notice = every, streams, notice
        self._unsynced: list[Path] = []
        self._games.mkdir(exist_ok=True)
        durable.sweep(self._games)
        for path in kept_games(self._games, after=resume_step or 0):
            path.unlink()

    def update(self, update: Update) -> None:
        """Write the games that ended and are to be kept."""
        vectors = {
            one.vector for one in update.played if any(self._is_kept(game.number) for game in one.results)
        }
        for game in self._streams.advance(update, vectors):
            if self._is_kept(game.number):
                self._write(game, update)

    def _is_kept(self, number: int) -> bool:
        return number % self._every == 0

    def _write(self, game: FinishedGame, update: Update) -> None:
        text = write_kif(_record(game, update, self._run))
        try:
            _check(text, game)
        except (NotationError, RulesError) as error:
            self._notice(f"game {game.number} is not kept: its record is wrong: {error}")
            return
        path = kept_game_path(self._games, update.step, game.number)
        durable.write_whole(path, text.encode())
        self._unsynced.append(path)

    def sync(self) -> None:
        """Sync the records to disk: a run that resumes from the next checkpoint does not play them again."""
        written, self._unsynced = self._unsynced, []
        for path in written:
            durable.sync_file(path)
        if written:
            durable.sync_directory(self._games)


def _record(game: FinishedGame, update: Update, run: str) -> GameRecord:
    player = f"{run}@{update.step}"
    about = [f"game {game.number} of the training {run}"]
    if game.late_start:
        about.append("begun near the end of an earlier game")
    if game.opening:
        about.append(f"the first {game.opening} moves are random")
    version = update.metrics["progress/updates"]
    about.append(f"update {version:.0f}, at {update.step} moves of training, learned from its last moves")
    return GameRecord(
        game.moves,
        game.start_sfen,
        player,
        player,
        game.outcome,
        {0: "\n".join(about), len(game.moves): str(game.outcome)},
        headers={"棋戦": f"Keisei training game {game.number}"},
    )


def _check(text: str, game: FinishedGame) -> None:
    """Raise an error unless the record has the game's moves and winner."""
    read = read_kif(text)
    if read.moves != game.moves or read.outcome is None or read.outcome.winner != game.outcome.winner:
        raise RulesError(f"it has {len(read.moves)} moves, {read.outcome}, expected {game.outcome}")
