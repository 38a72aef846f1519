"""The schema: what it rejects, and with which message; a value assigned later is rejected when used."""

import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from keisei.config.config_errors import ConfigError, problems
from keisei.config.fields import Setting, reference, rooms, settings
from keisei.config.schema import AppConfig, EnvConfig, Room, validated

SETTINGS = {row.path: row for row in settings(AppConfig)}


def nested(path: str, value: object) -> dict[str, Any]:
    data: Any = value
    for name in reversed(path.split(".")):
        data = {name: data}
    return dict(data)


@pytest.mark.parametrize("row", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_is_described_and_names_what_it_refuses(row: Setting) -> None:
    assert row.description
    assert row.allowed
    refused: object = [] if row.path == "model.options" else {}
    line = f"{row.path}: given {refused}, expected {row.allowed}"
    assert problems(AppConfig, nested(row.path, refused)) == [line]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("training.games", 0, "given 0, expected a whole number >= 1, <= 100000"),
        ("training.games", 1.5, "given 1.5, expected a whole number >= 1, <= 100000"),
        ("training.games", True, "given true, expected a whole number >= 1, <= 100000"),
        ("training.games", "many", "given many, expected a whole number >= 1, <= 100000"),
        ("training.games", None, "given null, expected a whole number >= 1, <= 100000"),
        ("training.games", "1e9", "given 1e9, expected a whole number >= 1, <= 100000"),
        ("training.games", "15e-1", "given 15e-1, expected a whole number >= 1, <= 100000"),
        ("training.learning_rate", False, "given false, expected a number > 0, <= 1"),
        ("training.learning_rate", float("nan"), "given nan, expected a number > 0, <= 1"),
        ("training.max_minutes", 0, "given 0, expected a number > 0 or null"),
        ("training.normalize_advantages", "perhaps", "given perhaps, expected true or false"),
        ("training.parallel.num_workers", 0, "given 0, expected a whole number >= 1 or auto"),
        ("training.parallel.num_workers", True, "given true, expected a whole number >= 1 or auto"),
        ("training.parallel.worker_timeout", 0, "given 0, expected a number >= 0.5"),
        ("env.declaration", "28", "given 28, expected 27, 24, try or off"),
        ("env.declaration", False, "given false, expected 27, 24, try or off"),
        ("evaluation.games", 5, "given 5, expected a whole number >= 2, <= 100000, multiple of 2"),
        (
            "evaluation.opponents",
            ["greedy", "god", "me"],
            "given [greedy, god, me], expected a list of random, greedy, material, alphabeta-1, alphabeta-2, "
            "alphabeta-3, alphabeta-4 or best",
        ),
        (
            "evaluation.opponents",
            "random",
            "given random, expected a list of random, greedy, material, alphabeta-1, alphabeta-2, "
            "alphabeta-3, alphabeta-4 or best",
        ),
        ("run.device", "gpu", "given gpu, expected auto, cpu, mps, cuda or text like cuda:0"),
        (
            "run.numerics",
            "fast",
            "given fast, expected text like native, native-avx2, float32, bfloat16+channels_last, "
            "auto+compile",
        ),
        ("run.directory", "", "given '', expected text of length >= 1"),
        ("run.name", ["a\nb"], "given ['a\\nb'], expected text of length >= 1 or null"),
        ("run.name", ["x" * 99], f"given [{'x' * 76}..., expected text of length >= 1 or null"),
        ("run", 5, "given 5, expected a section"),
    ],
)
def test_a_refused_value_is_named_with_what_is_allowed(path: str, value: object, line: str) -> None:
    assert problems(AppConfig, nested(path, value)) == [f"{path}: {line}"]


