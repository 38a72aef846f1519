"""What a report says in words, with figures worked by hand."""

import pytest
from profile_samples import PROFILE, changed

from keisei.profiling.findings import PHASES, Bottleneck, bottleneck, compared, in_words


def test_the_bottleneck_is_the_longest_phase_and_amdahls_law_limits_what_removing_it_gives() -> None:
    found = bottleneck(PROFILE)
    assert found.phase == "update"
    assert found.share == pytest.approx(0.6)
    assert found.limit == pytest.approx(2.5)
    assert found.halved == pytest.approx(1 / 0.7)
    assert Bottleneck("all", 1.0).limit == float("inf")


def test_the_words_name_phase_share_limit_advice_and_cores() -> None:
    first, advice, busy, network = in_words(PROFILE)
    assert "**update** (forward, backward and optimiser): 60% of the time, 1,200 µs of the 2,000 µs" in first
    assert "at most ×2.50 as fast; at half its cost, ×1.43" in first
    assert PHASES["update"][1] in advice
    assert busy == ("The 2 cores were 60% busy with this run.")
    assert "The network (inference and update) takes 85% of the time" in network
    assert network.endswith("(env and encode) 10%.")


def test_idle_cores_are_pointed_out_and_unknown_ones_are_not() -> None:
    learner, worker = PROFILE.processes
    idle = changed(processes=[learner.__class__("learner", 1, learner.wall, {"update": 1.0})])
    assert "The 2 cores were 25% busy with this run; there is room" in list(in_words(idle))[2]
    unknown = changed(processes=[worker.__class__("learner", 1, worker.wall, {})])
    assert not any("cores were" in line for line in in_words(unknown))


def test_a_comparison_names_speed_phases_and_the_bottleneck() -> None:
    faster = changed(
        seconds=1.5, timeline={"inference": 0.8, "update": 0.5, "env": 0.1, "encode": 0.1, "other": 0.001}
    )
    speed, *phases, last = compared(PROFILE, faster)
    assert speed == "667 moves/s, earlier 500: ×1.33."
    assert phases == [
        "inference: 500.0 → 800.0 µs a move, ×1.60, slower.",
        "update: 1,200.0 → 500.0 µs a move, ×0.42, faster.",
        "env: 100.0 → 100.0 µs a move, ×1.00, the same.",
        "encode: 100.0 → 100.0 µs a move, ×1.00, the same.",
        "other: 100.0 → 1.0 µs a move, ×0.01, faster.",
    ]
    assert last == "The bottleneck was update (60%), now it is inference (53%)."


def test_noise_is_called_noise_and_another_machine_or_network_is_said() -> None:
    same = list(compared(PROFILE, changed(seconds=2.02)))
    assert "the same within the noise" in same[0]
    assert same[-1] == "The bottleneck is still update: 60% → 60% of the time."
    other = list(
        compared(PROFILE, changed(mode="serial", workers=0, network="1 block of 8 channels", cores=4))
    )
    assert [line.partition(":")[0] for line in other[-3:]] == [
        "Not the same mode",
        "Not the same network",
        "Not the same machine",
    ]


def test_formats_that_one_of_them_does_not_know_are_not_compared() -> None:
    lines = list(compared(PROFILE, changed(numerics="run.numerics: auto")))
    assert not any("formats" in line for line in lines)
    other = changed(numerics="bfloat16, contiguous (as configured)")
    assert any(line.startswith("Not the same formats: earlier float32") for line in compared(PROFILE, other))


def test_a_phase_that_is_new_is_infinitely_slower() -> None:
    lines = list(compared(changed(timeline={"update": 2.0}), PROFILE))
    assert "inference: 0.0 → 500.0 µs a move, ×inf, slower." in lines
