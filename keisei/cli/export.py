"""export: the network as ONNX."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import Where
from keisei.runs.export import export_onnx
from keisei.runs.find import find_checkpoint


def export(
    where: Where,
    out: Annotated[
        Path, typer.Option(help="The file, or a directory for RUN@STEP.onnx.", show_default="here")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    tolerance: Annotated[
        float, typer.Option(min=0, help="How far logits, as a share of the largest, and values may differ.")
    ] = 1e-5,
) -> None:
    """Write the network of a checkpoint as ONNX; the file is run and compared with the network first.

    keisei export first

    keisei export runs/first@400000 --out first.onnx
    """
    done = export_onnx(find_checkpoint(where), out, tolerance=tolerance, force=force)
    found = done.differences
    print(
        f"{done.path}: {done.bytes:,} bytes, opset {done.opset}, weights sha256 {done.sha256}; "
        f"on {found.positions} positions logits differ by {found.policy:.1e}, values by {found.value:.1e}"
    )
