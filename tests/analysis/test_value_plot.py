from pathlib import Path

import pytest
from analysis_cases import FIRST, SECOND

from keisei.analysis.value_plot import plot_game
from keisei.errors import UserError


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_equal_analyses_give_equal_pictures(kind: str, tmp_path: Path) -> None:
    first = plot_game(tmp_path / f"a.{kind}", [FIRST, SECOND], 0.1).read_bytes()
    assert first == plot_game(tmp_path / f"b.{kind}", [FIRST, SECOND], 0.1).read_bytes()
    assert first != plot_game(tmp_path / f"c.{kind}", [FIRST], 0.1).read_bytes()


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot draw .*game\.txt: expected a name that ends in \.png or"):
        plot_game(tmp_path / "game.txt", [FIRST], 0.1)


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_full_disk_is_told_with_the_picture_that_had_no_room(kind: str, tmp_path: Path) -> None:
    picture = tmp_path / f"a.{kind}"
    picture.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as failed:
        plot_game(picture, [FIRST], 0.1)
    assert failed.value.filename == str(picture)
