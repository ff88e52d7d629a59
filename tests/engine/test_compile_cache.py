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
def write(tmp_path):
    def write(name, text, age):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        os.utime(path, (1_600_000_000 + age,) * 2)

    return write


@pytest.fixture
def environment(tmp_path):
    return {"PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def run(write, environment):
    def run(parts=PARTS, age=0, program=PROGRAM):
        write("parts.py", parts, age)
        write("whole.py", WHOLE, 0)
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], capture_output=True, text=True, env=os.environ | environment
        )
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    return run


def test_what_did_not_change_is_read_from_the_disk(run):
    assert run() == [11, 1, 0]
    # The layers of an image keep times in whole seconds, some archives keep none.
    assert run(age=100) == [11, 1, 1]


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


#: Compiled for several types by each of several programs at once: each begins elsewhere in the list.
CROWD = """
import sys, time
from pathlib import Path
import numpy as np
import whole
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
kinds = [np.int8, np.int32, np.float32, np.float64]
begin = int(sys.argv[1])
for kind in kinds[begin:] + kinds[:begin]:
    assert whole.outer(kind(2)) == 13
print(sum(whole.outer.stats.cache_hits.values()), sum(whole.outer.stats.cache_misses.values()))
"""


def test_programs_that_compile_at_once_do_not_spoil_each_others_code(write, environment, tmp_path):
    write("parts.py", PARTS, 0)
    write("whole.py", WHOLE, 0)

    def start(begin):
        return subprocess.Popen(
            [sys.executable, "-B", "-c", CROWD, str(begin), str(tmp_path / "go")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
        )  # fmt: skip

    def finish(process):
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        return output.split()

    crowd = [start(begin) for begin in (0, 0, 2)]
    (tmp_path / "go").touch()
    for process in crowd:
        finish(process)
    # What one of them had lost to another would be compiled again here.
    assert finish(start(0)) == ["4", "0"]
    assert len(list((tmp_path / "cache").rglob("whole.outer*.nbi"))) == 1
    assert not list((tmp_path / "cache").rglob("*.tmp.*"))


#: The power fails when half of it is written, whichever half comes first.
KILLED = """
import os, whole
file, written = whole.outer._cache._cache_file, []

def once(write):
    def write_or_die(*arguments):
        os._exit(0) if written else written.append(write(*arguments))
    return write_or_die

file._save_index, file._save_data = once(file._save_index), once(file._save_data)
print(whole.outer(0))
"""


def test_a_program_killed_while_it_saves_leaves_no_wrong_code_behind(run, tmp_path):
    assert run()[0] == 11
    before = set((tmp_path / "cache").rglob("whole.*.nbc"))
    changed = PARTS.replace("x + 10", "x + 20")
    assert run(changed, age=100, program=KILLED) == []
    assert run(changed, age=100)[0] == 21
    # Code of the older source is gone, and so is what nothing names.
    after = set((tmp_path / "cache").rglob("whole.*.nbc"))
    assert len(after) == len(before)
    assert not before & after


def test_files_that_the_disk_has_spoilt_are_made_anew(run, tmp_path):
    assert run() == [11, 1, 0]
    for files in ("*.nbc", "*.nbi"):
        for path in (tmp_path / "cache").rglob(files):
            path.write_bytes(path.read_bytes()[:20])
        assert run() == [11, 1, 0]
    assert run() == [11, 1, 1]


def test_a_full_disk_is_a_warning_and_no_error(run):
    program = """
import errno, os, warnings, whole
def refuse(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
for loop in (whole.outer, whole.inner):
    loop._cache._cache_file._save_data = refuse
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = whole.outer(0)
told = [str(one.message) for one in told]
assert len(told) == 1 and "No space left on device" in told[0] and "NUMBA_CACHE_DIR" in told[0], told
print(found)
"""
    assert run(program=program) == [11]