@pytest.mark.parametrize(
    ("path", "given", "meant"),
    [
        ("training.games", "512", 512),
        ("training.steps_per_epoch", "1_024_000", 1_024_000),
        ("training.total_timesteps", "3e6", 3_000_000),
        ("training.total_timesteps", "2.5e6", 2_500_000),
        ("training.learning_rate", "1e-3", 0.001),
        ("training.normalize_advantages", "off", False),
        ("training.parallel.num_workers", "4", 4),
        ("training.parallel.num_workers", "auto", "auto"),
        ("run.name", "1e3", "1e3"),
        ("run.device", "cuda:1", "cuda:1"),
    ],
)
def test_a_word_means_what_its_field_takes(path: str, given: str, meant: object) -> None:
    found: Any = AppConfig.model_validate(nested(path, given))
    for name in path.split("."):
        found = getattr(found, name)
    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (nested("model.norm_groups", 5), "model: norm_groups 5 must divide channels 32"),
        (nested("evaluation.opponents", ["random"] * 2), "evaluation: opponents has random more than once"),
        (nested("run.loggers", ["wandb"] * 2), "run: loggers has wandb more than once"),
        (
            nested("run.loggers", ["wandb", "wandb-offline"]),
            "run: loggers has wandb and wandb-offline, expected only one",
        ),
        (nested("run.name", "../a"), "run: name '../a' must be the name of one directory"),
        (nested("run.name", ".."), "run: name '..' must be the name of one directory"),
        (nested("run.name", ".hidden"), "run: name '.hidden' must not begin with a dot or a hyphen"),
        (nested("run.name", "-x"), "run: name '-x' must not begin with a dot or a hyphen"),
        (nested("run.name", "a\x00"), "run: name 'a\\x00' must be the name of one directory"),
        (nested("run.directory", "a\x00"), "run: directory 'a\\x00' must be printable text"),
    ],
)
def test_values_that_do_not_go_together_are_named(data: dict[str, Any], line: str) -> None:
    assert problems(AppConfig, data) == [line]
    with pytest.raises(ValidationError, match="1 validation error"):
        AppConfig.model_validate(data)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("training.learning_rat", "unknown key; nearest is training.learning_rate"),
        ("learning_rate", "unknown key; nearest is training.learning_rate"),
        ("model.learning_rate", "unknown key; nearest is training.learning_rate"),
        ("training.parallel.workers", "unknown key; nearest is training.parallel.num_workers"),
        ("training.parallel.sync_intervall", "unknown key; nearest is training.parallel.sync_interval"),
        ("run.gamma", "unknown key; nearest is training.gamma"),
        ("model.lr", "unknown key; nearest is training.learning_rate"),
        ("trainin", "unknown key; nearest is training"),
        ("training.paralel", "unknown key; nearest is training.parallel"),
    ],
)
def test_an_unknown_key_names_the_nearest(path: str, says: str) -> None:
    assert problems(AppConfig, nested(path, 1)) == [f"{path}: {says}"]


def test_a_dotted_key_in_data_is_told_to_nest() -> None:
    assert problems(AppConfig, {"training.games": 1}) == [
        "training.games: a key has no dots; write games in the section training"
    ]


def test_all_problems_come_at_once_and_none_twice() -> None:
    data = {
        "env": {"max_moves": 1, "max_move": 2},
        "model": {"channels": 33, "blocks": -1},
        "training": {
            "gamma": 2,
            "learning_rat": 1,
            "parallel": {"enabled": "perhaps", "num_workers": 0},
        },
        "run": [],
    }
    assert sorted(problems(AppConfig, data)) == [
        "env.max_move: unknown key; nearest is env.max_moves",
        "env.max_moves: given 1, expected a whole number >= 2, <= 100000",
        "model.blocks: given -1, expected a whole number >= 0, <= 100",
        "model: norm_groups 4 must divide channels 33",
        "run: given [], expected a section",
        "training.gamma: given 2, expected a number > 0, <= 1",
        "training.learning_rat: unknown key; nearest is training.learning_rate",
        "training.parallel.enabled: given perhaps, expected true or false or auto",
        "training.parallel.num_workers: given 0, expected a whole number >= 1 or auto",
    ]


