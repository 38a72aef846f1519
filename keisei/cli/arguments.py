"""Arguments and options shared by several commands."""

from typing import Annotated

import typer

Where = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_CHECKPOINT",
        help="latest, RUN, RUN@best, RUN@latest, RUN@STEP, or a checkpoint's path; a run alone means its "
        "best checkpoint, or its last.",
    ),
]
MaxMoves = Annotated[int, typer.Option(min=2, max=100_000, help="Longer games are drawn.")]
