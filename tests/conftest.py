"""What all tests share, and how the suite is run as another machine would see it.

Two variables of the environment, which `tests/elsewhere/machines.py` sets:

- ``PLURI_SEED_OFFSET``: added to every integer seed that goes through `pluri.validation.as_generator`. A bound that was
  set after looking at one seed does not hold at another. Doctests, which show the numbers of one seed, are left out,
  and so are tests marked ``one_seed``.
- ``PLURI_TEST_ORDER``: a seed by which the tests are shuffled. A test that leans on what another left behind fails.
"""

import contextlib
import functools
import itertools
import numbers
import os
import random
import runpy
import signal
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

import pluri.validation
import pluri.validation.inputs

# A time limit for each example would fail on a busy machine, and says nothing about correctness.
settings.register_profile("pluri", deadline=None)
settings.load_profile("pluri")

# Networks are small here and compiled often: machine code that is not optimised takes half the time to make. It rounds
# differently, as another machine's would.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

# A run in the background may inherit that Ctrl-C is ignored; the tests of interruption need it heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs that run the tests are none.
collect_ignore = ["elsewhere"]

SEED_OFFSET = int(os.environ.get("PLURI_SEED_OFFSET", "0"))
TEST_ORDER = os.environ.get("PLURI_TEST_ORDER", "")


def _shift_every_seed(offset):
    """Make `as_generator` add `offset` to integers; models are imported later and so get the shifted function."""
    original = pluri.validation.inputs.as_generator

    @functools.wraps(original)
    def shifted(random_state):
        is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
        return original(int(random_state) + offset if is_seed and random_state >= 0 else random_state)

    for module in (pluri.validation, pluri.validation.inputs):
        module.as_generator = shifted


if SEED_OFFSET:
    _shift_every_seed(SEED_OFFSET)


def _second_opinions():
    """Beginnings of the names of tests that `make test` leaves out; this folder is no package to import from."""
    return tuple(runpy.run_path(str(Path(__file__).parent / "second_opinions.py"))["SECOND_OPINIONS"])


@contextlib.contextmanager
def _press_at_line(number, *files):
    seen = itertools.count()

    def follow(frame, event, argument):
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line" and next(seen) == number:
            signal.raise_signal(signal.SIGINT)
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.fixture
def press_at_line():
    """A block in which Ctrl-C comes before a line is run: after so many lines of files of these names."""
    return _press_at_line


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    beginnings = _second_opinions()
    for item in items:
        if item.nodeid.startswith(beginnings):
            item.add_marker(pytest.mark.thorough)
    if SEED_OFFSET:
        left_out = [
            item for item in items if isinstance(item, pytest.DoctestItem) or item.get_closest_marker("one_seed")
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    if TEST_ORDER:
        # By file and within each file: the examples of a module are made once, not once for each of its tests.
        shuffled = random.Random(int(TEST_ORDER))
        files = sorted({item.nodeid.split("::")[0] for item in items}, key=lambda name: zlib.crc32(name.encode()))
        shuffled.shuffle(files)
        place = {name: number for number, name in enumerate(files)}
        items.sort(key=lambda item: (place[item.nodeid.split("::")[0]], shuffled.random()))
