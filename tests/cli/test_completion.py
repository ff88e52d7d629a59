"""A shell can complete commands and their options."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("line", "expected"),
    [("pluri fo", {"forecast"}), ("pluri diagnose --st", {"--strict"}), ("pluri fit --col", {"--columns"})],
)
def test_names_and_options_are_completed(line, expected):
    words = line.split()
    environment = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_PLURI_COMPLETE": "complete_bash"}
    told = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['pluri']; from pluri.cli import main; main()"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert set(told.stdout.split()) == expected, told.stderr
