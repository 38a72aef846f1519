"""How long a collection takes while parts of a Ray cluster are lost: python scripts/time_cluster_faults.py.

A head and two nodes with one worker each, on this machine. In the middle of a collection a part is killed or
stopped; printed is how long after that all its segments are there, beside a whole collection without a fault.
"""

import argparse
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable

from benchmark_cluster import Side, config_of
from small_cluster import SmallCluster, descendants, kill, wait_until

TIMEOUT = 5.0  # training.parallel.worker_timeout of these collections
NODES = 2
PLACES = 4
MOVES = 256  # of each game in a segment, so that a collection takes as long as it does with searches
_FAULT_AFTER = 0.2  # seconds after the beginning of a collection


class Faults:
    """A cluster, the learner that uses it, and what can happen to them."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        config = config_of(PLACES, MOVES, "ppo", cluster.address)
        config.training.parallel.worker_timeout = TIMEOUT
        self.side = Side(config, far=True)
        self.stopped: list[int] = []

    def known(self) -> dict[str, Callable[[], None]]:
        """Return all faults by name; a cluster does not go on after the last."""
        cluster = self.cluster
        return {
            "worker killed": lambda: kill(cluster.workers()[0], signal.SIGKILL),
            "site killed": lambda: kill(cluster.sites()[0], signal.SIGKILL),
            "foreman killed": lambda: kill(cluster.foremen()[0], signal.SIGKILL),
            "node killed": lambda: kill(cluster.raylets()[-1], signal.SIGKILL),
            "worker stopped": lambda: self.stop(cluster.workers()[:1]),
            "foreman stopped": lambda: self.stop(cluster.foremen()[:1]),
            "node stopped": lambda: self.stop_node(cluster.raylets()[-1]),
            "raylet of the learner's machine killed": lambda: kill(cluster.head_raylet(), signal.SIGKILL),
            "head killed": lambda: kill(cluster.gcs(), signal.SIGKILL),
        }

    def stop(self, pids: list[int]) -> None:
        """Stop processes until the end of the collection."""
        for pid in pids:
            kill(pid, signal.SIGSTOP)
        self.stopped += pids

    def stop_node(self, raylet: int) -> None:
        """Stop a whole node."""
        self.stop([raylet, *descendants(raylet)])

    def collection(self, fault: Callable[[], None] | None = None) -> float:
        """Collect; return the seconds from the fault, or from the beginning, until all is there."""
        began = [time.perf_counter()]
        thread = threading.Thread(target=self._later, args=(fault, began))
        thread.start()
        self.side.turn()
        ended = time.perf_counter()
        thread.join()
        for pid in self.stopped:
            kill(pid, signal.SIGCONT)
        self.stopped = []
        return ended - began[0]

    def _later(self, fault: Callable[[], None] | None, began: list[float]) -> None:
        if fault is not None:
            time.sleep(_FAULT_AFTER)
            began[0] = time.perf_counter()
            fault()

    def recover(self, nodes: int) -> None:
        """Wait until so many nodes play."""

        def all_there() -> bool:
            self.side.manager.supervise(0.05)
            return self.side.manager.metrics()["parallel/nodes"] >= nodes

        for _ in range(2):  # so that whatever is lost has been noticed
            self.side.turn()
        wait_until(all_there)
        for _ in range(3):
            self.side.turn()


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    with SmallCluster(NODES) as cluster:
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(cluster.token)
        faults = Faults(cluster)
        faults.recover(NODES)
        usual = statistics.median(faults.collection() for _ in range(5))
        print(f"no fault: all segments after {usual:.2f} s; worker_timeout: {TIMEOUT:g} s", flush=True)
        for name, fault in faults.known().items():
            print(f"{name}: all segments after {faults.collection(fault):.2f} s", flush=True)
            if name == "head killed":
                break
            if name.startswith("node"):
                cluster.add()
            faults.recover(NODES)
        faults.side.manager.shutdown()


if __name__ == "__main__":
    main()
