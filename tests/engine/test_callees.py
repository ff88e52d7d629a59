"""Compiled functions inside of others have no machine code of their own, and behave as before."""

import math
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from pluri.engine.compiled import compiled


@compiled(inner=True)
def largest_gap(values, start):
    if values.shape[0] == 0:
        raise ValueError("values must not be empty")
    largest = -math.inf
    for i in range(start + 1, values.shape[0]):
        largest = max(largest, values[i] - values[i - 1])
    return largest


@compiled()
def gaps(values, out):
    """Python calls it, and `both` does."""
    out[0] = largest_gap(values, 0)
    out[1] = largest_gap(values, 1)
    return largest_gap(values, values.shape[0] - 2)


@compiled()
def both(values, out):
    last = gaps(values, out)
    return last + out[0] + out[1]


@compiled()
def steps_down(n):
    return 1 if n <= 1 else n * steps_down(n - 1)


@compiled()
def factorial(n):
    return steps_down(n)


def test_callers_get_what_python_would():
    values, out = np.array([0.0, 3.0, 4.0, 4.5]), np.zeros(2)
    assert gaps(values, out) == 0.5
    assert out.tolist() == [3.0, 1.0]
    assert both(values, out) == 4.5
    assert factorial(5) == steps_down(5) == 120


def test_python_gets_an_error_and_no_crash():
    for _ in range(2):  # before it was compiled and after
        with pytest.raises(TypeError, match="largest_gap has no machine code of its own"):
            largest_gap(np.zeros(3), 0)
        gaps(np.zeros(3), np.zeros(2))


def test_an_error_inside_reaches_python_through_callers():
    for outer in (gaps, both):
        with pytest.raises(ValueError, match="values must not be empty"):
            outer(np.zeros(0), np.zeros(2))


def test_a_constant_argument_compiles_nothing_anew():
    @compiled(inner=True)
    def add(x, y):
        return x + y

    @compiled(cache=False)
    def add_thrice(x):
        return add(x, 1) + add(x, 2) + add(x, x)

    assert add_thrice(4) == 5 + 6 + 8
    assert len(add.signatures) == 1


def test_what_only_compiled_functions_call_is_not_compiled_for_python():
    @compiled(cache=False)
    def lent(x):
        return x + 1

    @compiled(cache=False)
    def borrower(x):
        return 2 * lent(x)

    assert borrower(3) == 8
    assert not lent.signatures
    assert lent(3) == 4
    assert len(lent.signatures) == 1


def test_a_function_that_was_sent_elsewhere_still_calls_others():
    sent = pickle.loads(pickle.dumps(both))
    assert sent(np.array([0.0, 3.0, 4.0, 4.5]), np.zeros(2)) == 4.5


def test_the_next_program_reads_callers_from_the_cache_and_compiles_no_callee(tmp_path):
    (tmp_path / "parts.py").write_text(
        textwrap.dedent("""
        from pluri.engine.compiled import compiled

        @compiled(inner=True)
        def inside(x):
            if x < 0:
                raise ValueError("x must not be negative")
            return x + 1

        @compiled()
        def between(x):
            return 2 * inside(x)

        @compiled()
        def outside(x):
            return between(x) + inside(x)
        """)
    )
    program = textwrap.dedent("""
        from numba.core import event
        from parts import inside, outside
        with event.install_recorder("numba:compile") as recorder:
            print(outside(3))
        try:
            outside(-1)
        except ValueError as error:
            print(error)
        print(len(recorder.buffer), sum(outside.stats.cache_hits.values()))
    """)
    run = lambda: subprocess.run(  # noqa: E731
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
    ).stdout.splitlines()
    first, second = run(), run()
    assert first[:2] == second[:2] == ["12", "x must not be negative"]
    assert first[2].endswith(" 0")
    assert second[2] == "0 1"
