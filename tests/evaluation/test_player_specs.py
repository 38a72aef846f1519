"""Player specifications: every kind, every mistake, identities that differ exactly where the play does."""

import hashlib
import shutil
import sys
from pathlib import Path

import pytest
from small_runs import checkpoint_of, small_run

from keisei.evaluation import GreedyPlayer, MatchConditions, Player, play_match
from keisei.evaluation.players.player import PlayerError
from keisei.evaluation.players.player_specs import BUILT_IN_NAMES, Machine, make_player, seed_of
from keisei.runs.checkpoint import CheckpointError, load_checkpoint
from keisei.runs.checkpoint_format import weights_sha256
from keisei.runs.find import checkpoints_of, find_checkpoint, run_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roster")
    small_run(folder / "runs" / "first", 1024, 2048, 3072, best=2048)
    small_run(folder / "runs" / "unmarked", 512, 1024)
    (folder / "runs" / "empty" / "checkpoints").mkdir(parents=True)
    return folder


@pytest.fixture
def first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of three checkpoints, the second being the best, in `runs` of the current directory."""
    monkeypatch.chdir(folder)
    return folder / "runs" / "first"


def moves(player: Player, seed: int = 1) -> list[list[str]]:
    """Return all moves of two games against the random player."""
    games: list[list[str]] = []
    play_match(
        player,
        make_player("random", seed),
        games=2,
        conditions=MatchConditions(2, 24),
        on_pair=lambda *pair: games.extend([str(move) for move in game.game.history] for game in pair),
    )
    return games


@pytest.mark.parametrize("name", BUILT_IN_NAMES)
def test_a_built_in_player_is_known_by_its_name(name: str) -> None:
    player = make_player(name, seed=1)
    assert (player.name, player.identity, player.describe()) == (name, name, {})


def test_built_in_players_draw_by_their_own_seeds() -> None:
    assert moves(make_player("greedy", 1)) == moves(make_player("greedy", 1))
    assert moves(make_player("greedy", 1)) != moves(make_player("greedy", 2))
    assert moves(make_player("greedy", 1)) == moves(GreedyPlayer(seed_of(1, "greedy")))
    assert seed_of(1, "greedy") != seed_of(1, "random")
    assert 0 <= seed_of(1, "greedy") < 2**64


@pytest.mark.parametrize(
    ("where", "step"),
    [
        ("first", 2048),
        ("runs/first", 2048),
        ("first@best", 2048),
        ("first@latest", 3072),
        ("runs/first@1024", 1024),
        ("runs/first/checkpoints/step_000000001024", 1024),
        ("unmarked", 1024),
        ("first/checkpoints/step_000000003072", 3072),
    ],
)
@pytest.mark.usefixtures("first")
def test_a_run_or_a_checkpoint_is_its_network(where: str, step: int) -> None:
    player = make_player(where, seed=1)
    assert player.name == f"{'unmarked' if 'unmarked' in where else 'first'}@{step}"
    facts = player.describe()
    weights = Path(facts["checkpoint"]) / "weights.safetensors"
    assert facts["step"] == str(step)
    assert facts["weights sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert facts["temperature"] == "0.25"


def test_a_directory_may_have_an_at_sign(first: Path, tmp_path: Path) -> None:
    run = tmp_path / "me@work" / "first@home"
    shutil.copytree(first, run)
    assert find_checkpoint(str(run)) == checkpoint_of(run, 2048)
    assert find_checkpoint(f"{run}@1024") == checkpoint_of(run, 1024)
    assert find_checkpoint(str(checkpoint_of(run, 3072))) == checkpoint_of(run, 3072)
    assert make_player(f"{run}@latest", seed=1).name == "first@home@3072"


def test_a_checkpoint_knows_its_run(first: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [path.name[-4:] for path in checkpoints_of(first)] == ["1024", "2048", "3072"]
    assert run_of(checkpoint_of(first, 1024)) == first
    monkeypatch.chdir(first / "checkpoints")
    assert run_of(find_checkpoint("..")) == first
    assert make_player("..", seed=1).name == "first@2048"
    shutil.copytree(checkpoint_of(first, 1024), tmp_path / "alone")
    assert run_of(tmp_path / "alone") is None
    assert make_player(str(tmp_path / "alone"), seed=1).name == "alone@1024"


def test_names_and_identities_say_how_a_network_plays(first: Path) -> None:
    texts = {
        "first": "first@2048",
        "first;temperature=0": "first@2048 temperature 0.0",
        "first;temperature=0.5": "first@2048 temperature 0.5",
        "first;visits=3": "first@2048 3 visits",
        "first;visits=4": "first@2048 4 visits",
        "first;seconds=0.5": "first@2048 0.5 s",
        "first@1024": "first@1024",
    }
    players = {text: make_player(text, seed=1) for text in texts}
    assert {text: player.name for text, player in players.items()} == texts
    identities = [player.identity for player in players.values()]
    assert len(set(identities)) == len(identities)
    assert players["first;visits=3"].identity.count("3 visits") == 1
    assert (
        players["first;visits=3"].describe()["weights sha256"]
        == players["first"].describe()["weights sha256"]
    )
    nearly = make_player("first;temperature=0.50000001", seed=1)
    assert nearly.identity != players["first;temperature=0.5"].identity
    same = {"first": "runs/first@best;temperature=0.25", "first;temperature=0": "first;temperature=-0"}
    for text, other in same.items():
        assert make_player(other, seed=1).identity == players[text].identity
        assert make_player(other, seed=2, machine=Machine(2)).identity == players[text].identity
    assert first.is_dir()


def test_the_same_weights_elsewhere_are_the_same_player(first: Path, tmp_path: Path) -> None:
    shutil.copytree(first, tmp_path / "copy")
    here, there = make_player(str(first), 1), make_player(str(tmp_path / "copy"), 1)
    assert (here.name, there.name) == ("first@2048", "copy@2048")
    assert here.identity == there.identity
    assert moves(here) == moves(there)
    stored = load_checkpoint(checkpoint_of(first, 2048))
    assert here.describe()["weights sha256"] == weights_sha256(stored.tensors["weights"])
    other = make_player(f"{first}@1024", 1)
    assert other.identity != here.identity
    assert moves(other) != moves(here)


def test_settings_change_the_play(first: Path) -> None:
    plain = moves(make_player(str(first), 1))
    assert moves(make_player(f"{first};temperature=5", 1)) != plain
    searched = moves(make_player(f"{first};visits=4", 1))
    assert searched != plain
    assert moves(make_player(f"{first};visits=4", 1)) == searched
    best = make_player(f"{first};temperature=0", 1)
    assert moves(best) == moves(make_player(f"{first};temperature=0", 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gredy", "player 'gredy': not one of random, greedy, material, alphabeta-N or usi:COMMAND;depth=N"),
        ("", "no checkpoint at"),
        ("alphabeta-0", "expected alphabeta-1 to alphabeta-6"),
        ("alphabeta-7", "expected alphabeta-1 to alphabeta-6"),
        ("alphabeta-", "expected alphabeta-1 to alphabeta-6"),
        ("alphabeta-02", "expected alphabeta-1 to alphabeta-6"),
        ("greedy;visits=3", "no checkpoint at greedy"),
        ("first@7", "run runs/first has no checkpoint @7: expected best, latest or one of 1024, 2048, 3072"),
        ("first@-1", "expected best, latest or one of"),
        ("unmarked@best", "has no best checkpoint"),
        ("empty", "run runs/empty has no checkpoint yet"),
        ("runs/first/checkpoints/step_000000001024@best", "is itself a checkpoint and has no @best"),
        (
            "first;",
            "'': expected visits=N, seconds=S, temperature=T, c_puct=, fpu=, candidates= or "
            "repetition_draws=, each once",
        ),
        ("first;visits", "'visits': expected visits=N"),
        ("first;nodes=3", "'nodes=3': expected visits=N, seconds=S, temperature=T"),
        ("first;c_puct=2", "c_puct: expected visits=N or seconds=S too, since it is for a search"),
        ("first;visits=9;fpu=-1", "fpu is -1, expected 0 to 1e+06"),
        ("first;visits=9;candidates=601", "candidates is 601, expected 0 to 600"),
        ("first;seconds=1;candidates=8", "candidates needs visits=N"),
        ("first;visits=3;visits=3", "each once"),
        ("first;visits=many", "'visits=many': expected a number after ="),
        ("first;visits=1.5", "'visits=1.5': expected a number after ="),
        ("first;visits=0", "visits is 0, expected 1 to"),
        ("first;visits=99999999999", "visits is 99999999999, expected 1 to"),
        ("first;seconds=0", "seconds is 0, expected more than 0"),
        ("first;seconds=nan", "seconds is nan, expected more than 0"),
        ("first;seconds=inf", "seconds is inf, expected more than 0 and less than a day"),
        ("first;temperature=-1", "temperature is -1, expected 0 or more"),
        ("first;temperature=nan", "temperature is nan, expected 0 or more"),
        ("first;temperature=inf", "temperature is inf, expected 0 or more"),
        (
            "first;visits=3;temperature=1",
            "visits and temperature are given, expected only one: a search has no",
        ),
        (
            "first;visits=3;seconds=1",
            "visits and seconds are given, expected only one: a search has one limit",
        ),
        ("usi:", "has no command, expected usi:COMMAND;KEY=VALUE"),
        ("usi:engine", "has no limit, expected one of nodes, depth, byoyomi, movetime"),
        ("usi:engine;depth=x", "depth is 'x', expected a whole number"),
        ("usi:'engine;depth=1", "cannot parse the command"),
    ],
)
@pytest.mark.usefixtures("first")
def test_a_text_that_is_no_player_says_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(PlayerError) as caught:
        make_player(text, seed=1)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_checkpoint_is_no_player(first: Path, tmp_path: Path) -> None:
    run = tmp_path / "damaged"
    shutil.copytree(first, run)
    weights = checkpoint_of(run, 2048) / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(PlayerError, match=r"weights\.safetensors is damaged, its SHA-256 does not match$"):
        make_player(str(run), seed=1)
    assert make_player(f"{run}@1024", seed=1).name == "damaged@1024"
    shutil.rmtree(checkpoint_of(run, 3072))
    with pytest.raises(CheckpointError, match=r"expected best, latest or one of 1024, 2048$"):
        find_checkpoint(f"{run}@3072")


def test_an_engine_is_known_by_its_command_limit_and_options() -> None:
    command = f"usi:{sys.executable} -c pass"
    one, other = make_player(f"{command};depth=1", 1), make_player(f"{command};depth=2;name=two", 1)
    assert one.identity != other.identity
    assert (one.name, other.name) == (f"{Path(sys.executable).name}-depth1", "two")
    assert make_player(f"{command};depth=2;name=other;processes=3", 7).identity == other.identity
