"""Torch's threads do not spin for long in anybody's script, unless the environment says otherwise."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "5000"),
        ({"GOMP_SPINCOUNT": "77"}, "77"),
        ({"OMP_WAIT_POLICY": "passive"}, "None"),
    ],
)
def test_importing_keisei_sets_how_long_waiting_threads_spin_before_torch_is_loaded(
    given: dict[str, str], expected: str
) -> None:
    kept = {
        name: text for name, text in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    }
    code = "import os, sys, keisei.training; print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **given}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"{expected} False\n", done.stderr
