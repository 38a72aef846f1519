"""The house rules that code review would forget: who may import whom, what stays out."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from keisei import _native

ROOT = Path(__file__).parents[1]

# Each room and the rooms it may use; a room may always use its own modules. A row names rooms, never a single
# module of another room, and there are no cycles: both are tested below. All rooms may use keisei.errors.
MAY_IMPORT = {
    "keisei": set(),
    "keisei.errors": set(),
    "keisei.shogi": {"keisei._native"},
    "keisei.envs": {"keisei.shogi"},
    "keisei.language": {"keisei.shogi"},
    "keisei.search": {"keisei.shogi", "keisei._native"},
    "keisei.config": set(),
    "keisei.core": {"keisei.shogi", "keisei.search", "keisei.config", "keisei._native"},
    "keisei.runs": {"keisei.shogi", "keisei.config", "keisei.core"},
    "keisei.evaluation.engines": set(),
    "keisei.evaluation.ratings": set(),
    "keisei.evaluation.players": {
        "keisei.shogi",
        "keisei.search",
        "keisei.core",
        "keisei.runs",
        "keisei.evaluation.engines",
    },
    "keisei.evaluation.matches": {
        "keisei.shogi",
        "keisei.config",
        "keisei.core",
        "keisei.evaluation.players",
        "keisei.evaluation.ratings",
    },
    "keisei.evaluation": {
        "keisei.runs",
        "keisei.evaluation.players",
        "keisei.evaluation.matches",
        "keisei.evaluation.ratings",
    },
    # Workers play; they know nothing of the trainer, the loop, files and console.
    "keisei.training.parallel": {"keisei.shogi", "keisei.config", "keisei.core"},
    # Hands of a Ray cluster, for whoever has workers.
    "keisei.training.cluster": {"keisei.config", "keisei.core", "keisei.training.parallel"},
    "keisei.training": {
        "keisei.shogi",
        "keisei.config",
        "keisei.core",
        "keisei.runs",
        "keisei.evaluation",
        "keisei.evaluation.players",
        "keisei.evaluation.matches",
        "keisei.evaluation.ratings",
        "keisei.training.parallel",
        "keisei.training.cluster",
    },
    "keisei.profiling": {
        "keisei.config",
        "keisei.core",
        "keisei.runs",
        "keisei.training",
        "keisei.training.parallel",
    },
    "keisei.usi": {"keisei.shogi", "keisei.language", "keisei.search", "keisei.core", "keisei.runs"},
    "keisei.analysis": {"keisei.shogi", "keisei.language", "keisei.search", "keisei.core", "keisei.runs"},
    "keisei.web": {
        "keisei.shogi",
        "keisei.language",
        "keisei.config",
        "keisei.runs",
        "keisei.evaluation.players",
        "keisei.evaluation.matches",
        "keisei.evaluation.ratings",
        "keisei.usi",
        "keisei.analysis",
    },
    "keisei.utils": {"keisei.core", "keisei.config"},
    "keisei.config_schema": {"keisei.config"},
    "keisei.cli": {
        "keisei.shogi",
        "keisei.language",
        "keisei.config",
        "keisei.core",
        "keisei.runs",
        "keisei.evaluation",
        "keisei.evaluation.players",
        "keisei.evaluation.matches",
        "keisei.evaluation.ratings",
        "keisei.training",
        "keisei.training.cluster",
        "keisei.profiling",
        "keisei.usi",
        "keisei.analysis",
        "keisei.web",
    },
    "keisei.train": {"keisei.cli"},
    "keisei.__main__": {"keisei.cli"},
}
GPL = {"cshogi", "shogi", "pyffish"}


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted((ROOT / "keisei").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def imports(path: Path) -> set[str]:
    """Return every module that a file imports, at any depth of the code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.add(str(node.module))
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "keisei"}
    return found - {"keisei"}


def room_of(module: str) -> str:
    return max((room for room in MAY_IMPORT if f"{module}.".startswith(f"{room}.")), key=len)


def belongs(module: str, room: str) -> bool:
    return f"{module}.".startswith(f"{room}.")


@pytest.mark.parametrize(("module", "path"), modules())
def test_dependencies_point_one_way(module: str, path: Path) -> None:
    room = room_of(module)
    used = {
        room_of(name) if name != "keisei._native" else name
        for name in imports(path)
        if belongs(name, "keisei")
    }
    assert not used - MAY_IMPORT[room] - {room, "keisei.errors"}


