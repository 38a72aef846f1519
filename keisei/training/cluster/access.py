"""What it takes to use a Ray cluster: the extra, an address that answers, a token, Ray's environment.

All mistakes are found here, before Ray is started, and reported in one line each.
"""

import importlib.util
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from keisei.config.config_errors import ConfigError
from keisei.errors import install_command

AUTO = "auto"
_LOOPBACK = ("127.0.0.1", "localhost")
# Otherwise Ray takes 127.0.0.1 for this machine's address in the network, where nobody listens then.
_STAY_ON_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_CONNECT_SECONDS = 5.0
_SETTING = "training.parallel.cluster"

# Messages below this size go straight from process to process. Ray's limit of 100 KB takes segments and
# weights through the object stores of two nodes instead, which costs milliseconds and CPU time each time.
INLINE_BYTES = 4 * 2**20
INLINE = {"RAY_max_direct_call_object_size": str(INLINE_BYTES)}

# Ray as this project uses it: no statistics for its makers, no copies of workers' output in ours, no 60 s
# until a driver notices that the head of its cluster is gone.
RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_LOG_TO_DRIVER": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
}


def ray_environment(address: str, *, insecure: bool) -> dict[str, str]:
    """Return the environment of a process that uses the cluster at this address."""
    environment = {**os.environ, **RAY_ENVIRONMENT, **INLINE}
    if not insecure:
        environment["RAY_AUTH_MODE"] = "token"
    if address.rpartition(":")[0] in _LOOPBACK:
        environment[_STAY_ON_LOOPBACK] = "0"
    return environment


def check_access(address: str, *, insecure: bool) -> None:
    """Raise ConfigError if this machine lacks what it takes to use the cluster at this address."""
    host, _, port = address.rpartition(":")
    if address != AUTO and not (host and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise ConfigError(f"{_SETTING}: given {address or repr(address)}, expected auto or host:port")
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(f"{_SETTING}: ray is not installed: {install_command('ray')}")
    if not insecure:
        check_token(os.environ)
    if address != AUTO:
        try:
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        except (OSError, UnicodeError) as error:  # the latter for a name that none can be
            why = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"{_SETTING}: no Ray cluster answers at {address}: {why}") from error


def check_token(environment: Mapping[str, str]) -> None:
    """Raise ConfigError if there is no token, or others can read it."""
    if environment.get("RAY_AUTH_TOKEN"):
        return
    named = environment.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    try:
        mode, size = path.stat().st_mode, path.stat().st_size
    except OSError:
        raise ConfigError(
            f"{_SETTING}: there is no token for the cluster in {path}: copy that of the cluster's head, or "
            "make one with `ray get-auth-token --generate`"
        ) from None
    if not size:
        raise ConfigError(f"{_SETTING}: the token file {path} is empty")
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(
            f"{_SETTING}: the token file {path} can be read by others (mode {stat.S_IMODE(mode):04o}, "
            "expected 0600): chmod 600 it, and use another token if others were here"
        )
