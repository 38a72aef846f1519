"""Compare settings at equal CPU-seconds: python scripts/compare_settings.py STUDY.yaml --out studies/first

A study trains each variant with each seed for the same CPU-seconds, one core each, and plays matches with the
networks. Run the same command again to continue: finished runs and games are kept, unfinished ones go on.

    cpu_seconds: 360
    config: default                       # a shipped config, or a YAML file
    settings: [env.late_start_share=0.5]  # of all variants
    variants:
      plain: []
      more searches: [training.search.share=0.7]
      PPO: [config=ppo]                   # another config, then its settings
    seeds: [1, 2]
    choosing: {opponents: [greedy], games: 200}
    reporting: {opponents: [material, alphabeta-1], games: 200, visits: [0, 100]}

Settings are chosen by the matches of `choosing`; only `--report` plays those of `reporting`, whose opponents
must be others, so that what is reported was not chosen by. Visits 0 is the policy alone. `--curve` also rates
the checkpoints of every run, by its policy alone, and draws Elo over CPU-seconds: the mean of a variant's
seeds, and a band from the worst to the best. Ctrl-C saves what is being trained; after a kill the last few
seconds of a run are not in its CPU-seconds.

How many moves a variant gets is measured first, by short trainings. The table has the CPU-seconds that each
run really took. The workers of a run would not be seen by the clock, so a run has none.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from matplotlib.figure import Figure

from keisei.config.config_errors import ConfigError
from keisei.config.files import load_config
from keisei.core.device import cores
from keisei.errors import UserError, refuse_special
from keisei.evaluation.evaluate import MatchSettings, evaluate
from keisei.evaluation.matches.match_result import score_interval
from keisei.evaluation.players.player_specs import make_player
from keisei.evaluation.players.usi_player import UsiPlayer
from keisei.profiling.processes import cpu_seconds
from keisei.runs.checkpoint import checkpoint_steps
from keisei.runs.durable import write_durably

# One process with one thread: its CPU time is all there is.
ALONE = [
    "run.threads=1",
    "run.device=cpu",
    "run.console=off",
    "run.loggers=[]",
    "training.parallel.enabled=false",
    "evaluation.every=0",
    "evaluation.final_games=0",
]
PILOT_MOVES, PILOT_SECONDS = 4_096, 20
CHECKPOINTS = 12  # of a run
NOTE_EVERY = 5.0  # seconds between two notes of what a process has used so far

# A training that outlives this script would use CPU-seconds that nobody counts, so it saves and ends with it.
# Not by die_with_parent, which kills, and whose import would leave a second in which nothing ends it.
TRAIN = """
import ctypes, signal
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
from keisei.cli import main
main()
"""
OWN_CONFIG = "config="  # begins a variant's entry that is no setting


Point = tuple[float, float]  # CPU-seconds, Elo


class StudyError(UserError):
    """A study that makes no sense."""


@dataclass(frozen=True)
class Matches:
    """Matches of every run: against whom, how many games, and by how many visits of search, 0 for none."""

    opponents: tuple[str, ...]
    games: int = 200
    visits: tuple[int, ...] = (0,)

    def check(self, name: str) -> None:
        """StudyError if they cannot be played; name: whose they are."""
        if not _listed(self.opponents, str) or not 0 < len(self.opponents) == len(set(self.opponents)):
            raise StudyError(f"{name}: opponents is {self.opponents!r}, expected a list of different players")
        if type(self.games) is not int or self.games < 2 or self.games % 2:
            raise StudyError(f"{name}: games is {self.games!r}, expected an even number, at least 2")
        if not _listed(self.visits, int) or not self.visits or min(self.visits) < 0:
            raise StudyError(f"{name}: visits is {self.visits!r}, expected a list of numbers, 0 or more")


@dataclass(frozen=True)
class Study:
    """What is compared."""

    cpu_seconds: float
    variants: dict[str, list[str]]
    seeds: list[int]
    config: str = "default"
    settings: list[str] = field(default_factory=list)
    choosing: Matches = Matches(("greedy",))
    reporting: Matches | None = None

    @classmethod
    def read(cls, path: Path) -> "Study":
        """Return the study in a file; StudyError if it is none."""
        try:
            refuse_special(path)
            given = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise StudyError(f"{path}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise StudyError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(given, dict):
            raise StudyError(f"{path}: expected cpu_seconds, variants and seeds")
        for name in ("choosing", "reporting"):
            if name not in given:
                continue
            if not isinstance(given[name], dict):
                raise StudyError(f"{path}: {name} is {given[name]!r}, expected opponents, games and visits")
            try:
                lists: dict[str, Any] = {
                    key: tuple(value) if isinstance(value, list) else value
                    for key, value in given[name].items()
                }
                given[name] = Matches(**lists)
            except TypeError as error:
                raise StudyError(f"{path}: {name}: {error}") from error
        try:
            study = cls(**given)
        except TypeError as error:
            raise StudyError(f"{path}: {str(error).removeprefix('Study.__init__() ')}") from error
        study.check()
        return study

    def check(self) -> None:
        """StudyError or ConfigError if something in it makes no sense."""
        variants = self.variants.values() if isinstance(self.variants, dict) else [None]
        lists = all(_listed(settings, str) for settings in (self.settings, *variants))
        if not lists or not isinstance(self.seeds, list):
            raise StudyError("expected a list of settings for each variant and for all, and one of seeds")
        seconds = self.cpu_seconds
        if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise StudyError(f"cpu_seconds is {seconds!r}, expected a number above 0")
        if not isinstance(self.config, str):
            raise StudyError(f"config is {self.config!r}, expected a shipped config or a file")
        if not self.variants or not self.seeds:
            raise StudyError("expected at least one variant and seed")
        for variant in self.variants:
            if not isinstance(variant, str):
                raise StudyError(f"variant {variant!r}: expected a text; write it in quotes")
            if not variant.replace(" ", "").replace("-", "").replace("_", "").replace(".", "").isalnum():
                raise StudyError(f"variant {variant!r}: expected letters, digits, spaces, dots and hyphens")
        names = [run_name(*run) for run in self.runs()]
        if len(set(names)) < len(names):
            raise StudyError("variants or seeds have the same name")
        for variant, seed in self.runs():
            load_config(self.config_of(variant), [*self.overrides(variant), f"run.seed={seed}"])
        self.choosing.check("choosing")
        if self.reporting is not None:
            self.reporting.check("reporting")
            both = sorted(set(self.choosing.opponents) & set(self.reporting.opponents))
            if both:
                raise StudyError(f"{', '.join(both)}: an opponent for choosing cannot be one for reporting")

    def config_of(self, variant: str) -> str:
        """Return the config that a variant's settings change: its own, or that of the study."""
        own = [text for text in self.variants[variant] if text.startswith(OWN_CONFIG)]
        return own[-1].removeprefix(OWN_CONFIG) if own else self.config

    def overrides(self, variant: str) -> list[str]:
        """Return the settings of a variant."""
        own = [text for text in self.variants[variant] if not text.startswith(OWN_CONFIG)]
        return [*self.settings, *own, *ALONE]

    def plan(self, variant: str) -> str:
        """Return what determines a variant's runs, as a text to compare."""
        return json.dumps([self.config_of(variant), self.overrides(variant), self.cpu_seconds])

    def runs(self) -> Iterator[tuple[str, int]]:
        """Yield every variant with every seed."""
        for seed in self.seeds:
            for variant in self.variants:
                yield variant, seed


