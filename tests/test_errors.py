"""UserError: the errors that the command line reports without a traceback."""

import pytest

from keisei.config.config_errors import ConfigError
from keisei.errors import UserError
from keisei.evaluation.engines.usi_process import EngineError
from keisei.evaluation.matches.results_store import ResultsError
from keisei.evaluation.players.player import PlayerError
from keisei.runs.checkpoint import CheckpointError
from keisei.runs.export import ExportError
from keisei.runs.run_directory import RunDirectoryError
from keisei.training.metrics import MetricsError
from keisei.usi.options import OptionError
from keisei.usi.play_setup import PlayError
from keisei.usi.protocol import ProtocolError


@pytest.mark.parametrize("kind", [ConfigError, MetricsError, OptionError, PlayerError, PlayError])
def test_a_bad_value_of_the_user_is_still_a_value_error(kind: type[Exception]) -> None:
    assert issubclass(kind, UserError)
    assert issubclass(kind, ValueError)


@pytest.mark.parametrize("kind", [CheckpointError, EngineError, ExportError, ResultsError, RunDirectoryError])
def test_what_cannot_be_used_is_told_without_a_traceback(kind: type[Exception]) -> None:
    assert issubclass(kind, UserError)


def test_a_gui_that_breaks_the_protocol_is_answered_by_the_engine_not_by_the_command_line() -> None:
    assert not issubclass(ProtocolError, UserError)
