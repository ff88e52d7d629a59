"""The list of long tests that `make test` leaves out is up to date."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("second_opinions", Path(__file__).parent / "second_opinions.py")
second_opinions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(second_opinions)


@pytest.mark.parametrize("beginning", second_opinions.SECOND_OPINIONS)
def test_every_line_begins_the_name_of_a_test(beginning):
    path, _, name = beginning.partition("::")
    source = (Path(__file__).parent.parent / path).read_text(encoding="utf-8")
    assert f"def {name.partition('[')[0]}" in source


def test_the_quicker_test_is_named():
    assert all(second_opinions.SECOND_OPINIONS.values())
