"""Which nodes can play for a learner, and what is said of those that cannot or may differ."""

from typing import Any

import pytest

from keisei.core.numerics import Numerics
from keisei.training.cluster.machine_facts import described, machine_facts, warnings, why_not

OURS = {**machine_facts(), "token": True, "kernels": ["avx2", "portable"], "cpu": "Zen"}
NATIVE, TORCH = Numerics(native="avx2"), Numerics()


def theirs(**other: Any) -> dict[str, Any]:
    return {**OURS, **other}


def test_a_machine_like_this_one_can_play() -> None:
    assert why_not(OURS, OURS, NATIVE, insecure=False) == ""
    assert list(warnings(OURS, OURS, TORCH)) == []
    assert described(OURS).startswith(f"Python {OURS['python']}, keisei {OURS['keisei']}, ray ")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"keisei": "0.0.1"}, f"it has keisei 0.0.1, expected {OURS['keisei']}"),
        ({"python": "3.10.2"}, f"it has python 3.10.2, expected {OURS['python']}"),
        (
            {"kernels": ["neon"], "cpu": "Arm"},
            "its Arm cannot run the avx2 kernels of this run; start with run.numerics=native-neon",
        ),
        ({"token": False}, "it takes anybody's work without a token"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(other: dict[str, Any], why: str) -> None:
    assert why_not(theirs(**other), OURS, NATIVE, insecure=False).startswith(why)


def test_another_patch_release_of_python_will_do_and_no_token_if_told() -> None:
    python = OURS["python"].rpartition(".")[0] + ".99"
    assert why_not(theirs(python=python, token=False), OURS, NATIVE, insecure=True) == ""


def test_bits_may_differ_only_where_torch_computes() -> None:
    other = theirs(cpu="Xeon", torch="2.0")
    assert list(warnings(other, OURS, NATIVE)) == []
    assert [line.partition(":")[0] for line in warnings(other, OURS, TORCH)] == [
        f"it has 2.0 and the learner {OURS['torch']}",
        "it has Xeon and the learner Zen",
    ]
