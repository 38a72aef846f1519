"""What it takes to use a cluster, and one line for each thing that is missing."""

import importlib.util
import socket
from pathlib import Path

import pytest

from keisei.config.config_errors import ConfigError
from keisei.config.files import load_config
from keisei.training.cluster.access import check_access, check_token, ray_environment
from keisei.training.collector import make_collector
from keisei.training.trainer import Trainer


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "token"
    path.write_text("secret")
    path.chmod(0o600)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    return path


def test_a_token_that_nobody_else_can_read_will_do(token: Path) -> None:
    check_token({"RAY_AUTH_TOKEN_PATH": str(token)})
    check_token({"RAY_AUTH_TOKEN": "secret"})


def test_no_token_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"there is no token for the cluster in .*/\.ray/auth_token"
    ) as info:
        check_token({})
    assert len(info.value.lines) == 1


def test_a_token_for_all_to_see_is_refused(token: Path) -> None:
    token.chmod(0o644)
    with pytest.raises(ConfigError, match=r"can be read by others \(mode 0644, expected 0600\)"):
        check_token({"RAY_AUTH_TOKEN_PATH": str(token)})


def test_an_empty_token_is_refused(token: Path) -> None:
    token.write_text("")
    with pytest.raises(ConfigError, match="is empty"):
        check_token({"RAY_AUTH_TOKEN_PATH": str(token)})


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else found(name))
    with pytest.raises(ConfigError, match=r"ray is not installed: pip install '\.\[ray\]' in"):
        check_access("auto", insecure=True)


@pytest.mark.usefixtures("token")
def test_an_address_where_nobody_answers_is_one_line() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{one.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"no Ray cluster answers at {address}: Connection refused"):
            check_access(address, insecure=False)
        config = load_config("default", [f"training.parallel.cluster={address}"])
        with pytest.raises(ConfigError, match="no Ray cluster answers"):
            make_collector(config, Trainer(config).agent)


@pytest.mark.parametrize("host", ["10.0.0..1", "a" * 64])
def test_a_name_that_no_machine_can_have_is_one_line(host: str) -> None:
    with pytest.raises(ConfigError, match=f"no Ray cluster answers at {host}:6379: .*label") as info:
        check_access(f"{host}:6379", insecure=True)
    assert len(info.value.lines) == 1


def test_ray_tells_its_makers_nothing_and_needs_a_token() -> None:
    environment = ray_environment("10.0.0.1:6379", insecure=False)
    assert (environment["RAY_USAGE_STATS_ENABLED"], environment["RAY_AUTH_MODE"]) == ("0", "token")
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in environment
    assert ray_environment("127.0.0.1:6379", insecure=True)["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"


def test_a_cluster_without_workers_is_a_contradiction() -> None:
    with pytest.raises(ConfigError, match="cluster auto needs enabled true or auto"):
        load_config("default", ["training.parallel.cluster=auto", "training.parallel.enabled=false"])
    ranks = ["training.ranks.world_size=2", "training.ranks.address=10.0.0.1:29500"]
    with pytest.raises(ConfigError, match="ranks have workers of their own"):
        load_config("default", ["training.parallel.cluster=auto", *ranks])


@pytest.mark.parametrize("address", ["ray://10.0.0.1:10001", "10.0.0.1", "somewhere"])
def test_other_kinds_of_addresses_are_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"training\.parallel\.cluster: .*auto, 10\.0\.0\.1:6379"):
        load_config("tiny", [f"training.parallel.cluster={address}"])
