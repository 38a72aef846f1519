"""The flame graph: widths are samples, a frame stands on its caller, and any name is safe in the SVG."""

import xml.etree.ElementTree as ET

import pytest

from keisei.profiling.flame_graph import ROW, WIDTH, colour, draw, simplified, tree

STACKS = {"learner;a (x.py);b (x.py)": 6, "learner;a (x.py);c (x.py)": 2, "worker 0;a (x.py)": 2}
SVG = "{http://www.w3.org/2000/svg}"


def boxes(svg: str) -> dict[str, tuple[float, float, float]]:
    """Return x, y and width of each frame, by name."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        if group.get("class") == "f" and box is not None:
            found[group.attrib["data-n"]] = (
                float(box.attrib["x"]),
                float(box.attrib["y"]),
                float(group.attrib["data-w"]),
            )
    return found


def test_a_frame_has_its_own_samples_and_its_callees() -> None:
    root = tree(STACKS)
    assert root.samples == 10
    learner = root.callees["learner"]
    assert learner.samples == 8
    assert {name: frame.samples for name, frame in learner.callees["a (x.py)"].callees.items()} == {
        "b (x.py)": 6,
        "c (x.py)": 2,
    }


def test_recursion_is_one_frame() -> None:
    assert tree({"f (x.py);f (x.py);f (x.py)": 5}).callees["f (x.py)"].callees == {}


def test_widths_are_samples_and_a_callee_stands_on_its_caller() -> None:
    found = boxes(draw(STACKS, "title"))
    assert found["all"][2] == WIDTH
    assert found["learner"][2] == pytest.approx(0.8 * WIDTH)
    assert found["b (x.py)"][2] == pytest.approx(0.6 * WIDTH)
    assert found["c (x.py)"][0] == pytest.approx(found["b (x.py)"][0] + found["b (x.py)"][2], abs=0.01)
    assert found["learner"][1] == found["all"][1] - ROW
    assert found["b (x.py)"][1] == found["learner"][1] - 2 * ROW


def test_every_row_lies_inside_the_picture() -> None:
    svg = draw(STACKS, "title")
    height = float(ET.fromstring(svg).attrib["height"])
    tops = [y for _, y, _ in boxes(svg).values()]
    assert height - ROW - 10 <= max(tops) <= height - ROW
    assert min(tops) >= 40


def test_a_single_sample_fills_the_width() -> None:
    assert boxes(draw({"f (x.py)": 1}, "title"))["f (x.py)"][2] == WIDTH


def test_frames_too_thin_to_see_are_left_out() -> None:
    found = boxes(draw({"wide (x.py)": 9_995, "thin (x.py)": 5}, "title"))
    assert "wide (x.py)" in found
    assert "thin (x.py)" not in found


def test_names_cannot_break_the_picture() -> None:
    name = '<lambda> & "friends" \']]> (x.py)'
    assert name in boxes(draw({name: 1}, "<title> & more"))


def test_nothing_sampled_is_an_empty_picture() -> None:
    assert boxes(draw({}, "title")).keys() == {"all"}


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("at::add<float, int>(at::Tensor const&) (libtorch.so)", "at::add (libtorch.so)"),
        ("std::map<a<b>, c>::find (x.so)", "std::map::find (x.so)"),
        ("get.<locals>.wrapper (typer/main.py)", "get.<locals>.wrapper (typer/main.py)"),
        ("0x7f00 (libgomp.so)", "(libgomp.so)"),
        ("0x7f00 (?)", "code without a name (?)"),
    ],
)
def test_long_native_names_are_shortened_and_python_s_are_not(raw: str, name: str) -> None:
    assert simplified(raw) == name


def test_ours_other_python_native_code_and_processes_have_colours_of_their_own() -> None:
    names = ("step (keisei/core/x.py)", "call (torch/x.py)", "add (libtorch.so)", "learner")
    ours, python, native, process = (float(colour(name)[4:].partition(" ")[0]) for name in names)
    assert ours < 40 <= python < 80 <= native < 150 <= process
