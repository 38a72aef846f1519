"""Plots of runs: what is drawn, what is refused, and that equal metrics give equal files."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_run import STEPS, fake_metrics, fake_parallel_metrics, fake_workers

from keisei.config.files import load_config, to_yaml
from keisei.evaluation.matches.match_conditions import conditions_of
from keisei.evaluation.matches.results_store import StoredGame
from keisei.evaluation.matches.tournament import Tournament
from keisei.training.listener import Update
from keisei.training.metrics import OPPONENTS, JsonlSink, MetricsError
from keisei.training.plot import Run, plot_rating, plot_run, plot_runs

COMMAND = Path(sys.executable).parent / "keisei"
PNG = b"\x89PNG\r\n\x1a\n"


def a_run(path: Path, *updates: Mapping[str, float]) -> Path:
    """A run's directory with the metrics of 60 updates, or of those given."""
    path.mkdir()
    sink = JsonlSink(path / "metrics.jsonl", None)
    for index, metrics in enumerate(updates or map(fake_metrics, range(1, 61)), start=1):
        sink.update(Update(index * STEPS, metrics))
    sink.close()
    return path


def words(svg: Path) -> list[str]:
    """The text in a plot: matplotlib leaves it in comments beside the outlines."""
    ET.parse(svg)
    return re.findall(r"<!-- (.*?) -->", svg.read_text(encoding="utf-8"))


def curves(svg: Path) -> int:
    """How many lines are drawn in the panels: those clipped to one."""
    return len(re.findall(r'<path d="[^"]*" clip-path="[^"]*" style="fill: none', svg.read_text()))


def test_a_run_is_drawn_into_its_own_directory(tmp_path: Path) -> None:
    run = a_run(tmp_path / "first")
    assert plot_run(run) == run / "plots" / "curves.png"
    assert (run / "plots" / "curves.png").read_bytes().startswith(PNG)


def test_every_panel_has_its_curves(tmp_path: Path) -> None:
    svg = plot_run(a_run(tmp_path / "first"), tmp_path / "out" / "first.svg")
    written = words(svg)
    for word in (
        "first",
        "against random",
        "against greedy",
        "draws",
        "black wins",
        "length of the training games, plies",
        "entropy of the policy, nats",
        "losses",
        "KL, clipped share, agreement with searches",
        "explained variance of the value",
        "moves per second",
    ):
        assert word in written, word
    assert "nothing yet" not in written


def test_a_run_with_workers_has_two_panels_more(tmp_path: Path) -> None:
    rows = [fake_parallel_metrics(update, fake_workers(update, 2)) for update in range(1, 51)]
    written = words(plot_run(a_run(tmp_path / "parallel", *rows), tmp_path / "parallel.svg"))
    for word in ("seconds of an update: the learner", "collect", "all workers together", "transport"):
        assert any(word in text for text in written), word
    assert "nothing yet" not in written
    serial = words(plot_run(a_run(tmp_path / "serial"), tmp_path / "serial.svg"))
    assert not any("seconds of an update" in text for text in serial)
    # Serial and parallel runs in one plot.
    both = [tmp_path / "serial", tmp_path / "parallel"]
    assert "transport" in words(plot_runs(both, tmp_path / "both.svg"))


def test_a_run_without_games_and_evaluations_is_drawn(tmp_path: Path) -> None:
    bare = [
        {
            name: value
            for name, value in fake_metrics(update).items()
            if not name.startswith(("games", "eval"))
        }
        for update in range(1, 4)
    ]
    written = words(plot_run(a_run(tmp_path / "bare", *bare), tmp_path / "bare.svg"))
    assert written.count("nothing yet") == 3
    one = words(plot_run(a_run(tmp_path / "one", {"loss/policy": float("nan")}), tmp_path / "one.svg"))
    assert one.count("nothing yet") == 8


def test_several_runs_share_the_panels(tmp_path: Path) -> None:
    runs = [a_run(tmp_path / name) for name in ("seed1", "seed2", "seed3")]
    together = plot_runs(runs, tmp_path / "together.svg")
    alone = plot_runs(runs[:1], tmp_path / "alone.svg")
    written = words(together)
    assert [written.count(name) for name in ("seed1", "seed2", "seed3", "3 runs")] == [1, 1, 1, 1]
    assert written.count("against random") == 1
    smooth, measured = 12, 4  # curves of one run; several runs are drawn without raw values
    assert curves(alone) - curves(plot_runs([a_run(tmp_path / "no", {})], tmp_path / "no.svg")) >= smooth
    assert curves(together) - curves(alone) >= 2 * smooth - measured


