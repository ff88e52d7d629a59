"""Types are checked among the tests, so that the other worker goes on meanwhile; `make lint` checks them alone."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_mypy_has_nothing_to_say():
    pytest.importorskip("mypy")
    root = Path(__file__).parent.parent
    found = subprocess.run([sys.executable, "-m", "mypy"], cwd=root, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
