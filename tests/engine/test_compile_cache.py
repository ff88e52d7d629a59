"""Compiled code on disk is compiled anew when a file that it was made from changes, its own or another."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pluri

SOURCE = Path(pluri.__file__).parent.parent
PARTS = """
    from typing import NamedTuple
    import numpy as np
    from pluri.engine.compiled import compiled

    class Pair(NamedTuple):
        left: int
        right: int

    STEP = 1

    @compiled()
    def inner(x):
        return x + 10
"""
WHOLE = """
    from parts import STEP, Pair, inner
    from pluri.engine.compiled import compiled

    @compiled()
    def outer(x):
        return inner(x) + STEP

    @compiled()
    def of_pair(pair):
        return pair.left
"""
PROGRAM = """
import parts, whole
print(whole.outer(0), whole.of_pair(parts.Pair(1, 2)), sum(whole.outer.stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    def write(name, text, age):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        os.utime(path, (1_600_000_000 + age,) * 2)

    def run(parts=PARTS, age=0, program=PROGRAM):
        write("parts.py", parts, age)
        write("whole.py", WHOLE, 0)
        environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], capture_output=True, text=True, env=os.environ | environment
        )
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    return run


def test_what_did_not_change_is_read_from_the_disk(run):
    assert run() == [11, 1, 0]
    assert run() == [11, 1, 1]


@pytest.mark.parametrize(
    ("old", "new", "outer", "left"),
    [
        ("x + 10", "x + 20", 21, 1),
        ("STEP = 1", "STEP = 5", 15, 1),
        ("left: int\n        right: int", "right: int\n        left: int", 11, 2),
    ],
    ids=["a function that is called", "a constant", "the order of the fields of a record"],
)
def test_a_change_in_another_file_is_seen(run, old, new, outer, left):
    assert run()[:2] == [11, 1]
    assert run(PARTS.replace(old, new), age=100)[:2] == [outer, left]


def test_a_constant_of_another_file_is_seen_though_the_file_looks_the_same(run):
    # Same time, same size.
    assert run()[0] == 11
    assert run(PARTS.replace("STEP = 1", "STEP = 7"))[0] == 17


def test_a_record_that_was_renamed_is_no_error(run):
    assert run()[:2] == [11, 1]
    renamed = PARTS.replace("class Pair(", "class Couple(").replace("    STEP = 1", "    Pair = Couple\n    STEP = 1")
    del_name = "import parts, whole\ndel parts.Pair\nprint(whole.of_pair(parts.Couple(3, 4)))"
    assert run(renamed, age=100, program=del_name) == [3]
