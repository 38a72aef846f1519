"""The names of the package itself."""

import pytest

from keisei.training import parallel


def test_its_names_are_loaded_on_first_use() -> None:
    for name in parallel.__all__:
        assert getattr(parallel, name).__name__ == name


def test_another_name_is_none_of_its() -> None:
    with pytest.raises(AttributeError, match=r"module keisei\.training\.parallel has no Manager"):
        parallel.Manager  # noqa: B018
