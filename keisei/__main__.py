"""python -m keisei: the `keisei` command."""

from keisei.cli import main

main()
