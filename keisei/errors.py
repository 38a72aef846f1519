"""UserError: reported by the command line in one or a few lines, with exit code 2 and no traceback."""

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


class NetworkError(UserError, ValueError):
    """A network that cannot be played with, because its weights or results are not finite."""