def test_a_default_is_not_blamed_for_a_value_that_was_refused() -> None:
    # 30 channels do not fit the default of 4 groups, but only the 0 groups are reported.
    data = {"model": {"norm_groups": 0, "channels": 30}}
    assert problems(AppConfig, data) == ["model.norm_groups: given 0, expected a whole number >= 1"]


def test_an_older_name_beside_todays_is_refused() -> None:
    data = nested("training.parallel", {"queue_maxsize": 2, "max_queue_size": 3})
    (line,) = problems(AppConfig, data)
    room = "training.parallel"
    assert line == f"{room}.max_queue_size: an older name of {room}.queue_maxsize, which is also given"


@pytest.mark.parametrize("room", [AppConfig, *(room for _, room in rooms(AppConfig))])
def test_validated_returns_an_equal_copy(room: type[Room]) -> None:
    config = room()
    copy = validated(config)
    assert copy == config
    assert copy is not config
    assert type(copy) is room


def test_a_value_assigned_after_loading_is_refused_where_it_is_used() -> None:
    config = AppConfig()
    config.model.channels = 30
    config.training.gamma = "high"  # type: ignore[assignment]
    config.env.max_moves = 0
    channels = "model: norm_groups 4 must divide channels 30"
    gamma = "training.gamma: given high, expected a number > 0, <= 1"
    moves = "env.max_moves: given 0, expected a whole number >= 2, <= 100000"
    for room, lines in [
        (config, {channels, gamma, moves}),
        (config.model, {channels}),
        (config.training, {gamma}),
        (config.env, {moves}),
    ]:
        with pytest.raises(ConfigError) as caught:
            validated(room)
        assert set(str(caught.value).splitlines()) == lines
    config.training.parallel.num_workers = 0
    with pytest.raises(ValueError, match=r"^training\.parallel\.num_workers: given 0, expected"):
        validated(config.training.parallel)


def test_a_room_of_ones_own_is_validated_too() -> None:
    class Mine(EnvConfig):
        pass

    assert validated(Mine(max_moves=4)) == Mine(max_moves=4)
    with pytest.raises(ConfigError, match=r"^max_moves: given 1, expected"):
        validated(Mine.model_construct(max_moves=1))


def test_the_error_has_a_line_for_each_problem_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ConfigError("a: one", "b: two")))
    assert isinstance(error, ConfigError)
    assert isinstance(error, ValueError)
    assert str(error) == "a: one\nb: two"
    assert error.problems == ("a: one", "b: two")


@given(st.integers(1, 64), st.integers(4, 2048))
def test_a_network_is_accepted_exactly_if_its_groups_divide(groups: int, channels: int) -> None:
    found = problems(AppConfig, {"model": {"norm_groups": groups, "channels": channels}})
    assert len(found) == (channels % groups > 0)


@given(st.integers(1, 5000), st.integers(2, 5000), st.integers(1, 5000))
def test_an_epoch_may_have_any_length(games: int, minibatch: int, steps: int) -> None:
    sizes = {"games": games, "minibatch_size": minibatch, "steps_per_epoch": steps}
    assert problems(AppConfig, {"training": sizes}) == []


def test_the_reference_has_a_section_for_every_room_and_a_row_for_every_setting() -> None:
    text = reference(AppConfig)
    sections = re.findall(r"^### (\S+)\n\n(.+)\n\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    assert [(path, what) for path, what, _ in sections] == [(path, r.__doc__) for path, r in rooms(AppConfig)]
    named = []
    for path, _, table in sections:
        lines = table.splitlines()
        assert len(set(map(len, lines))) == 1
        assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in lines)
        found = [line.split("`")[1] for line in lines[2:]]
        assert {name.rpartition(".")[0] for name in found} == {path}
        named += found
    assert sorted(named) == sorted(SETTINGS)
    assert "text like native, native-avx2, float32" in text
    assert "^(" not in text, "examples instead of patterns"
    assert "is replaced (older name: `timeout_seconds`)" in text
