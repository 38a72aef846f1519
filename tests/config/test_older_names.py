"""Settings of earlier versions: they load if today's can express them, else the error says what to write."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from keisei.config.config_errors import ConfigError
from keisei.config.files import differences, load_config, to_yaml
from keisei.config.older_names import CONSTANTS
from keisei.config.schema import AppConfig
from keisei.core.learning_agent import ENTROPY_FLOOR
from keisei.core.self_play import LATE_START_PLIES, LATE_START_POOL
from keisei.evaluation.matches.match_conditions import RANDOM_PLIES
from keisei.evaluation.players.player_specs import TEMPERATURE
from keisei.training.trainer import MATERIAL_REWARD_UNTIL

# Settings in a checkpoint of an earlier version that no longer exist.
OLD_DEFAULTS: dict[str, dict[str, Any]] = {
    "env": {"late_start_plies": 12, "late_start_pool": 512},
    "training": {
        "learning_rate_schedule": "linear",
        "entropy_schedule": "linear",
        "entropy_floor": 0.2,
        "material_reward_until": 0.8,
    },
    "evaluation": {"temperature": 0.25, "random_plies": 4},
    "run": {
        "precision": "auto",
        "channels_last": "auto",
        "compile": "off",
        "tensorboard": True,
        "wandb": "off",
    },
}
GONE = {"run": ("numerics", "loggers"), "training": ("schedule",)}


def stored(**changes: dict[str, Any]) -> dict[str, Any]:
    """Return a config as an earlier version dumped it: all its settings, some of them changed."""
    data = AppConfig().model_dump(mode="json")
    for room, older in OLD_DEFAULTS.items():
        for name in GONE.get(room, ()):
            del data[room][name]
        data[room] |= {**older, **changes.get(room, {})}
    return data


def test_a_complete_config_of_an_earlier_version_means_what_it_meant(tmp_path: Path) -> None:
    data, later = stored(), {"env": ["scattered_start_share"], "model": ["piece_values"]}
    later["training"] = ["algorithm", "length_reward", "search", "ranks", "learners"]
    for room, names in later.items():
        for name in names:
            del data[room][name]
    for found in (
        AppConfig.model_validate(data),
        load_config(written(tmp_path, yaml.safe_dump(data))),
        AppConfig.model_validate({"model": data["model"], "env": data["env"], "training": data["training"]}),
    ):
        assert (found.training.algorithm, found.training.length_reward) == ("ppo", 0.0)
        assert (found.env.scattered_start_share, found.model.piece_values) == (0.0, "none")


def test_a_short_file_without_the_algorithm_has_the_default(tmp_path: Path) -> None:
    found = load_config(written(tmp_path, "training: {games: 32, learning_rate: 1e-4}\nmodel: {blocks: 2}"))
    assert (found.training.algorithm, found.model.piece_values) == ("search", "textbook")


def test_what_a_complete_config_says_itself_is_kept() -> None:
    data = AppConfig().model_dump(mode="json")
    data["env"]["scattered_start_share"] = 0.7
    assert AppConfig.model_validate(data).model_dump(mode="json") == data


def refusal(source: Path | None, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(source, overrides)
    return str(caught.value)


def written(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_the_config_of_an_older_checkpoint_is_todays() -> None:
    assert AppConfig.model_validate(stored()) == AppConfig()
    assert differences(AppConfig.model_validate(stored()), AppConfig()) == []


def test_the_data_is_not_changed_by_reading_it() -> None:
    data = stored()
    AppConfig.model_validate(data)
    assert data == stored()


@pytest.mark.parametrize(
    ("precision", "channels_last", "compiled", "numerics"),
    [
        ("auto", "auto", "auto", "auto+compile"),
        ("auto", "on", "off", "auto+channels_last"),
        ("float32", "off", "off", "float32"),
        ("float32", "on", "off", "float32+channels_last"),
        ("bfloat16", "off", "on", "bfloat16+compile"),
        ("bfloat16", "on", "on", "bfloat16+channels_last+compile"),
        # Only the nearest: the formats such a run measured are in its checkpoints.
        ("float32", "auto", "off", "float32"),
        ("float32", "on", "auto", "float32+channels_last"),
        ("auto", "off", "on", "auto+compile"),
    ],
)
def test_the_formats_of_an_older_run_load(
    precision: str, channels_last: str, compiled: str, numerics: str
) -> None:
    run = {"precision": precision, "channels_last": channels_last, "compile": compiled}
    assert AppConfig.model_validate(stored(run=run)).run.numerics == numerics


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("run: {compile: auto}", "run.numerics=auto+compile"),
        ("run: {precision: bfloat16, channels_last: on}", "run.numerics=bfloat16+channels_last"),
        ("run: {precision: float32, channels_last: off}", "run.numerics=float32"),
        ("run: {tensorboard: no}", "run.loggers=[]"),
        ("run: {wandb: online}", "run.loggers=[tensorboard, wandb]"),
        ("run: {wandb: offline, tensorboard: false}", "run.loggers=[wandb-offline]"),
        (
            "training: {learning_rate_schedule: cosine, entropy_schedule: cosine}",
            "training.schedule=cosine",
        ),
        ("training: {entropy_schedule: linear}", "training.schedule=linear"),
        ("env: {late_start_pool: 512}", "env.max_moves=256"),
        ("training: {entropy_floor: 0.20}", "env.max_moves=256"),
        ("evaluation: {temperature: 25e-2, random_plies: 4}", "env.max_moves=256"),
    ],
)
def test_a_file_with_older_names_loads(tmp_path: Path, text: str, setting: str) -> None:
    assert load_config(written(tmp_path, text)) == load_config(None, [setting])


def test_an_override_counts_over_an_older_name_in_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "run: {precision: float32, channels_last: off, tensorboard: no}")
    config = load_config(path, ["run.numerics=bfloat16", "run.seed=3"])
    assert (config.run.numerics, config.run.loggers, config.run.seed) == ("bfloat16", [], 3)
    assert load_config(written(tmp_path, to_yaml(config))) == config


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "run: {precision: bfloat16}",
            "run.precision: now part of run.numerics; write run.numerics: bfloat16",
        ),
        (
            "run: {channels_last: off}",
            "run.channels_last: now part of run.numerics; write run.numerics: auto",
        ),
        ("run: {precision: half}", "run.precision: now part of run.numerics"),
        (
            "run: {numerics: auto, compile: on}",
            "run.compile: now part of run.numerics; write run.numerics: auto+compile",
        ),
        (
            "run: {loggers: [], wandb: offline}",
            "run.wandb: now part of run.loggers; write run.loggers: [tensorboard, wandb-offline]",
        ),
        (
            "training: {entropy_schedule: cosine}",
            "training.entropy_schedule: now part of training.schedule; write training.schedule: cosine",
        ),
        ("env: {late_start_pool: 100}", "env.late_start_pool: removed, now always 512"),
        ("evaluation: {temperature: hot}", "evaluation.temperature: removed, now always 0.25"),
    ],
)
def test_what_todays_settings_cannot_say_is_refused_with_what_to_write(
    tmp_path: Path, text: str, says: str
) -> None:
    assert refusal(written(tmp_path, text)) == says


def test_the_constants_are_those_that_are_used() -> None:
    assert CONSTANTS == {
        "env.late_start_plies": LATE_START_PLIES,
        "env.late_start_pool": LATE_START_POOL,
        "training.entropy_floor": ENTROPY_FLOOR,
        "training.material_reward_until": MATERIAL_REWARD_UNTIL,
        "evaluation.temperature": TEMPERATURE,
        "evaluation.random_plies": RANDOM_PLIES,
    }


@pytest.mark.parametrize("path", CONSTANTS)
def test_a_constant_may_be_given_with_its_value_only(path: str) -> None:
    assert load_config(None, [f"{path}={CONSTANTS[path]}"]) == AppConfig()
    assert refusal(None, f"{path}=7") == f"{path}: removed, now always {CONSTANTS[path]}"


def test_an_override_with_an_older_name_is_told_todays() -> None:
    assert refusal(None, "run.precision=bfloat16", "run.tensorboard=false").splitlines() == [
        "run.precision: now part of run.numerics; write run.numerics: bfloat16",
        "run.tensorboard: now part of run.loggers; write run.loggers: []",
    ]


def test_older_names_that_became_one_setting_are_told_the_same_value(tmp_path: Path) -> None:
    lines = [
        f"run.{name}: now part of run.numerics; write run.numerics: bfloat16+channels_last"
        for name in ("precision", "channels_last")
    ]
    assert refusal(None, "run.precision=bfloat16", "run.channels_last=on").splitlines() == lines
    path = written(tmp_path, "run: {numerics: auto, precision: bfloat16, channels_last: on}")
    assert refusal(path).splitlines() == lines


def test_two_schedules_of_an_older_run_are_refused() -> None:
    data = stored(training={"learning_rate_schedule": "cosine"})
    with pytest.raises(ValueError, match="learning_rate_schedule"):
        AppConfig.model_validate(data)
