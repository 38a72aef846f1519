"""The `keisei` command as a user runs it: a real process, its output, its errors, its exit code."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keisei.cli.app import COMMANDS, GROUPS, load_command
from keisei.config.fields import reference
from keisei.config.files import load_config, to_yaml
from keisei.config.schema import AppConfig
from keisei.shogi import START_SFEN, read_record

COMMAND = Path(sys.executable).parent / "keisei"
KIF = "先手：甲\n後手：乙\n手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(33)\n   3 投了\n"


def keisei(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60)


def refusal(*arguments: str | Path) -> str:
    """Return the line that reports a mistake, after checking that it is one line, with exit code 2."""
    done = keisei(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("keisei: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_help_lists_the_commands_and_teaches_by_example() -> None:
    for arguments in ((), ("--help",)):
        done = keisei(*arguments)
        assert done.returncode == 0
        assert all(command in done.stdout for command in ("perft", "show", "convert", "config"))
    assert "keisei perft 5" in keisei("perft", "--help").stdout


def test_help_begins_with_training_and_groups_the_commands() -> None:
    shown = keisei("--help").stdout
    places = [shown.index(word) for word in ("Train", " train ", "Play", " play ", "Measure", " perft ")]
    assert places == sorted(places)
    assert set(GROUPS) == {module for module, _ in COMMANDS.values()}


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "keisei", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == keisei("--version").stdout


def test_the_shell_completes_commands_and_options() -> None:
    for words, expected in (("keisei tr", "train"), ("keisei train --re", "--resume")):
        asked = {"_KEISEI_COMPLETE": "complete_bash", "COMP_WORDS": words}
        asked["COMP_CWORD"] = str(len(words.split()) - 1)
        done = subprocess.run(
            [COMMAND], env={**os.environ, **asked}, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stdout.split() == [expected]


def test_a_setting_given_as_an_option_is_answered_with_how_to_give_it() -> None:
    line = refusal("train", "--lr", "0.1")
    assert "No such option: --lr" in line
    assert "training.learning_rate=…: keisei config --describe lists them" in line
    assert "training.games=…: keisei" in refusal("doctor", "--games", "5")
    assert "settings are given without hyphens, model.blocks=…" in refusal("profile", "--blocks", "5")
    assert "settings are given" not in refusal("ladder", "--lr", "0.1")


def test_help_has_a_short_name() -> None:
    for command in ([], ["train"], ["perft"]):
        short, long = (
            subprocess.run([COMMAND, *command, name], capture_output=True, text=True, timeout=60, check=True)
            for name in ("-h", "--help")
        )
        assert short.stdout == long.stdout != ""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_each_help(name: str) -> None:
    assert load_command(name).help.split("\n\n")[0].replace("\n", " ") == COMMANDS[name][1]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usage_has_one_pair_of_brackets_around_what_may_be_left_out(name: str) -> None:
    command = load_command(name)
    usage = " ".join(command.collect_usage_pieces(command.make_context(name, [], resilient_parsing=True)))
    assert "[[" not in usage
    assert "]]" not in usage


@pytest.mark.parametrize(
    ("arguments", "code", "loaded"),
    [
        ("--help", 0, "[]"),
        ("perft 1", 0, "[]"),
        ("config tiny", 0, "[]"),
        ("train training.lr=1", 2, "[]"),
        ("train --resume missing", 2, "[]"),
        ("doctor training.lr=1", 2, "[]"),
        ("usi missing", 2, "[]"),
        ("play missing", 2, "[]"),
        ("evaluate missing", 2, "['numpy']"),
        ("ladder missing", 2, "['numpy']"),
        ("export missing", 2, "['numpy']"),
        ("analyze missing.kif", 2, "['numpy']"),
        ("plot missing", 2, "['matplotlib', 'numpy']"),
    ],
)
def test_a_command_loads_no_more_than_it_needs(
    arguments: str, code: int, loaded: str, tmp_path: Path
) -> None:
    script = (
        f"import sys; sys.argv = ['keisei', *{arguments.split()}]\n"
        "from keisei.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'torch', 'matplotlib', 'numpy'} & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (code, loaded), done.stderr


def test_threads_are_told_to_sleep_before_torch_is_loaded(tmp_path: Path) -> None:
    script = (
        "import os, sys; sys.argv = ['keisei', 'train', '--help']\n"
        "from keisei.cli import main\n"
        "try: main()\n"
        "finally: print(os.environ['GOMP_SPINCOUNT'], 'torch' in sys.modules, file=sys.stderr)"
    )
    environment = {
        name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    }
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment)
    assert done.stderr == "5000 False\n"


def test_version_is_the_packages() -> None:
    assert keisei("--version").stdout == "keisei 0.1.0\n"


def test_perft_prints_nodes_and_speed() -> None:
    done = keisei("perft", "4")
    assert done.returncode == 0
    assert done.stdout.startswith("depth 4: 719731 nodes in ")
    assert keisei("perft", "2", "7lk/9/8S/9/9/9/9/7L1/8K b P 1").stdout.startswith("depth 2: 639 nodes")
    assert keisei("perft", "0").stdout.startswith("depth 0: 1 nodes")


def test_perft_counts_a_mate_problem_if_asked_to() -> None:
    problem = "4k4/9/4P4/9/9/9/9/9/9 b G 1"
    assert keisei("perft", "1", problem, "--kings", "defender").stdout.startswith("depth 1: 81 nodes")
    lines = keisei("perft", "2", problem, "--kings", "defender", "--divide").stdout.splitlines()
    assert len(lines) == 82
    assert "G*5b 0" in lines


def test_divide_prints_a_line_for_each_first_move() -> None:
    lines = keisei("perft", "2", "--divide").stdout.splitlines()
    assert len(lines) == 31
    assert "7g7f 30" in lines
    assert lines[-1].startswith("depth 2: 900 nodes")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("perft",), "depth"),
        (("perft", "five"), "depth"),
        (("perft", "20000"), "depth"),
        (("perft", "1", "nonsense"), "bad sfen 'nonsense'"),
        (("perft", "1", "4k4/9/9/9/9/9/9/9/9 b - 1"), "black has 0 kings"),
        (("perft", "1", "--kings", "both", "4k4/9/9/9/9/9/9/9/9 b - 1"), "black has 0 kings"),
        (("perft", "1", "--kings", "none"), "--kings is 'none', expected both or defender"),
        (("perft", "1", "--nonsense"), "--nonsense"),
        (("nonsense",), "nonsense"),
        (("show", "missing.kif"), "missing.kif: No such file or directory"),
        (("show", "game.txt"), "expected .csa, .kif, .kifu, .ki2, .ki2u, .usi or .sfen"),
        (("config", "missing.yaml"), "missing.yaml: no such file or shipped config"),
        (("config", "tiny", "gpu"), "two configs, tiny and gpu; an override is setting=value"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], says: str) -> None:
    assert says in refusal(*arguments)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_ends_with_130() -> None:
    # A shell may have set Ctrl-C to be ignored; a terminal does not.
    with subprocess.Popen(
        [COMMAND, "perft", "10"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    ) as process:
        while cpu_seconds(process.pid) < 1:  # starting takes less, so it is counting
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors == b""


def test_show_prints_result_and_board(tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    path.write_text(KIF, encoding="utf-8")
    lines = keisei("show", path).stdout.splitlines()
    assert lines[0] == "☗甲 ☖乙: 2 moves, white wins by resignation"
    assert lines[-1] == "手数＝2"
    assert keisei("show", path, "--ply", "0").stdout.splitlines()[-1] == "手数＝0"
    assert "--ply is 3, expected 0 to 2" in refusal("show", path, "--ply", "3")


def test_a_terminal_that_knows_no_kanji_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    path.write_text(KIF, encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [COMMAND, "show", path], capture_output=True, text=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 moves, white wins by resignation" in done.stdout


def test_a_game_of_a_file_with_several_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "match.usi"
    path.write_text("startpos moves 7g7f\n\nstartpos moves 2g2f 8c8d\n")
    assert "1 moves, unfinished" in keisei("show", path, "--game", "1").stdout
    assert "2 moves, unfinished" in keisei("show", path, "--game", "2").stdout
    assert "has 2 games: expected --game 1 to 2" in refusal("show", path)
    assert "--game is 3, expected 1 to 2" in refusal("show", path, "--game", "3")
    assert keisei("convert", path, tmp_path / "game.kif", "--each").returncode == 0
    written = [read_record(tmp_path / f"game-00{number}.kif") for number in (1, 2)]
    assert [len(record.moves) for record in written] == [1, 2]
    assert keisei("convert", path, tmp_path / "two.csa", "--game", "2").returncode == 0
    assert read_record(tmp_path / "two.csa").moves == written[1].moves
    assert "--each and --game are given" in refusal(
        "convert", path, tmp_path / "x.csa", "--each", "--game", "1"
    )
    path.write_text("startpos moves 7g7f\nstartpos moves 7g7e\n")
    assert "line 2: move 1: illegal move 7g7e" in refusal("show", path, "--game", "1")


def test_convert_writes_the_same_game_in_another_format(tmp_path: Path) -> None:
    source, target = tmp_path / "game.kif", tmp_path / "game.csa"
    source.write_text(KIF, encoding="utf-8")
    assert keisei("convert", source, target).returncode == 0
    assert read_record(target) == read_record(source)
    assert read_record(target).sfen == START_SFEN


def test_ki2_and_positions_are_read(tmp_path: Path) -> None:
    source, position = tmp_path / "game.ki2", tmp_path / "position.sfen"
    source.write_text("先手：甲\n▲７六歩 △３四歩\n", encoding="utf-8")
    assert keisei("show", source).stdout.startswith("☗甲 ☖?: 2 moves, unfinished\n")
    assert keisei("convert", source, tmp_path / "game.csa").returncode == 0
    assert read_record(tmp_path / "game.csa").moves == read_record(source).moves
    assert "cannot write 'other.ki2': expected .csa" in refusal("convert", source, tmp_path / "other.ki2")
    position.write_text("4k4/9/4P4/9/9/9/9/9/4K4 b G 1\n", encoding="utf-8")
    assert "先手の持駒：金" in keisei("show", position).stdout
    source.write_text("▲７六歩 △３四歩\n▲５八金\n", encoding="utf-8")
    assert "bad ki2 line 2" in refusal("show", source)


def test_a_record_that_breaks_a_rule_is_refused_with_the_move_number(tmp_path: Path) -> None:
    path = tmp_path / "game.csa"
    path.write_text("PI\n+\n+7776FU\n-5159OU\n", encoding="utf-8")
    assert "move 2: illegal move 5a5i in position" in refusal("show", path)


def test_config_prints_the_effective_config(tmp_path: Path) -> None:
    done = keisei("config", "tiny", "training.learning_rate=5e-4", "run.name=first")
    assert (done.returncode, done.stderr) == (0, "")
    path = tmp_path / "effective.yaml"
    path.write_text(done.stdout, encoding="utf-8")
    assert load_config(path) == load_config("tiny", ["training.learning_rate=5e-4", "run.name=first"])
    assert keisei("config", "run.name=first", path).stdout == done.stdout
    assert keisei("config").stdout == to_yaml(AppConfig())


def test_config_describes_every_setting() -> None:
    assert keisei("config", "--describe").stdout == reference(AppConfig)
    assert "--describe takes no arguments, got tiny" in refusal("config", "--describe", "tiny")


def test_config_names_every_mistake_on_its_own_line() -> None:
    done = keisei("config", "gpu", "training.games=0", "training.learning_rat=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "keisei: training.learning_rat: unknown key; nearest is training.learning_rate\n"
        "keisei: training.games: given 0, expected a whole number >= 1, <= 100000\n"
    )
