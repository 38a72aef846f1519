"""Startup of USI engines: usi, options, isready. Several start at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from keisei.evaluation.engines.usi_options import read_option, setoption_lines
from keisei.evaluation.engines.usi_process import EngineError, Fault, Reply, Request, UsiProcess, exchange
from keisei.evaluation.engines.usi_spec import UsiEngineSpec


@dataclass(frozen=True, slots=True)
class Started:
    """A process ready for a game. engine: what it calls itself."""

    process: UsiProcess
    engine: str


def start_engines(spec: UsiEngineSpec, count: int) -> list[Started | EngineError]:
    """Start `count` processes of an engine; return each once it is ready, or its error."""
    processes = [_launched(spec) for _ in range(count)]
    try:
        hellos = _exchange([_hello(process, spec) for process in processes])
        readies = _exchange([_set_up(*each, spec) for each in zip(processes, hellos, strict=True)])
    except BaseException:
        for process in processes:
            if isinstance(process, UsiProcess):
                process.kill()
        raise
    return [_result(*each, spec) for each in zip(processes, hellos, readies, strict=True)]


def _launched(spec: UsiEngineSpec) -> UsiProcess | EngineError:
    try:
        return UsiProcess(spec.name, spec.command, spec.memory_bytes)
    except EngineError as error:
        return error


def _hello(process: UsiProcess | EngineError, spec: UsiEngineSpec) -> Request | EngineError:
    if isinstance(process, EngineError):
        return process
    return Request(process, ["usi"], "usiok", spec.start_seconds, keep=("id", "option"))


def _set_up(
    process: UsiProcess | EngineError, hello: Reply | EngineError, spec: UsiEngineSpec
) -> Request | EngineError:
    if isinstance(process, EngineError):
        return process
    if isinstance(hello, EngineError):
        return hello
    announced = [option for line in hello.kept if (option := read_option(line)) is not None]
    try:
        lines = setoption_lines(spec.options, announced)
    except ValueError as error:
        process.kill()
        return EngineError(Fault.START, f"{spec.name}: {error}")
    return Request(process, [*lines, "isready"], "readyok", spec.start_seconds)


def _result(
    process: UsiProcess | EngineError,
    hello: Reply | EngineError,
    ready: Reply | EngineError,
    spec: UsiEngineSpec,
) -> Started | EngineError:
    for each in (process, hello, ready):
        if isinstance(each, EngineError):
            return EngineError(Fault.START, str(each))
    assert isinstance(process, UsiProcess)
    assert isinstance(hello, Reply)
    names = [line.removeprefix("id name ") for line in hello.kept if line.startswith("id name ")]
    return Started(process, next(filter(None, names), spec.name))


def _exchange(requests: Sequence[Request | EngineError]) -> list[Reply | EngineError]:
    """Return the answers; earlier errors are passed through."""
    replies = iter(exchange([each for each in requests if isinstance(each, Request)]))
    return [each if isinstance(each, EngineError) else next(replies) for each in requests]
