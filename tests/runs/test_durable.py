"""Files that a crash cannot tear: what reaches the disk, in which order."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keisei.runs.durable import remove_whole, sync_directory, write_durably


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return a list to which each call that tells the disk something is added, with the name it is about."""
    made: list[tuple[str, str]] = []

    def listed(name: str, target: Callable[..., str]) -> None:
        real = getattr(os, name)

        def call(*arguments: Any) -> Any:
            made.append((name, target(*arguments)))
            return real(*arguments)

        monkeypatch.setattr(os, name, call)

    listed("fsync", lambda descriptor: Path(os.readlink(f"/proc/self/fd/{descriptor}")).name[:9])
    listed("replace", lambda _, path: path.name)
    listed("rename", lambda path, _: path.name)
    return made


def test_a_file_is_on_disk_before_its_name_is_and_the_name_before_the_call_returns(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write_durably(folder / "a.json", b"new")
    assert calls == [("fsync", ".tmp-a.js"), ("replace", "a.json"), ("fsync", "folder")]


def test_a_directory_has_lost_its_name_on_disk_before_its_files_go(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    (tmp_path / "old" / "deep").mkdir(parents=True)
    remove_whole(tmp_path / "old")
    assert calls == [("rename", "old"), ("fsync", tmp_path.name[:9])]
    assert list(tmp_path.iterdir()) == []


def test_only_a_directory_is_synced_as_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        sync_directory(tmp_path / "file")


def test_a_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    write_durably(tmp_path / "ours", b"")
    (tmp_path / "any").touch()
    ours, others = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "any"))
    assert ours == others


def test_the_error_of_a_write_that_could_not_begin_is_the_only_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as told:
        write_durably(tmp_path / "nowhere" / "file", b"")
    assert told.value.__context__ is None


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    write_durably(tmp_path / "file", b"new")
    write_durably(tmp_path / "file", b"newer")
    assert os.listdir("/proc/self/fd") == before
