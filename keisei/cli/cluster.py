"""cluster: what is there to play on other machines."""

from enum import StrEnum
from typing import Annotated

import typer

from keisei.training.cluster.status import cluster_status


class Action(StrEnum):
    """What to do."""

    STATUS = "status"


def cluster(
    action: Annotated[Action, typer.Argument(help="status: nodes, cores, versions, and who plays")],  # noqa: ARG001
    address: Annotated[
        str, typer.Option(help="host:port of the Ray cluster, or auto for the one of this machine")
    ] = "auto",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Look at a cluster that asks nobody for a token.")
    ] = False,
) -> None:
    """Show what a Ray cluster offers for training: nodes, cores, versions, token, and who plays there.

    keisei cluster status --address 10.0.0.1:6379
    """
    for line in cluster_status(address, insecure=insecure):
        print(line, flush=True)
