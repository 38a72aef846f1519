"""Arguments and options that several commands have."""

from typing import Annotated

import typer

Where = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_CHECKPOINT",
        help="A checkpoint, or a run: its best one, or its last; RUN@best, RUN@latest, RUN@STEP.",
    ),
]
MaxMoves = Annotated[int, typer.Option(min=2, max=100_000, help="A longer game is a draw.")]
