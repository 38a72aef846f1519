"""Configs from files and overrides: what they mean, what is rejected and where, and the round trip."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from keisei.config.config_errors import ConfigError
from keisei.config.fields import as_text, reference, room_of, settings
from keisei.config.files import (
    SHIPPED,
    UNSAFE_TO_CHANGE,
    Difference,
    differences,
    load_config,
    refuse_unsafe,
    to_yaml,
)
from keisei.config.schema import AppConfig
from keisei.utils import load_config as load_config_of_utils

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "keisei" / "config" / "presets"


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(source: str | Path | None, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(source, overrides)
    return str(caught.value)


def test_without_arguments_the_defaults() -> None:
    assert load_config() == AppConfig()
    assert load_config_of_utils is load_config


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "null\n", "training:\n", "training:\n  parallel:\n"]
)
def test_a_file_that_says_nothing_is_the_defaults(tmp_path: Path, text: str) -> None:
    assert load_config(written(tmp_path, text)) == AppConfig()


def test_a_file_changes_only_what_it_names(tmp_path: Path) -> None:
    path = written(
        tmp_path, "training:\n  games: 32\n  parallel: {num_workers: 2}\nrun: {numerics: auto+compile}\n"
    )
    expected = AppConfig()
    expected.training.games = 32
    expected.training.parallel.num_workers = 2
    expected.run.numerics = "auto+compile"
    assert load_config(path) == expected
    assert load_config(str(path)) == expected


def test_plain_words_of_yaml_mean_what_the_field_says(tmp_path: Path) -> None:
    text = (
        "env: {declaration: off}\ntraining: {learning_rate: 1e-4, total_timesteps: 3e6, value_clip: ~, "
        "normalize_advantages: no}\n"
        "run: {name: 2026-01-01, seed: 0_7, console: off}\n"
    )
    config = load_config(written(tmp_path, text))
    assert (config.env.declaration, config.run.console, config.run.name) == ("off", "off", "2026-01-01")
    assert (config.training.learning_rate, config.training.total_timesteps) == (1e-4, 3_000_000)
    assert (config.run.seed, config.training.normalize_advantages) == (7, False)
    assert load_config(written(tmp_path, "env: {declaration: 24}")).env.declaration == "24"
    assert load_config(written(tmp_path, "run: {name: 'null'}")).run.name == "null"


def test_overrides_count_over_the_file_and_the_last_one_over_the_others(tmp_path: Path) -> None:
    path = written(tmp_path, "training: {games: 32, gamma: 0.9, max_minutes: 5}\n")
    config = load_config(
        path,
        [
            "training.gamma=0.5",
            "training.learning_rate=1e-3",
            "training.max_minutes=null",
            "training.normalize_advantages=false",
            "training.gamma=0.75",
            "evaluation.opponents=[greedy]",
            "run.name=a=b",
            "run.device=cuda:1",
            "training.parallel={num_workers: 3, sync_interval: 2}",
        ],
    )
    assert (config.training.games, config.training.gamma, config.training.learning_rate) == (32, 0.75, 0.001)
    assert config.training.max_minutes is None
    assert config.training.normalize_advantages is False
    assert config.evaluation.opponents == ["greedy"]
    assert (config.run.name, config.run.device) == ("a=b", "cuda:1")
    assert (config.training.parallel.num_workers, config.training.parallel.model_sync_interval) == (3, 2)


OLDER = [
    ("max_queue_size", "queue_maxsize", 7),
    ("timeout_seconds", "worker_timeout", 7.0),
    ("sync_interval", "model_sync_interval", 7),
]


@pytest.mark.parametrize(("older", "today", "value"), OLDER)
def test_an_older_name_means_the_same(tmp_path: Path, older: str, today: str, value: float) -> None:
    room = "training.parallel"
    file = written(tmp_path, f"training:\n  parallel:\n    {older}: {value}\n    num_workers: 2\n")
    expected = load_config(None, [f"{room}.{today}={value}", f"{room}.num_workers=2"])
    assert getattr(expected.training.parallel, today) == value
    assert load_config(file) == expected
    assert load_config(None, [f"{room}.{older}={value}", f"{room}.num_workers=2"]) == expected
    # An override takes precedence over the file, whichever name each of them uses.
    for name in (older, today):
        assert getattr(load_config(file, [f"{room}.{name}=9"]).training.parallel, today) == 9
    file = written(tmp_path, f"training: {{parallel: {{{today}: 5}}}}\n")
    assert getattr(load_config(file, [f"{room}.{older}=9"]).training.parallel, today) == 9


@pytest.mark.parametrize(("older", "today", "value"), OLDER)
def test_an_older_name_beside_todays_is_refused(tmp_path: Path, older: str, today: str, value: float) -> None:
    room = "training.parallel"
    file = written(tmp_path, f"training:\n  parallel:\n    {today}: {value}\n    {older}: {value}\n")
    assert refusal(file) == f"{room}.{older}: an older name of {room}.{today}, which is also given"
    said = refusal(None, f"{room}.{older}=1", f"{room}.{today}=1")
    assert said == f"{room}.{today}: also given as {room}.{older}, which is the same setting"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("training:\n  games: [1\n", ":3: not YAML: expected ',' or ']', but got '<stream end>'"),
        ("training: {games: 32\nrun: 1}\n", ":2: not YAML: expected ',' or '}', but got ':'"),
        ("training:\n\tgames: 1\n", ":2: not YAML: found character '\\t' that cannot start any token"),
        ("a: 1\n---\nb: 2\n", ":2: not YAML: but found another document"),
        (b"run: {name: \xff}\n", ": not YAML: "),
        (b"run: {name: \x00}\n", ": not YAML: "),
        ("- training\n- games\n", ":1: given [training, games], expected sections such as `training:`"),
        ("training", ":1: given training, expected sections such as `training:`"),
        ("run:\n  seed: 1\n  seed: 2\n", ":3: the key seed is given twice"),
        ("run: {seed: 1}\n\nrun: {seed: 1}\n", ":3: the key run is given twice"),
        ("run:\n  ~: 1\n", ":2: the key null is not text"),
        ("run:\n  [a, b]: 1\n", ":2: the key [a, b] is not text"),
        ("run:\n  {a: b}: 1\n", ":2: the key {a: b} is not text"),
        ("env: {max_moves: &n 4}\nevaluation: {max_moves: *n}\n", ":1: aliases to an anchor"),
        ("training: &t\n  parallel: *t\n", ":1: aliases to an anchor"),
        ("run: !!python/object/apply:os.getpid []\n", ":1: the tag !!python/object/apply:os.getpid is not"),
        ("run:\n  name: !mine x\n", ":2: the tag !mine is not supported"),
        ("[" * 5000, ": nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, says: str
) -> None:
    path = written(tmp_path, text)
    said = refusal(path)
    assert said.startswith(f"{path}{says}")
    assert "\n" not in said


def test_a_file_that_is_not_there_names_the_shipped_ones(tmp_path: Path) -> None:
    path = tmp_path / "missing.yaml"
    assert refusal(path) == f"{path}: no such file or shipped config (default, gpu, ppo, tiny)"
    assert refusal("tinny") == "tinny: no such file or shipped config (default, gpu, ppo, tiny)"
    assert refusal(tmp_path) == f"{tmp_path}: Is a directory"
    assert refusal("a\0b").endswith("embedded null byte")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("training.games", "training.games: not an override, expected setting=value"),
        ("", ": not an override, expected setting=value"),
        ("training.learning_rat=1", "training.learning_rat: unknown key; nearest is training.learning_rate"),
        ("learning_rate=1", "learning_rate: unknown key; nearest is training.learning_rate"),
        ("training.games.x=1", "training.games.x: unknown key; nearest is training.games"),
        ("training..games=1", "training..games: unknown key; nearest is training.games"),
        ("training.games=", "training.games: given null, expected a whole number >= 1, <= 100000"),
        ("training.games=0", "training.games: given 0, expected a whole number >= 1, <= 100000"),
        ("training=5", "training: given 5, expected a section"),
        ("training={gamma: 2}", "training.gamma: given 2, expected a number > 0, <= 1"),
        ("training={gama: 2}", "training.gama: unknown key; nearest is training.gamma"),
        ("run.name=[a", "run.name=[a: not YAML: expected ',' or ']', but got '<stream end>'"),
        ("run={seed: 1, seed: 2}", "run={seed: 1, seed: 2}: the key seed is given twice"),
        ("model.norm_groups=3", "model: norm_groups 3 must divide channels 32"),
    ],
)
def test_an_override_that_cannot_be_is_refused(override: str, says: str) -> None:
    assert refusal(None, override) == says


def test_all_mistakes_of_file_and_overrides_come_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "trainin: 1\ntraining: {gamma: 2}\nmodel: {norm_groups: 3}\n")
    said = refusal(path, "run.seed", "run.sed=2", "env.max_moves=0", "run.name=[")
    assert sorted(said.splitlines()) == [
        "env.max_moves: given 0, expected a whole number >= 2, <= 100000",
        "model: norm_groups 3 must divide channels 32",
        "run.name=[: not YAML: expected the node content, but found '<stream end>'",
        "run.sed: unknown key; nearest is run.seed",
        "run.seed: not an override, expected setting=value",
        "trainin: unknown key; nearest is training",
        "training.gamma: given 2, expected a number > 0, <= 1",
    ]


# Values for settings of every kind; text with everything YAML could mistake for something else.
WORDS = st.sampled_from(
    ["null", "~", "off", "1e3", "0x10", "2026-01-01", "<<", "=", "- a", "a: b", "#", "'", " a "]
)
NAMES = (WORDS | st.text(min_size=1, max_size=200)).filter(
    lambda text: text.isprintable() and not text.startswith((".", "-")) and not set(text) & set("/\\")
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "env.declaration": st.sampled_from(["27", "24", "try", "off"]),
    "env.max_moves": st.integers(2, 100_000),
    "env.late_start_share": st.floats(0, 1),
    "model.policy_head": st.sampled_from(["labels", "linear"]),
    "training.learning_rate": st.floats(0, 1, exclude_min=True),
    "training.max_minutes": st.none() | st.floats(0, exclude_min=True, allow_infinity=False),
    "training.normalize_advantages": st.booleans(),
    "training.parallel.num_workers": st.just("auto") | st.integers(1, 10**9),
    "training.parallel.worker_timeout": st.floats(0.5, allow_infinity=False),
    "evaluation.opponents": st.permutations(["random", "greedy"]) | st.just([]),
    "run.name": st.none() | NAMES,
    "run.directory": NAMES,
    "run.seed": st.integers(0, 2**63 - 1),
    "run.numerics": st.sampled_from(["auto", "float32+channels_last", "auto+compile"]),
    "run.loggers": st.sampled_from([[], ["tensorboard"], ["wandb-offline", "tensorboard"]]),
}
CHANGES = st.fixed_dictionaries({}, optional=VALUES)


def changed(changes: dict[str, Any]) -> AppConfig:
    """Return the defaults with some settings assigned one by one: the long way to a deep merge."""
    config = AppConfig()
    for path, value in changes.items():
        *names, last = path.split(".")
        room: Any = config
        for name in names:
            room = getattr(room, name)
        setattr(room, last, value)
    return config


def nested(changes: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for path, value in changes.items():
        *names, last = path.split(".")
        room = data
        for name in names:
            room = room.setdefault(name, {})
        room[last] = value
    return data


@examples(max_examples=60)
@given(CHANGES)
def test_a_config_comes_back_equal_from_its_yaml(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    config = changed(changes)
    path = written(tmp_path_factory.getbasetemp(), to_yaml(config))
    assert load_config(path) == config
    # Other YAML readers understand it too.
    assert AppConfig.model_validate(yaml.safe_load(to_yaml(config))) == config


@examples(max_examples=60)
@given(CHANGES, CHANGES)
def test_merging_is_assigning_setting_by_setting(
    tmp_path_factory: pytest.TempPathFactory, file: dict[str, Any], over: dict[str, Any]
) -> None:
    path = written(tmp_path_factory.getbasetemp(), yaml.safe_dump(nested(file), allow_unicode=True))
    overrides = [
        f"{name}={yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)}"
        for name, value in over.items()
    ]
    assert load_config(path, overrides) == changed(file | over)


@examples(max_examples=60)
@given(CHANGES, CHANGES)
def test_differences_are_what_was_changed(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = changed(before), changed(after)
    found = differences(old, new)
    assert changed(before | {one.path: one.new for one in found}) == new
    assert changed(after | {one.path: one.old for one in found}) == old
    assert all(one.old != one.new for one in found)
    assert differences(old, old) == []


def test_differences_print_and_come_in_order() -> None:
    found = differences(AppConfig(), load_config(None, ["run.seed=2", "env.max_moves=9", "run.name=x"]))
    assert found == [
        Difference("env.max_moves", 256, 9),
        Difference("run.name", None, "x"),
        Difference("run.seed", 1, 2),
    ]
    assert [str(one) for one in found] == [
        "env.max_moves: 256 -> 9",
        "run.name: null -> x",
        "run.seed: 1 -> 2",
    ]


KEPT = {
    "env.max_moves",
    "env.declaration",
    "env.random_plies",
    "env.scattered_start_share",
    "training.games",
    "run.seed",
    *(row.path for row in settings(AppConfig) if row.path.startswith("model.")),
}


@pytest.mark.parametrize("path", [row.path for row in settings(AppConfig)])
def test_a_resumed_run_keeps_its_network_its_games_and_its_seed(path: str) -> None:
    change = [Difference(path, "then", "now")]
    if path in KEPT:
        with pytest.raises(ConfigError) as caught:
            refuse_unsafe(change)
        assert str(caught.value) == f"{path}: given now, but the run has then, which cannot change on resume"
    else:
        refuse_unsafe(change)


def test_every_unsafe_difference_is_named() -> None:
    new = load_config(None, ["run.seed=2", "env.max_moves=9", "run.name=x", "model.blocks=1"])
    with pytest.raises(ConfigError) as caught:
        refuse_unsafe(differences(AppConfig(), new))
    assert [line.split(":")[0] for line in caught.value.problems] == [
        "env.max_moves",
        "model.blocks",
        "run.seed",
    ]


def test_what_is_unsafe_exists() -> None:
    paths = [f"{row.path}." for row in settings(AppConfig)]
    for kept in UNSAFE_TO_CHANGE:
        assert any(path.startswith(f"{kept}.") for path in paths), kept


@pytest.mark.parametrize("name", ["default", "gpu", "ppo", "tiny"])
def test_a_shipped_config_loads_by_name_and_by_path(name: str) -> None:
    assert name in SHIPPED
    assert load_config(name) == load_config(CONFIGS / f"{name}.yaml")


def test_the_default_config_is_the_defaults_with_every_setting_explained() -> None:
    assert load_config("default") == AppConfig()
    lines = (CONFIGS / "default.yaml").read_text(encoding="utf-8").splitlines()
    expected = []

    def walk(model: Any, indent: str) -> None:
        for name, field in model.model_fields.items():
            room = room_of(field)
            if room is None:
                expected.append(f"{indent}{name}: {as_text(field.get_default())}  # {field.description}")
            else:
                walk(room, f"{indent}  ")

    walk(AppConfig, "")
    assert [line for line in lines if re.match(r" +\w+: \S", line)] == expected


def test_the_tiny_config_is_tiny_and_the_one_for_a_gpu_is_not() -> None:
    tiny, gpu, default = load_config("tiny"), load_config("gpu"), load_config()
    assert tiny.training.total_timesteps == 4 * tiny.training.steps_per_epoch == 2048
    assert (tiny.run.threads, tiny.run.device, tiny.run.numerics) == (1, "cpu", "native")
    assert (tiny.run.loggers, gpu.run.numerics) == ([], "auto+compile")
    assert tiny.model.blocks < default.model.blocks < gpu.model.blocks
    assert tiny.training.games < default.training.games < gpu.training.games


def test_the_page_has_the_settings_of_the_schema_and_what_may_not_change() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    listed = page.partition("\n## All settings\n\n")[2]
    assert listed == reference(AppConfig), "to mend: python scripts/write_settings.py"
    section = page.partition("## Resuming")[2].partition("\n## ")[0]
    assert set(re.findall(r"^- `([\w.]+)`", section, flags=re.MULTILINE)) == UNSAFE_TO_CHANGE
