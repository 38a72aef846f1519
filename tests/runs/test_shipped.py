"""The network that comes with the package: where it comes from, that it is whole, and that it can play."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from keisei.evaluation import GreedyPlayer, play_match
from keisei.evaluation.players.player_specs import make_player
from keisei.runs.checkpoint_format import STATE, verified
from keisei.runs.find import SHIPPED, SHIPPED_PATH, Found, find, find_checkpoint
from keisei.runs.load import read_network

KEISEI = str(Path(sys.executable).with_name("keisei"))


def test_it_is_found_by_its_name_wherever_one_is(tmp_path: Path) -> None:
    assert find(SHIPPED, tmp_path) == Found(None, SHIPPED_PATH)
    assert find_checkpoint(SHIPPED, tmp_path) == SHIPPED_PATH


def test_it_is_whole_small_and_says_where_it_comes_from() -> None:
    step, files = verified(SHIPPED_PATH)
    assert sum(map(len, files.values())) < 400_000
    origin = json.loads(files[STATE])["from"]
    assert origin["sha256"] == hashlib.sha256(files["weights.safetensors"]).hexdigest()
    assert origin["sha256"] == read_network(SHIPPED_PATH).sha256
    assert origin["moves"] == step
    for piece in origin["pieces"]:
        assert piece["command"][:2] == ["keisei", "train"]
        assert len(piece["git"]["commit"]) == 40
        assert not piece["git"]["dirty"]


def test_it_was_trained_as_make_network_does() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.partition("\nnetwork:")[2].partition("\n\n")[0]
    (piece,) = json.loads((SHIPPED_PATH / STATE).read_text(encoding="utf-8"))["from"]["pieces"]
    decisive = ("training.", "run.seed", "run.threads")
    settings = {word for word in piece["command"] if word.startswith(decisive)}
    assert settings <= set(recipe.split())


def test_it_beats_the_greedy_player() -> None:
    result = play_match(make_player(SHIPPED, 1), GreedyPlayer(seed=2), games=20)
    assert result.wins + result.draws / 2 >= 16  # 200 of 200 games


def test_play_and_usi_have_it_without_being_told(tmp_path: Path) -> None:
    for command, words, expected in (
        (["play", "--visits", "8"], "7g7f\nhint\nquit\n", "against shipped"),
        (["usi"], "usi\nisready\nposition startpos\ngo nodes 8\nquit\n", "readyok"),
    ):
        done = subprocess.run(
            [KEISEI, *command], input=words, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert expected in done.stdout
    assert not list(tmp_path.iterdir())
