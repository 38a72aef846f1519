"""export: the network as ONNX."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import Where, check_target
from keisei.runs.export import export_onnx
from keisei.runs.find import find_checkpoint


def export(
    where: Where,
    out: Annotated[
        Path, typer.Option(help="A file, or a directory for RUN@STEP.onnx.", show_default="here")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    tolerance: Annotated[
        float,
        typer.Option(min=0, help="Allowed difference in values, and in logits relative to the largest."),
    ] = 1e-5,
) -> None:
    """Write a checkpoint's network as ONNX, after running it and comparing it with the original.

    keisei export first

    keisei export runs/first@400000 --out first.onnx
    """
    check_target("--out", out, or_directory=True)
    done = export_onnx(find_checkpoint(where), out, tolerance=tolerance, force=force)
    found = done.differences
    print(
        f"{done.path}: {done.bytes:,} bytes, opset {done.opset}, weights sha256 {done.sha256}; "
        f"on {found.positions} positions logits differ by {found.policy:.1e}, values by {found.value:.1e}"
    )
