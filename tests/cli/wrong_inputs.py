"""Files that something is wrong with, for the table of test_wrong_inputs."""

import os
import shutil
from pathlib import Path

from keisei.runs.find import SHIPPED_PATH

_KIF = "先手：甲\n後手：乙\n手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(33)\n   3 投了\n"
_STEP = "step_000007755520"  # the shipped network's
_RUNS = ("first", "truncated", "flipped", "manifest", "no-weights", "state", "no-run", "run-not-json")

_FILES: dict[str, str | bytes] = {
    "file": "x",
    # Records.
    "game.kif": _KIF,
    "game.csa": "N+甲\nPI\n+\n+7776FU\n-3334FU\n%TORYO\n",
    "match.usi": "startpos moves 7g7f\n\nstartpos moves 2g2f 8c8d\n",
    "utf16.kif": _KIF.encode("utf-16"),
    "half.kif": _KIF.encode()[:70],
    "half.csa": "PI\n+\n+777",
    "half.usi": "startpos moves 7g7f 3c",
    "illegal.kif": "1 ７六歩(77)\n2 ３四飛(82)\n",
    "illegal.csa": "PI\n+\n+7776FU\n-5159OU\n",
    "illegal.usi": "startpos moves 7g7f 7g7f\n",
    "illegal.ki2": "▲７六歩 △３四歩 ▲５五角成\n",
    "no-piece.csa": "PI\n+\n+9976XX\n",
    "turn.csa": "PI\n+\n-3334FU\n",
    "nul.kif": f"{_KIF}\0",
    "handicap.kif": "手合割：女王落ち\n1 ７六歩(77)\n",
    "no-moves.kif": "手合割：平手\n",
    "no-kings.sfen": "9/9/9/9/9/9/9/9/9 b - 1\n",
    "nonsense.sfen": "nonsense\n",
    "mated.usi": "sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1\n",
    "second-bad.sfen": "startpos\nnonsense\n",
    "moved.sfen": "startpos moves 7g7e\n",
    "bom.kif": b"\xef\xbb\xbf",
    # Configs.
    "broken.yaml": "training: [\n",
    "list.yaml": "- 1\n",
    "number.yaml": "5\n",
    "unknown.yaml": "training:\n  lr: 1\nnonsense: 2\n",
    "twice.yaml": "run:\n  seed: 1\n  seed: 2\n",
    "latin1.yaml": "run:\n  name: café\n".encode("latin-1"),
    "code.yaml": "run: !!python/object/apply:os.system ['true']\n",
    "deep.yaml": "[" * 3000,
    "tab.yaml": "run:\n\tseed: 1\n",
    "alias.yaml": "run: &a {}\nenv: *a\n",
    "two.yaml": "run: {}\n---\nrun: {}\n",
    "digits.yaml": f"training:\n  games: {'9' * 5000}\n",
    "date.yaml": "run:\n  seed: 2020-01-01\n",
    "null-key.yaml": "run:\n  ~: 2\n",
    "nul.yaml": "run:\n  seed: 1\0\n",
    # What runs leave.
    "weights.pt": b"PK\x03\x04nonsense",
    "report/report.json": "[]",
    "metrics-broken/metrics.jsonl": "{nonsense\n",
    "metrics-empty/metrics.jsonl": "",
    "metrics-list/metrics.jsonl": "[1]\n",
    "metrics-text/metrics.jsonl": '{"step": "x"}\n',
    "metrics-huge/metrics.jsonl": '{"step": 1e400}\n',
    "metrics-binary/metrics.jsonl": bytes(range(256)),
    "folder.png/file": "",
    "runs/nothing/run.json": '{"resumed": []}',
    **{f"runs/{name}/run.json": '{"resumed": []}' for name in _RUNS},
    "runs/run-not-json/run.json": "[",
}


def make_files(folder: Path) -> None:
    """Write them all, and runs whose checkpoints are the shipped network, damaged in several ways."""
    for name, content in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for kind in ("kif", "ki2", "csa", "usi", "sfen", "yaml"):
        (folder / f"empty.{kind}").touch()
        (folder / f"binary.{kind}").write_bytes(bytes(range(256)) * 4)
        (folder / f"folder.{kind}").mkdir()
        (folder / f"loop.{kind}").symlink_to(f"loop.{kind}")  # cannot be read, not even by root
    for name in ("pipe.kif", "pipe.csa", "pipe.sfen", "pipe.png", "piped/report.json"):  # nobody writes to it
        (folder / name).parent.mkdir(exist_ok=True)
        os.mkfifo(folder / name)
    (folder / "endless.yaml").symlink_to("/dev/zero")
    (folder / "endless.kif").symlink_to("/dev/zero")
    for name in _RUNS:
        shutil.copytree(SHIPPED_PATH, folder / "runs" / name / "checkpoints" / _STEP)
    for name in ("nothing", *_RUNS):
        for part in ("plots", "checkpoints"):
            (folder / "runs" / name / part).mkdir(exist_ok=True)
        (folder / "runs" / name / "lock").touch()
    (folder / "runs" / "no-run" / "run.json").unlink()
    _damage(folder / "runs")


def _damage(runs: Path) -> None:
    weights = "weights.safetensors"
    at = {name: runs / name / "checkpoints" / _STEP for name in _RUNS}
    content = (at["first"] / weights).read_bytes()
    (at["truncated"] / weights).write_bytes(content[:1000])
    (at["flipped"] / weights).write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    (at["no-weights"] / weights).unlink()
    (at["manifest"] / "manifest.json").write_text("{nonsense", encoding="utf-8")
    (at["state"] / "state.json").write_text("[]", encoding="utf-8")
