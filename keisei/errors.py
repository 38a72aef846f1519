"""UserError: reported by the command line in one or a few lines, with exit code 2 and no traceback."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UserError(Exception):
    """A mistake by the user, or in a file or program they named; the message says what was expected."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What is reported, a line for each thing that is wrong."""
        return (str(self),)


def install_command(extra: str) -> str:
    """Return what to type where an optional dependency is missing; Keisei is on no package index yet."""
    return f"pip install '.[{extra}]' in Keisei's source directory"


def refuse_special(path: Path) -> None:
    """UserError for a pipe, a device or a socket: it may have no end, and writing may replace it."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UserError(f"{path} is a pipe or a device, expected a file")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file in the error of a write, as of a full disk, and leave no part of a file that is new."""
    is_new = not path.exists()
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        if is_new:
            path.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def system_message(error: OSError) -> str:
    """Return what the system says, after the file it is about: `game.kif: No space left on device`."""
    message = error.strerror or str(error)
    return f"{error.filename}: {message}" if error.filename else message


class NetworkError(UserError, ValueError):
    """A network that cannot be played with, because its weights or results are not finite."""
