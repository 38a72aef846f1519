"""`keisei analyze` as a real process, with a network that was trained for a second."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from training_runs import KEISEI, keisei, the_run, train

from keisei.shogi import read_record

GAMES = {
    "game.kif": "先手：甲\n1 ７六歩(77)\n2 ３四歩(33)\n3 ２二角成(88)\n4 同　銀(31)\n5 投了\n",
    "game.ki2": "先手：甲\n▲７六歩 △３四歩 ▲２二角成 △同銀\nまで4手で後手の勝ち\n",
    "game.csa": "N+甲\nPI\n+\n+7776FU\n-3334FU\n+8822UM\n-3122GI\n%TORYO\n",
    "game.usi": "startpos moves 7g7f 3c3d 8h2b+ 3a2b\n",
}
QUICK = [
    "training.total_timesteps=1024",
    "run.checkpoint_every=512",
    "evaluation.every=0",
    "evaluation.final_games=0",
    "run.console=plain",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a run and games."""
    folder = tmp_path_factory.mktemp("analysis")
    train(folder, QUICK)
    for name, text in GAMES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def rows(output: str) -> list[str]:
    return re.findall(r"^ +\d+ [☗☖]\S+ +\d+ % +\d+ %", output, re.MULTILINE)


def test_every_format_gives_the_same_analysis(folder: Path) -> None:
    shown = {}
    for name in GAMES:
        done = keisei("analyze", name, "--network", "latest", "--visits", "20", cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        shown[name] = rows(done.stdout)
    assert len(shown["game.kif"]) == 4
    assert len(set(map(tuple, shown.values()))) == 1
    done = keisei("analyze", "game.kif", "--network", "latest", "--visits", "20", cwd=folder)
    assert done.stdout.startswith("☗甲 ☖?: 4 moves, white wins by resignation\n")
    assert "@1024, 20 visits per position\n" in done.stdout
    assert "\n  50 % |" in done.stdout


def test_comments_and_a_picture_are_written(folder: Path) -> None:
    done = keisei(
        *("analyze", "game.ki2", "--network", str(the_run(folder)), "--visits", "20", "--missed", "0"),
        *("--out", "out.kif", "--plot", "out.png"),
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "with comments: out.kif\ngraph: out.png\n" in done.stdout
    record = read_record(folder / "out.kif")
    assert record.moves == read_record(folder / "game.ki2").moves
    assert re.fullmatch(r"\S+@1024, 20 visits: Black's win rate is \d+ %", record.comments[0])
    assert all("Black's win rate" in record.comments[number] for number in range(1, 5))
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")
    again = keisei("analyze", "game.ki2", "--out", "out.kif", cwd=folder)
    assert again.returncode == 2
    assert "--out is out.kif, which already exists" in again.stderr


def test_an_analysis_is_told_in_japanese(folder: Path) -> None:
    run = the_run(folder)
    done = keisei(
        *("analyze", "game.kif", "--network", f"{run}@1024", "--against", f"{run}@512", "--visits", "20"),
        *("--missed", "0", "--out", "japanese.kif", "--lang", "ja"),
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("☗甲 ☖?: 4手、後手の勝ち（投了）\n")
    assert "@1024、1局面あたり20回探索\n" in done.stdout
    assert re.search(r"^手数 +先手 +手番 +損失  o +先手 最善 +最善の読み筋$", done.stdout, re.MULTILINE)
    assert re.search(r"^   3 ▲２二角成 +\d+ % +\d+ % ", done.stdout, re.MULTILINE)
    assert re.search(r"^   4 △同　銀 +\d+ % +\d+ % ", done.stdout, re.MULTILINE)
    assert re.search(
        r"^☖後手: 2手のうち最善手 \d、逃した好手 \d、平均損失 \d+\.\d ポイント$", done.stdout, re.MULTILINE
    )
    assert "コメント付きの棋譜: japanese.kif\n" in done.stdout
    comments = read_record(folder / "japanese.kif").comments
    assert re.search(r"@1024、20回探索: 先手の勝率 \d+ %", comments[0])
    assert "先手の勝率" in comments[4]


def test_two_networks_are_compared(folder: Path) -> None:
    run = the_run(folder)
    done = keisei(
        *("analyze", "game.csa", "--visits", "20", "--network", f"{run}@1024", "--against", f"{run}@512"),
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^\* \S+@1024, 20 visits.*\no \S+@512, 20 visits", done.stdout, re.MULTILINE)
    assert re.search(r"^   1 ☗7g7f( +\d+ %){2} +(\d+ +)?\d+ % [1-9]", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("missing.kif",), "missing.kif: No such file or directory"),
        (("game.kif", "--network", "nowhere"), "no checkpoint at nowhere"),
        (
            ("game.kif", "--out", "out.usi"),
            "--out is out.usi, expected a file that ends in .kif, .kifu, .csa",
        ),
        (("game.kif", "--out", "nowhere/out.kif"), "but there is no directory nowhere"),
        (("game.kif", "--plot", "out.txt"), "cannot draw out.txt: expected a name that ends in .png or .svg"),
        (("game.kif", "--visits", "0"), "visits"),
        (("empty.usi",), "empty.usi has no moves: expected a game"),
        (("game.txt",), "unknown record format 'game.txt'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(folder: Path, arguments: tuple[str, ...], why: str) -> None:
    (folder / "empty.usi").write_text("startpos\n")
    done = keisei("analyze", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("keisei: ")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_neither_torch_nor_without_a_picture_matplotlib_is_needed(folder: Path) -> None:
    script = (
        "import sys; sys.modules['torch'] = sys.modules['matplotlib'] = None\n"
        "sys.argv = ['keisei', 'analyze', 'game.kif', '--network=latest', '--visits', '5', *sys.argv[1:]]\n"
        "from keisei.cli import main; main()"
    )
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    refused = subprocess.run(
        [*command, "--plot", "no.png"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "keisei: this command needs matplotlib, which is not installed: "
        "pip install '.[train]' in Keisei's source directory\n"
    )


def test_progress_is_shown_on_a_terminal(folder: Path) -> None:
    master, slave = pty.openpty()
    command = [KEISEI, "analyze", "game.kif", "--network=latest", "--visits", "5"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=slave, timeout=60, check=True)
    os.close(slave)
    shown = os.read(master, 10_000).decode()
    os.close(master)
    assert "@1024: 0 of 5 positions" in shown
    assert shown.endswith("5 of 5 positions\r\x1b[K")
    assert b"positions" not in done.stdout