class Workshop:
    """A study and the directory where its results are."""

    def __init__(self, study: Study, out: Path, jobs: int) -> None:
        self.study, self.out, self._jobs = study, out, jobs
        self._writing = threading.Lock()
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"{out}: {error.strerror}") from error

    def check_opponents(self) -> None:
        """PlayerError if there is no such opponent; not for networks that the study itself will train."""
        for matches in (self.study.choosing, self.study.reporting):
            for text in matches.opponents if matches else ():
                if Path(text).resolve().is_relative_to(self.out.resolve()):
                    continue
                player = make_player(text, 1)
                try:
                    if isinstance(player, UsiPlayer):
                        player.start()
                finally:
                    player.close()

    # Training

    def train(self) -> None:
        """Train what is not finished, `jobs` at a time."""
        for variant in self.study.variants:
            before = self._known("plans").get(variant)
            if before not in (None, self.study.plan(variant)):
                raise StudyError(f"{self.out} has runs of {variant!r} with other settings: take another one")
            self._note("plans", variant, self.study.plan(variant))
        with ThreadPoolExecutor(self._jobs) as pool:
            list(pool.map(self._moves_of, self.study.variants))
            list(pool.map(lambda run: self._train(*run), self.study.runs()))

    def _moves_of(self, variant: str) -> int:
        """Return how many moves a variant trains on in the CPU-seconds, measured once."""
        if variant not in self._known("moves"):
            # The difference of two: without what a process needs to start, which varies by seconds.
            least, most = PILOT_MOVES, 3 * PILOT_MOVES
            start, enough = self._pilot(variant, least), min(PILOT_SECONDS, self.study.cpu_seconds / 10)
            while (spent := self._pilot(variant, most) - start) < enough:
                most *= 3
            self._note("moves", variant, round((most - least) / spent * self.study.cpu_seconds))
        return int(self._known("moves")[variant])

    def _pilot(self, variant: str, moves: int) -> float:
        """Return the CPU-seconds of a short training."""
        name = run_name(f"pilot {variant} {moves}", 1)
        if name not in self._known("pilots"):
            shutil.rmtree(self.run_path(name), ignore_errors=True)
            self._forget_time(name)
            self._note("pilots", name, self._process(name, variant, 1, moves))
        return float(self._known("pilots")[name])

    def _train(self, variant: str, seed: int) -> None:
        name = run_name(variant, seed)
        if name in self._known("seconds"):
            return
        total = self._moves_of(variant)
        say(f"{name}: {total:,} moves")
        every = max(total // CHECKPOINTS, 1)
        spent = self._process(
            name, variant, seed, total, f"run.checkpoint_every={every}", "run.keep_checkpoints=100"
        )
        self._note("seconds", name, round(spent, 1))
        say(f"{name}: {spent:,.0f} CPU-seconds")

    def _process(self, name: str, variant: str, seed: int, total: int, *overrides: str) -> float:
        """Train, or go on training, and return the CPU-seconds of all its processes so far."""
        checkpoints = self.run_path(name) / "checkpoints"
        if checkpoints.is_dir() and checkpoint_steps(checkpoints):
            what = ["--resume", str(self.run_path(name))]
        else:
            shutil.rmtree(self.run_path(name), ignore_errors=True)  # it has nothing to go on with
            self._forget_time(name)
            what = ["--config", self.study.config_of(variant), *self.study.overrides(variant), *overrides]
            what += [f"run.seed={seed}", f"training.total_timesteps={total}"]
            what += [f"run.directory={self.out / 'runs'}", f"run.name={name}"]
        before = float(self._known("unfinished").get(name, 0.0))
        with tempfile.TemporaryFile("w+") as errors:
            # The directory's own thread counts: numpy and torch would start one for each core.
            child = subprocess.Popen(
                [sys.executable, "-c", TRAIN, "train", *what],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            spent = before + self._waited_for(child, name, before)
            self._note("unfinished", name, round(spent, 1))
            errors.seek(0)
            if child.returncode:
                raise StudyError(f"{name} ended with code {child.returncode}: {errors.read().strip()}")
        return spent

    def _waited_for(self, child: "subprocess.Popen[bytes]", name: str, before: float) -> float:
        """Return the CPU-seconds of a process at its end.

        They are noted meanwhile too, in addition to those before, in case that this script is killed.
        """
        noted = time.monotonic()
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return usage.ru_utime + usage.ru_stime
            time.sleep(0.1)
            if time.monotonic() >= noted + NOTE_EVERY:
                noted = time.monotonic()
                self._note("unfinished", name, round(before + cpu_seconds(child.pid), 1))

    def run_path(self, name: str) -> Path:
        """Return where a run is."""
        return self.out / "runs" / name

    # Matches

    def play(self, kind: str, matches: Matches) -> list[dict[str, Any]]:
        """Play the matches that are missing; return a row for each variant, opponent and number of visits."""
        rows = []
        for visits in matches.visits:
            with ThreadPoolExecutor(self._jobs) as pool:
                played = partial(self._played, kind, matches, visits)
                reports = list(pool.map(lambda run: played(*run), self.study.runs()))  # noqa: B023
            for variant in self.study.variants:
                own = [
                    report
                    for report, (of, _) in zip(reports, self.study.runs(), strict=True)
                    if of == variant
                ]
                for i, opponent in enumerate(matches.opponents):
                    rows.append(self._row(variant, opponent, visits, [report[i] for report in own]))
        return rows

    def _played(
        self, kind: str, matches: Matches, visits: int, variant: str, seed: int
    ) -> list[dict[str, Any]]:
        name = run_name(variant, seed)
        player = f"{self.run_path(name)}@latest" + (f";visits={visits}" if visits else "")
        directory = self.out / "matches" / f"{kind} {name} {visits}"
        path = evaluate([player], matches.opponents, matches.games, directory, MatchSettings(), quiet)
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["matches"]
        return found

    def _row(
        self, variant: str, opponent: str, visits: int, matches: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the score over all seeds, and that of each."""
        pairs = [sum(counts) for counts in zip(*(match["pairs"] for match in matches), strict=True)]
        scores = [
            (match["wins"] + match["draws"] / 2) / (match["wins"] + match["draws"] + match["losses"])
            for match in matches
        ]
        names = [run_name(variant, seed) for seed in self.study.seeds]
        return {
            "variant": variant,
            "opponent": opponent,
            "visits": visits,
            "score": sum(scores) / len(scores),
            "interval": score_interval(pairs),
            "scores": scores,
            "moves": self._moves_of(variant),
            "seconds": [self._known("seconds")[name] for name in names],
        }

    def rated(self, matches: Matches) -> tuple[dict[str, list[list[Point]]], dict[str, float]]:
        """Return the rated checkpoints of each variant's runs, and the Elo of the opponents by name.

        All games count in one rating, so that curves have the same scale.
        """
        paths, players = {}, []
        for variant, seed in self.study.runs():
            name = run_name(variant, seed)
            for step in checkpoint_steps(self.run_path(name) / "checkpoints"):
                player = f"{self.run_path(name)}@{step}"
                players.append(player)
                paths[str(self.run_path(name) / "checkpoints" / f"step_{step:012d}")] = (name, step)
        directory = self.out / "matches" / "curve"
        path = evaluate(players, matches.opponents, matches.games, directory, MatchSettings(), quiet)
        report = json.loads(path.read_text(encoding="utf-8"))
        elo = {one["player"]: one["elo"] for one in report["ratings"]}
        points: dict[str, list[Point]] = {}
        for match in report["matches"]:
            name, step = paths[match["player"]["checkpoint"]]
            rating = elo[match["player"]["identity"]]
            seconds = (
                self._known("seconds")[name] * step / max(of for run, of in paths.values() if run == name)
            )
            if rating is not None and (seconds, rating) not in points.setdefault(name, []):
                points[name].append((seconds, rating))
        curves = {
            variant: [sorted(points.get(run_name(variant, seed), [])) for seed in self.study.seeds]
            for variant in self.study.variants
        }
        known = {name: elo.get(name) for name in matches.opponents}
        return curves, {name: rating for name, rating in known.items() if rating is not None}

    # What is known

    def _known(self, what: str) -> dict[str, Any]:
        path = self.out / "known.json"
        with self._writing:
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found: dict[str, Any] = known.get(what, {})
        return found

    def _forget_time(self, name: str) -> None:
        self._note("unfinished", name, 0.0)

    def _note(self, what: str, name: str, value: float | str) -> None:
        path = self.out / "known.json"
        with self._writing:
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            known.setdefault(what, {})[name] = value
            write_durably(path, (json.dumps(known, indent=1) + "\n").encode())


def _listed(given: object, kind: type) -> bool:
    """Return whether this is a list of such things, as YAML has them: True is no number."""
    return isinstance(given, list | tuple) and all(type(one) is kind for one in given)


def run_name(variant: str, seed: int) -> str:
    """Return the name of a run."""
    return f"{variant.replace(' ', '_')}-seed{seed}"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = [
        "| variant | moves | CPU-seconds | against | score, 95 % interval of the games | each seed |",
        "|---|---:|---:|---|---:|---|",
    ]
    for row in rows:
        low, high = row["interval"]
        against = row["opponent"] + (f", with {row['visits']} visits" if row["visits"] else "")
        seconds = row["seconds"]
        lines.append(
            f"| {row['variant']} | {row['moves']:,} | {sum(seconds) / len(seconds):,.0f} | {against} | "
            f"{100 * row['score']:.1f} % ({100 * low:.0f}–{100 * high:.0f}) | "
            f"{', '.join(f'{100 * score:.1f}' for score in row['scores'])} |"
        )
    return "\n".join(lines) + "\n"


def draw(curves: Mapping[str, Sequence[Sequence[Point]]], lines: Mapping[str, float], path: Path) -> None:
    """Draw the Elo of variants over CPU-seconds, with opponents as horizontal lines."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for number, (variant, seeds) in enumerate(curves.items()):
        rated = [points for points in seeds if points]
        if not rated:
            continue
        first, last = max(points[0][0] for points in rated), min(points[-1][0] for points in rated)
        seconds = np.linspace(first, last, 50)
        elo = np.array(
            [
                np.interp(seconds, [at for at, _ in points], [rating for _, rating in points])
                for points in rated
            ]
        )
        label = f"{variant}, mean of {len(rated)} seeds" if len(rated) > 1 else variant
        axes.plot(seconds, elo.mean(0), color=f"C{number}", label=label)
        axes.fill_between(seconds, elo.min(0), elo.max(0), color=f"C{number}", alpha=0.2, linewidth=0)
    for name, rating in lines.items():
        axes.axhline(rating, color="grey", linestyle="--", linewidth=0.9)
        axes.text(1.01, rating, name, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    axes.set_xlabel("CPU-seconds of training")
    axes.set_ylabel("Elo of the policy alone (random is 0)")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=120, metadata={"Software": None})


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def quiet(_: str) -> None:
    """Say nothing."""


def main() -> int:
    """Run a study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=Path, metavar="STUDY.yaml")
    parser.add_argument("--out", type=Path, required=True, help="where runs, matches and tables go")
    parser.add_argument(
        "--jobs", type=int, default=cores(), help="how many run at once; default: one per core"
    )
    parser.add_argument("--report", action="store_true", help="play the matches of `reporting` too")
    parser.add_argument("--curve", action="store_true", help="rate all checkpoints and draw curve.png")
    arguments = parser.parse_args()
    try:
        study = Study.read(arguments.study)
        if arguments.jobs < 1:
            raise StudyError(f"jobs is {arguments.jobs}, expected 1 or more")
        if (arguments.report or arguments.curve) and study.reporting is None:
            raise StudyError(f"{arguments.study} has no `reporting`")
        workshop = Workshop(study, arguments.out, arguments.jobs)
        workshop.check_opponents()
        workshop.train()
        kinds = {"choosing": study.choosing}
        if arguments.report and study.reporting is not None:
            kinds["reporting"] = study.reporting
        for kind, matches in kinds.items():
            rows = workshop.play(kind, matches)
            write_durably(arguments.out / f"{kind}.json", (json.dumps(rows, indent=1) + "\n").encode())
            write_durably(arguments.out / f"{kind}.md", table(rows).encode())
            say(f"\n{kind}\n\n{table(rows)}")
        if arguments.curve and study.reporting is not None:
            draw(*workshop.rated(study.reporting), arguments.out / "curve.png")
            say(f"curves: {arguments.out / 'curve.png'}")
    except (UserError, ConfigError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted; run the same command to continue", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
