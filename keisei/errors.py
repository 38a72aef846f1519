"""UserError: reported by the command line in one or a few lines, with exit code 2 and no traceback."""


class UserError(Exception):
    """A mistake by the user, or in a file or program they named; the message says what was expected."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What is reported, a line for each thing that is wrong."""
        return (str(self),)


def install_command(extra: str) -> str:
    """Return what to type where an optional dependency is missing; Keisei is on no package index yet."""
    return f"pip install '.[{extra}]' in Keisei's source directory"


class NetworkError(UserError, ValueError):
    """A network that cannot be played with, because its weights or results are not finite."""
