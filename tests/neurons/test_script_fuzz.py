"""Some hundreds of random scripts; ``python tests/neurons/fuzz_scripts.py 10000`` tries more."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("fuzz_scripts", Path(__file__).parent / "fuzz_scripts.py")
fuzz_scripts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz_scripts)


def test_random_and_mutated_scripts_end_in_a_run_or_a_sentence():
    ends = {fuzz_scripts.try_script(text) for text in fuzz_scripts.scripts(400)}
    assert ends == {"ran", "while it ran", "before or between lines"}


# `test_random_and_mutated_scripts_end_in_a_run_or_a_sentence` is the quicker one.
@pytest.mark.thorough
def test_many_random_and_mutated_scripts_end_in_a_run_or_a_sentence():
    for text in fuzz_scripts.scripts(3000, seed=1):
        fuzz_scripts.try_script(text)
