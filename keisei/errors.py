"""UserError: what the command line tells in a line or a few, with exit code 2 and without a traceback."""


class UserError(Exception):
    """A mistake of the user, or of a file or program that they named; the message says what was expected."""
