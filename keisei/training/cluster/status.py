"""What `keisei cluster status` shows: nodes, cores, versions, token, and whom each node plays for."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from keisei.config.config_errors import ConfigError
from keisei.training.cluster.access import check_access, ray_environment
from keisei.training.cluster.machine_facts import described

_LONGEST_SECONDS = 120.0


def cluster_status(address: str, *, insecure: bool) -> Iterator[str]:
    """Yield lines about the cluster at this address; ConfigError if it cannot be used."""
    check_access(address, insecure=insecure)
    command = [sys.executable, "-P", "-m", "keisei.training.cluster.probe", address]
    try:
        # The command is our own; the address has been checked.
        done = subprocess.run(  # nosec B603
            command,
            env=ray_environment(address, insecure=insecure),
            capture_output=True,
            text=True,
            timeout=_LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"training.parallel.cluster: the cluster at {address} has not answered for "
            f"{_LONGEST_SECONDS:.0f} s"
        ) from None
    if not done.stdout:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
        raise ConfigError(f"training.parallel.cluster: cannot connect to {address}: {words[-1]}")
    found = json.loads(done.stdout)
    if "refused" in found:
        raise ConfigError(f"training.parallel.cluster: {found['refused']}")
    yield from lines(found, time.time())


def lines(found: dict[str, Any], now: float) -> Iterator[str]:
    """Yield a line for the cluster and one for each node."""
    nodes = found["nodes"]
    cores = sum(node["cores"] for node in nodes)
    known = [node["facts"] for node in nodes if node["facts"] is not None]
    token = "requires a token" if known and all(one["token"] for one in known) else "takes anybody's work"
    yield f"cluster at {found['address']}: {_count(len(nodes), 'node')}, {_count(cores, 'core')}; {token}"
    for node in nodes:
        facts = "does not answer" if node["facts"] is None else described(node["facts"])
        plays = [
            f"{_count(one['workers'], 'worker')} for {one['learner']} since {minutes:.0f} min"
            for one in node["plays"]
            for minutes in [(now - one["since"]) / 60]
        ]
        doing = ", ".join(plays) or ("idle" if node["cores"] else "no cores to play with")
        yield f"{node['host']} ({node['address']}), {_count(node['cores'], 'core')}: {doing}; {facts}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