def test_several_runs_are_drawn_with_every_opponent_that_there_is(tmp_path: Path) -> None:
    scores = {f"evaluation/{opponent}_score": 0.1 for opponent in OPPONENTS}
    runs = [a_run(tmp_path / name, scores, scores) for name in ("seed1", "seed2")]
    written = words(plot_runs(runs, tmp_path / "together.svg"))
    assert [written.count(f"against {opponent}") for opponent in OPPONENTS] == [1] * len(OPPONENTS)


def test_equal_metrics_give_equal_pictures(tmp_path: Path) -> None:
    run = a_run(tmp_path / "first")
    for suffix in (".svg", ".png"):
        first, second = (plot_run(run, tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
        assert first == second
    assert b"<dc:date>" not in (tmp_path / "a.svg").read_bytes()
    assert plot_run(a_run(tmp_path / "other", fake_metrics(1)), tmp_path / "c.svg").read_bytes() != first


def test_smoothing_is_a_mean_over_the_last_updates(tmp_path: Path) -> None:
    rows = [{"games/finished": 1.0 + (index % 2), "games/draws": float(index % 2)} for index in range(100)]
    run = Run.read(a_run(tmp_path / "long", *rows))
    shares = run.ratio(run.column("games/draws"), run.column("games/finished"))
    assert list(shares[:4]) == pytest.approx([0.0, 1 / 3, 1 / 3, 1 / 3])
    assert list(run.smooth(run.column("games/finished"))[:3]) == pytest.approx([1.0, 1.5, 1.5])


def test_a_full_disk_is_told_with_the_picture_that_had_no_room(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", {"loss/policy": 1.0})
    picture = tmp_path / "a.svg"
    picture.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as failed:
        plot_runs([run], picture)
    assert failed.value.filename == str(picture)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MetricsError, match=r"missing is not a run: expected a file metrics\.jsonl in it$"):
        plot_run(tmp_path / "missing")
    (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(MetricsError, match=r"metrics\.jsonl is empty: the run has not finished an update$"):
        plot_run(tmp_path)
    with pytest.raises(MetricsError, match=r"expected a name ending in \.png or \.svg$"):
        plot_run(a_run(tmp_path / "first"), tmp_path / "first.gif")
    with pytest.raises(ValueError, match=r"^expected at least one run to plot, got none$"):
        plot_runs([], tmp_path / "none.svg")
    assert not list(tmp_path.rglob("*.png"))


def keisei(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60)


def test_the_command_names_the_picture_it_has_drawn(tmp_path: Path) -> None:
    first, second = a_run(tmp_path / "first"), a_run(tmp_path / "second")
    done = keisei("plot", first)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{first}/plots/curves.png\n", "")
    done = keisei("plot", first, second, "--out", tmp_path / "both.svg")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/both.svg\n", "")
    assert "2 runs" in words(tmp_path / "both.svg")


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    run = a_run(tmp_path / "first")
    for arguments, says in (
        (("plot", tmp_path / "missing"), "missing is not a run"),
        (("plot", run, "--out", tmp_path / "first.gif"), "expected a name ending in .png or .svg"),
        (("plot", run, run), "--out is missing: expected a file for the picture of 2 runs"),
    ):
        done = keisei(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("keisei: ")
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


def test_help_loads_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys; sys.argv = ['keisei', '--help']\n"
        "from keisei.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'torch', 'matplotlib', 'numpy'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert "plot" in done.stdout


def test_the_rating_has_a_picture_of_its_own(tmp_path: Path) -> None:
    config = load_config("tiny")
    (tmp_path / "config.yaml").write_text(to_yaml(config))
    assert plot_rating(tmp_path) is None
    conditions, seed = conditions_of(config), config.run.seed
    with Tournament(tmp_path / "evaluation", conditions, seed) as tournament:
        tournament.results.add_player("random", "random", None, {})
        for step in (1024, 2048):
            tournament.results.add_player(f"network {step}", f"first@{step}", step, {})
            games = [
                StoredGame(f"network {step}", "random", str(conditions), seed, pair, winner, "checkmate", 50)
                for pair, winner in enumerate((0, 0, 1, None))
            ]
            assert plot_rating(tmp_path) is None  # a curve takes two points
            tournament.results.add(games)
    assert plot_rating(tmp_path) == tmp_path / "plots" / "rating.png"
    assert (tmp_path / "plots" / "rating.png").read_bytes().startswith(b"\x89PNG")
