"""web: the page that shows runs and games, and plays. Loads no torch."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from keisei.errors import UserError, install_command
from keisei.language import speaker_for
from keisei.runs.find import NothingFoundError, find
from keisei.runs.run_directory import RunDirectoryError

_PACKAGES = ("starlette", "uvicorn")


def web(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Runs to show: a path, or a name in --directory; latest.",
            show_default="all",
        ),
    ] = None,
    directory: Annotated[Path, typer.Option(help="Where runs are.")] = Path("runs"),
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port.", show_default="8765, or the next that is free"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; beyond this machine, a token is asked for.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            help="A secret that browsers must know.", show_default="none, or a new one beyond this machine"
        ),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = False,
    lang: Annotated[
        str | None,
        typer.Option(metavar="en|ja", help="English or Japanese.", show_default="as each browser says"),
    ] = None,
) -> None:
    """Show runs as they learn and their games, and play against them, on a page in the browser.

    keisei web

    keisei web runs/first --open

    Ctrl-C ends it.
    """
    require_web()
    language = None if lang is None else speaker_for(lang).code
    named = [_run(text, directory) for text in runs or []]
    server: Any = import_module("keisei.web.server")
    raise typer.Exit(
        server.run(named, directory, host=host, port=port, token=token, lang=language, open_browser=open_it)
    )


def require_web() -> None:
    """Say what to install if the extra is missing."""
    if missing := [name for name in _PACKAGES if not _is_installed(name)]:
        raise UserError(f"the page needs {missing[0]}, which is not installed: {install_command('web')}")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # it was made impossible to import
        return False


def _run(text: str, directory: Path) -> Path:
    """Return the run that a text names."""
    try:
        found = find(text, directory).run
    except NothingFoundError:
        found = None
    if found is None:
        raise RunDirectoryError(
            f"no run at {text or repr(text)}: expected a run's path, or its name in {directory}"
        )
    return found
