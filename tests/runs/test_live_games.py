"""The file of live games: what is written is read, and what is not as expected is taken for none."""

from pathlib import Path

import pytest

from keisei.runs.live_games import FILE, LiveGame, LiveGames, read_live_games, write_live_games
from keisei.shogi import Color, Outcome, Reason

LIVE = LiveGames(
    512,
    (
        LiveGame(7, 2, "some sfen", ("7g7f", "3c3d"), (None, 51), None),
        LiveGame(8, 0, "another", ("7g7f",), (None,), Outcome(Color.BLACK, Reason.CHECKMATE)),
        LiveGame(9, 0, "a third", (), (), Outcome(None, Reason.REPETITION)),
    ),
)

NO_REASON = (
    '{"step":1,"games":[{"number":1,"before":0,"sfen":"","moves":"","black_percent":[],'
    '"outcome":{"winner":0,"reason":"boredom"}}]}'
)
UNEVEN = (
    '{"step":1,"games":[{"number":1,"before":0,"sfen":"","moves":"7g7f","black_percent":[],"outcome":null}]}'
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_live_games(tmp_path) is None
    write_live_games(tmp_path, LIVE)
    assert read_live_games(tmp_path) == LIVE
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_torn_file_is_taken_for_none(tmp_path: Path) -> None:
    write_live_games(tmp_path, LIVE)
    whole = (tmp_path / FILE).read_bytes()
    for size in range(len(whole)):
        (tmp_path / FILE).write_bytes(whole[:size])
        assert read_live_games(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    ["[]", "3", '{"step":1}', '{"step":1,"games":[3]}', '{"step":"x","games":[]}', UNEVEN, NO_REASON],
)
def test_a_foreign_file_is_taken_for_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    assert read_live_games(tmp_path) is None
