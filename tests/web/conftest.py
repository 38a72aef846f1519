"""A server that tests share: it shows one made run, and no training runs."""

from collections.abc import Iterator

import pytest
from made_runs import made_run
from web_server import Web, web


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server over the run "first" with metrics, games of both kinds, results and a checkpoint."""
    folder = tmp_path_factory.mktemp("site")
    made_run(folder / "runs" / "first")
    with web(folder) as server:
        yield server
