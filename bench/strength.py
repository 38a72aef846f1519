"""python bench/strength.py [--run RUN] [--rounds 5]: playing strength for the time it takes.

One network, by its policy alone and with search of more and more visits, against a fixed opponent; the score
of a turn's games, and the time per move of all its games side by side, divided by the number of moves.
Without --run the network is one that trained for some seconds here. The other rows are players to compare
with: ours that search material only, and fairy-stockfish.
"""

import functools
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import command_line
import torch
from contest import Contender, Contest, Stopwatch, TakeTurn
from contest import Turn as Figures
from results import fairy_stockfish_path
from settings import Peers, Scale, config_of

from keisei.core.device import keep_freed_memory
from keisei.core.self_play import SelfPlay
from keisei.evaluation import Answer, Player, Turn, play_match
from keisei.evaluation.players.player_specs import make_player
from keisei.runs.checkpoint import save_checkpoint
from keisei.runs.find import find_checkpoint
from keisei.training.trainer import Trainer

TRAINING_SECONDS = 30


class Timed(Player):
    """A player with a clock: the seconds it thought, and the moves it made."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.name, self.identity, self.capacity = player.name, player.identity, player.capacity
        self.seconds, self.moves = 0.0, 0

    def choose(self, turns: Sequence[Turn]) -> Sequence[Answer]:
        """Let the player choose."""
        start = time.perf_counter()
        answers = self._player.choose(turns)
        self.seconds += time.perf_counter() - start
        self.moves += len(turns)
        return answers

    def end_game(self, turn: Turn) -> None:
        """Tell the player."""
        self._player.end_game(turn)

    def close(self) -> None:
        """Release the player's resources, such as an engine's process."""
        self._player.close()


def contests(scale: Scale, peers: Peers) -> list[Contest]:
    """Return the contest of strength."""
    opponent = "alphabeta-1" if scale.run else "greedy"
    network = _Network(scale)
    visits = (8,) if scale.is_tiny else (16, 64, 256)
    games = 2 if scale.is_tiny else max(10, scale.of(20) // 2 * 2)
    contenders = [
        Contender("network, its policy alone", functools.partial(_open_network, network, "", opponent, games))
    ]
    for count in visits:
        few = min(games, 6) if count >= 256 and scale.share < 1 else games  # 3 s a game
        play = functools.partial(_open_network, network, f";visits={count}", opponent, few)
        note = f"{few} games a round" if few < games else ""
        contenders.append(Contender(f"network, {count} visits", play, note))
    fixed = ["material"] if scale.is_tiny else ["material", "alphabeta-2", "alphabeta-3"]
    contenders += [Contender(spec, functools.partial(_open, spec, opponent, games)) for spec in fixed]
    if peers.has("fairy-stockfish") and not scale.is_tiny:
        spec = f"usi:{fairy_stockfish_path()};depth=1"
        name = "fairy-stockfish, depth 1"
        note = "one game at a time, in its own process"
        contenders.append(
            Contender(name, functools.partial(_open, spec, opponent, games), note, "fairy-stockfish")
        )
    what = (
        f"network of {Path(scale.run).name}" if scale.run else f"network trained for {network.seconds:.0f} s"
    )
    title = f"score against {opponent} in {games} games a round, {what}"
    return [Contest("strength", title, "%", contenders)]


class _Network:
    """The network's checkpoint: the run's, or that of a short training, made when it is first asked for."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self.seconds = 1.0 if scale.is_tiny else scale.of(TRAINING_SECONDS, least=5)
        self._folder = tempfile.TemporaryDirectory()

    @functools.cached_property
    def checkpoint(self) -> Path:
        """Where it is."""
        if self._scale.run:
            return find_checkpoint(self._scale.run)
        config = config_of(self._scale)
        torch.set_num_threads(self._scale.workers)
        trainer = Trainer(config, torch.device("cpu"))
        games = SelfPlay.begin(config.env, games=config.training.games, seed=1)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            trainer.perform_update([games.rollout(trainer.agent, 64).segment])
        return save_checkpoint(Path(self._folder.name), trainer.snapshot([games.save()]))


def _open_network(network: _Network, limits: str, opponent: str, games: int, stack: ExitStack) -> TakeTurn:
    return _open(f"{network.checkpoint}{limits}", opponent, games, stack)


def _open(spec: str, opponent: str, games: int, stack: ExitStack) -> TakeTurn:
    keep_freed_memory()
    player, other = Timed(make_player(spec, seed=1)), make_player(opponent, seed=2)
    stack.callback(player.close)
    rounds = iter(range(1_000_000))

    def turn() -> Figures:
        torch.set_num_threads(1)
        player.seconds, player.moves = 0.0, 0
        watch = Stopwatch()
        result = play_match(player, other, games=games, seed=next(rounds))
        seen = watch.turn(games)
        extra = {"ms/move": player.seconds / max(1, player.moves) * 1000}
        return Figures(100 * result.score, seen.wall_seconds, seen.cpu_seconds, extra)

    return turn


if __name__ == "__main__":
    command_line.main({"strength": contests}, __doc__)
