"""A Ray cluster on this machine, for tests and benchmarks: SmallCluster(), and the process that has it.

Ray stays out of the user's own process, which is a learner: that is how it is with `keisei train`. Everything
listens on loopback, needs a token, and writes into a temporary directory that is removed.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

PATIENCE = 240.0  # seconds to wait for what must happen: the machine may be busy
LOOPBACK = "127.0.0.1"


class SmallCluster:
    """A cluster without cores on its head; `nodes` have one core each unless told otherwise."""

    def __init__(self, nodes: int = 2, *, store_bytes: int = 80 * 2**20) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kr", dir="/tmp"))  # a socket's path must be short
        self.temporary = self.folder / "tmp"  # of all processes of the cluster
        self.temporary.mkdir()
        self.token = self.folder / "token"
        self.token.write_text(secrets.token_hex(32))
        self.token.chmod(0o600)
        with (self.folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(self.folder), str(store_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.environment(),
                start_new_session=True,
            )
        try:
            self.address: str = self._answer()
            for _ in range(nodes):
                self.add()
        except BaseException:
            self.close()
            raise

    def environment(self) -> dict[str, str]:
        """Return the environment of all processes of the cluster."""
        return {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token),
            "RAY_TMPDIR": str(self.folder),  # Ray notes the newest cluster's address there
            "TMPDIR": str(self.temporary),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # so that all of it stays on loopback
            # A frozen node and a lost head are noticed soon.
            "RAY_health_check_initial_delay_ms": "1000",
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_timeout_ms": "2000",
            "RAY_health_check_failure_threshold": "3",
            "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
        }

    def add(self, cores: int = 1) -> int:
        """Add a node; return the process id of its raylet."""
        return int(self.ask("add", cores))

    def remove(self, raylet: int) -> None:
        """Kill the raylet of a node."""
        os.kill(raylet, signal.SIGKILL)

    def raylets(self) -> list[int]:
        """The raylets of all nodes that have cores."""
        return [int(pid) for pid in self.ask("raylets")]

    def alive(self) -> int:
        """Return how many nodes the head regards as alive, itself included."""
        return int(self.ask("alive"))

    def gcs(self) -> int:
        """Return the process id of the head's server."""
        return int(self.ask("gcs"))

    def head_raylet(self) -> int:
        """The raylet by which drivers of this machine are in the cluster."""
        return int(self.ask("head raylet"))

    def ask(self, *command: Any) -> Any:
        """Have the process of the cluster do something, and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write((json.dumps(command) + "\n").encode())
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self.folder / "errors").read_text(errors="replace")[-3000:]
        return json.loads(line)

    def processes(self, word: str) -> list[int]:
        """The running processes below this cluster whose command has a word."""
        return [pid for pid in descendants(self.process.pid) if word in command_of(pid)]

    def sites(self) -> list[int]:
        """Return the sites of all nodes."""
        return self.processes("cluster.site")

    def foremen(self) -> list[int]:
        """Return the foremen, actors of Ray."""
        return [parent_of(site) for site in self.sites()]

    def workers(self) -> list[int]:
        """The processes that play: the fork servers' children."""
        found = []
        for site in self.sites():
            found += [pid for pid in descendants(site) if parent_of(pid) != site]
        return found

    def close(self) -> None:
        """End everything, by force, and remove what it has written."""
        mine = descendants(self.process.pid)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        for pid in mine:  # what was stopped, or lost its parent
            kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(is_alive(pid) for pid in mine))
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for a condition; AssertionError if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def kill(pid: int, number: int) -> None:
    """Send a signal to a process, which may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ["Z", "0"]
    return text.rsplit(")", 1)[1].split()[:2]


def is_alive(pid: int) -> bool:
    """Return whether a process is there and no zombie."""
    return _stat(pid)[0] not in "ZX"


def parent_of(pid: int) -> int:
    """Return the parent of a process, 0 if it is gone."""
    return int(_stat(pid)[1])


def command_of(pid: int) -> str:
    """Return the command of a process, empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> list[int]:
    """Return all processes below a process."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        children.setdefault(parent_of(int(path.name)), []).append(int(path.name))
    found, left = [], list(children.get(pid, ()))
    while left:
        one = left.pop()
        if is_alive(one):
            found.append(one)
        left += children.get(one, ())
    return found


def main(folder: str, store_bytes: str) -> None:
    """Have a cluster, do what lines on stdin ask for, and answer each with a line."""
    from ray._private import services
    from ray.cluster_utils import Cluster

    get_node: Any = services.get_node

    def get_node_later(*about: str) -> Any:
        """Wait for a node to be there: Ray asks all the time, which costs a core, and gives up after 30 s."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return get_node(*about)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    services.get_node = get_node_later
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints is no answer
    common: dict[str, Any] = {"object_store_memory": int(store_bytes), "node_ip_address": LOOPBACK}
    head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": f"{folder}/ray", "wait": False, **common}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes: list[Any] = []
    head_node: Any = cluster.head_node
    state: Any = cluster.global_state

    def raylet(node: Any) -> int:
        return int(node.all_processes["raylet"][0].process.pid)

    print(json.dumps(cluster.address), file=answers, flush=True)
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        answer: Any = None
        if command == "add":
            nodes.append(cluster.add_node(num_cpus=arguments[0], wait=False, **common))
            answer = raylet(nodes[-1])
        elif command == "raylets":
            answer = [raylet(node) for node in nodes]
        elif command == "alive":
            answer = len(state._live_node_ids())
        elif command == "head raylet":
            answer = raylet(head_node)
        elif command == "gcs":
            answer = head_node.all_processes["gcs_server"][0].process.pid
        print(json.dumps(answer), file=answers, flush=True)
    for node in [*nodes, head_node]:
        node.kill_all_processes(check_alive=False, allow_graceful=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