def test_the_table_names_rooms_only() -> None:
    named = set().union(*MAY_IMPORT.values()) - {"keisei._native"}
    assert named <= set(MAY_IMPORT)
    files = {name for name, path in modules() if path.name != "__init__.py"}
    assert not named & files


def cycle(table: dict[str, set[str]]) -> list[str]:
    """Return rooms that form a dependency cycle, if any."""
    done: set[str] = set()

    def visit(room: str, path: list[str]) -> list[str]:
        if room in path:
            return [*path[path.index(room) :], room]
        if room in done:
            return []
        found = next(
            (found for other in sorted(table.get(room, ())) if (found := visit(other, [*path, room]))), []
        )
        done.add(room)
        return found

    return next((found for room in sorted(table) if (found := visit(room, []))), [])


def test_no_rooms_need_each_other() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()}) == ["a", "b", "c", "a"]
    assert cycle(MAY_IMPORT) == []
    used: dict[str, set[str]] = {}
    for module, path in modules():
        names = {room_of(name) for name in imports(path) if belongs(name, "keisei")}
        used.setdefault(room_of(module), set()).update(names - {room_of(module)})
    assert cycle(used) == []


@pytest.mark.parametrize(("module", "path"), modules())
def test_no_gpl_library_is_imported_by_the_package(module: str, path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & GPL, module


def test_every_room_of_the_table_exists() -> None:
    names = {name for name, _ in modules()}
    assert set(MAY_IMPORT) <= names


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        ("keisei.shogi, keisei.language", {"torch", "numpy", "typer"}),
        ("keisei.shogi.vector, keisei.utils", {"torch", "gymnasium"}),
        ("keisei.envs, keisei.envs.shogi_v0", {"torch"}),
        ("keisei.runs.export", {"torch", "onnx", "onnxruntime"}),
        # Whoever plays on a CPU does without torch.
        ("keisei.usi.main, keisei.usi.play, keisei.usi.network_opponent", {"torch"}),
        ("keisei.cli.analysis", {"torch", "matplotlib"}),
        ("keisei.web.server, keisei.web.engine_process", {"torch", "matplotlib"}),
        ("keisei.cli.playing, keisei.cli.player_opponent", {"torch"}),
        ("keisei.evaluation, keisei.evaluation.players.player_specs, keisei.runs.load", {"torch"}),
        ("keisei.training.parallel.self_play_worker", {"torch"}),
        ("keisei.training.cluster.site, keisei.training.cluster.foreman", {"torch", "ray"}),
        ("keisei.training.collector, keisei.training.cluster.cluster_hands", {"ray"}),
        # Play needs no learner.
        ("keisei.training.parallel.self_play_worker", {"keisei.core.ppo_agent"}),
        ("keisei.runs.load, keisei.usi.thinking", {"keisei.core.ppo_agent"}),
    ],
)
def test_a_room_loads_no_more_than_it_needs(modules: str, unwanted: set[str]) -> None:
    code = f"import sys, {modules}; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("missing", "module"), [("gymnasium", "keisei.envs"), ("pettingzoo", "keisei.envs.shogi_v0")]
)
def test_a_missing_extra_is_named(missing: str, module: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "pip install '.[gym]' in Keisei's source directory" in done.stderr.splitlines()[-1]


def test_the_rules_in_c_know_nothing_of_python() -> None:
    for path in (ROOT / "native").iterdir():
        if not path.name.startswith("bindings"):
            assert "nanobind" not in path.read_text(encoding="utf-8"), path
            assert "Python.h" not in path.read_text(encoding="utf-8"), path


def test_the_stub_names_what_the_native_module_has() -> None:
    tree = ast.parse((ROOT / "keisei" / "_native.pyi").read_text(encoding="utf-8"))
    module = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            module.add(node.name)
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            real = {name for name in vars(getattr(_native, node.name)) if not name.startswith("__")}
            assert {name for name in members if not name.startswith("__")} == real, node.name
        elif isinstance(node, ast.FunctionDef):
            module.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            module.add(ast.unparse(node.target))
    assert module == {name for name in vars(_native) if not name.startswith("__")}
