"""The report as people read it."""

from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from profile_samples import PROFILE, changed

from keisei.profiling.report import draw, markdown


def section(text: str, title: str) -> list[str]:
    """Return the lines below a heading."""
    return text.partition(f"## {title}\n\n")[2].partition("\n\n##")[0].splitlines()


def test_the_report_begins_with_the_findings_and_has_every_figure() -> None:
    text = markdown(PROFILE, None, {"flame.svg": "a flame graph"})
    assert text.startswith(
        "# Where the time goes: parallel, 2 workers, 500 moves/s\n\n- The bottleneck is **update**"
    )
    assert "| update | 1.20 | 60.0% | 1,200.0 | ×2.50 | forward, backward and optimiser |" in text
    processes = section(text, "Each process")
    assert "| process |  | env | inference | collect | encode | update | wait | other | all |" in processes
    assert "| worker 0 | wall | 0.10 | 0.50 |  |  |  | 1.40 |  | 2.00 |" in processes
    assert "| learner | CPU |  |  |  |  | 2.00 |  |  | 2.00 |" in processes
    assert section(text, "Memory")[-1] == "| learner | 300 MB | 500 MB | 400 MB |"
    assert "| 0.25 | 1.50 | 4 | `core/ppo_agent.py:99 learn` |" in section(text, "Functions: learner")
    how = "\n".join(section(text, "How it was measured"))
    assert "The pass for functions ran at ×0.50 of this." in how
    assert "commit 0123456789ab;" in how
    assert "- a notice" in how
    assert section(text, "Files")[-1] == "| `flame.svg` | a flame graph |"
    assert "Against" not in text


def test_what_is_left_out_is_said_only_where_something_is() -> None:
    def how(**values: Any) -> str:
        return section(markdown(changed(**values), None, {}), "How it was measured")[1]

    assert how() == "- 1,000 moves in 4 updates, 2.0 s; start-up (1.0 s) is left out. So is the first update."
    assert how(updates=1) == (
        "- 1,000 moves in 1 update, 2.0 s; start-up (1.0 s) is left out. So is the first update."
    )
    assert how(updates=1, skipped=0) == "- 1,000 moves in 1 update, 2.0 s; start-up (1.0 s) is left out."
    assert how(start_seconds=0.0, skipped=0) == "- 1,000 moves in 4 updates, 2.0 s."


def test_a_pass_with_evaluation_is_not_compared_with_those_without() -> None:
    text = markdown(changed(timeline={"update": 1.0, "evaluation": 1.0}), None, {})
    assert "The pass for" not in text


def test_a_comparison_comes_right_after_the_findings() -> None:
    text = markdown(changed(seconds=1.0), PROFILE, {})
    assert section(text, "Against the profile of 2026-01-02T03:04:05+00:00")[0] == (
        "- 1,000 moves/s, earlier 500: ×2.00."
    )
    assert "## Files" not in text


def test_the_picture_shows_the_phases_of_every_process_and_memory_over_time() -> None:
    figure = draw(PROFILE)
    phases, memory = figure.axes
    assert [label.get_text() for label in phases.get_yticklabels()] == ["run", "learner", "worker 0"]
    assert phases.get_title() == "parallel: 500 moves/s"
    assert phases.get_xlabel() == "wall seconds"
    ends = [bar.get_x() + bar.get_width() for bar in phases.patches if isinstance(bar, Rectangle)]
    assert max(ends) == pytest.approx(2.0)
    assert len(ends) == 5 + 4 + 3
    (legend,) = figure.legends
    names = {text.get_text() for text in legend.get_texts()}
    assert names == {"update", "inference", "env", "encode", "collect", "wait", "other"}
    assert memory.get_ylabel() == "memory, MB"
    assert np.asarray(memory.lines[0].get_ydata()).tolist() == [300, 500, 400]
    assert memory.get_legend() is not None
    without = draw(changed(memory=[]))
    assert len(without.axes) == 1
    assert without.get_figheight() < figure.get_figheight() - 2


def test_columns_of_figures_are_aligned_right() -> None:
    lines = section(markdown(PROFILE, None, {}), "Wall time of the run")
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | --- |"
