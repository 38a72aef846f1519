"""scripts/benchmark_cluster.py: what it makes of the times of both sides."""

from benchmark_cluster import config_of, report


def test_the_report_has_the_medians_of_the_ratios() -> None:
    pairs = [[[1.0, 2.0], [1.25, 2.2]], [[1.0, 2.0], [1.0, 2.0]], [[2.0, 4.0], [2.5, 4.8]]]
    assert report(pairs, moves=4096, turns=5, workers=2, steps=64) == (
        "2 workers, segments of 2,048 moves, 3 pairs: local 20,480 moves/s; cluster x0.800 "
        "(0.800 to 1.000), +50.0 ms a turn, CPU x1.100"
    )


def test_both_sides_have_the_same_places() -> None:
    here, far = (config_of(2, 64, "ppo", cluster) for cluster in (None, "127.0.0.1:6379"))
    assert (here.training.steps_per_epoch, here.training.algorithm) == (4096, "ppo")
    assert far.training.parallel.cluster == "127.0.0.1:6379"
    for config in (here, far):
        config.training.parallel.cluster = None
    assert here == far
