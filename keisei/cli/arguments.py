"""Arguments and options that several commands have."""

from typing import Annotated

import typer

Where = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_CHECKPOINT",
        help="latest, RUN, RUN@best, RUN@latest, RUN@STEP, or a checkpoint's path; of a run alone its best "
        "checkpoint, or its last.",
    ),
]
MaxMoves = Annotated[int, typer.Option(min=2, max=100_000, help="A longer game is a draw.")]
