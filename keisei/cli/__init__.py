"""The `keisei` command: one module per group of commands, loaded when one of them is called."""

from keisei.cli.app import main

__all__ = ["main"]
