"""Shortcuts through Numba's compiler give the same code, and only while a function of ours is compiled."""

import gc
import re
from collections import Counter

import numba
import numpy as np
import pytest
from numba.core.ir import Inst
from numba.core.targetconfig import TargetConfig
from numba.core.types.functions import BaseFunction
from numba.extending import overload

from pluri.engine import compiler_shortcuts
from pluri.engine.compile_record import listening
from pluri.engine.compiled import compiled
from pluri.engine.compiler_shortcuts import TRIED, CompilerShortcuts, hurried

PLACES = ((TargetConfig, "__eq__"), (TargetConfig, "__hash__"), (BaseFunction, "get_call_type"),
          (Inst, "_rec_list_vars"))  # fmt: skip


def methods():
    return [vars(kind)[name] for kind, name in PLACES]


def methods_while_compiling(function, *arguments):
    """What stood in each place when each compilation began."""
    seen = []
    with listening(lambda data: seen.append(methods()), lambda data: None):
        function(*arguments)
    return seen


def statistics(x, y):
    largest, total, n = -np.inf, 0.0, 0
    for i in range(x.shape[0]):
        largest = max(largest, x[i], min(y, 1))
        if not np.isnan(x[i]) and (i % 2 == 0 or x[i] ** 2 > y / 3):
            total += x[i] * y - i
            n += 1
    return largest, total, n, np.sqrt(np.abs(x)).sum()


def code(function):
    """What LLVM is given, without the numbers that Numba counts functions and constants with."""
    (text,) = function.inspect_llvm().values()
    body = text[text.index("define") :]
    return re.sub(r"_ZN[\w$%.]*|0x[0-9a-f]+|\.\d+|\$\d+|inttoptr \(i64 \d+|\d{12,}", "", body)


def without_shortcuts(function):
    return numba.njit(nogil=True, no_cfunc_wrapper=True, error_model="numpy")(function)


@pytest.fixture
def only_other_shortcuts(monkeypatch):
    """Values are written to memory as ever; the rest is skipped."""
    compiler_shortcuts._shortcuts.cache_clear()
    for name in ("assigned_once", "taken_apart"):
        monkeypatch.setattr(compiler_shortcuts, name, lambda: iter(()))
    yield
    compiler_shortcuts._shortcuts.cache_clear()


def instructions(function):
    """How often each kind of instruction occurs."""
    lines = re.findall(r"^ +(?:%\S+ = )?((?:tail )?\w+)", code(function), re.MULTILINE)
    return Counter(lines)


def test_the_code_is_the_same_with_and_without_shortcuts(only_other_shortcuts):
    x = np.array([1.0, np.nan, -3.0, 2.5])
    ours, plain = compiled(cache=False)(statistics), without_shortcuts(statistics)
    np.testing.assert_array_equal(ours(x, 2), plain(x, 2))
    assert ours.nopython_signatures == plain.nopython_signatures
    assert code(ours) == code(plain)


def test_values_that_are_not_written_to_memory_change_nothing_but_the_order_of_the_code():
    x = np.array([1.0, np.nan, -3.0, 2.5])
    ours, plain = compiled(cache=False)(statistics), without_shortcuts(statistics)
    np.testing.assert_array_equal(ours(x, 2), plain(x, 2))
    assert ours.nopython_signatures == plain.nopython_signatures
    assert instructions(ours) == instructions(plain)


@pytest.mark.skipif(numba.version_info.short not in TRIED, reason="this version of Numba is left alone")
def test_numba_is_as_it_was_before_and_after_and_for_functions_of_others():
    before = methods()

    @compiled(cache=False, inner=True)
    def double(x):
        return 2 * x

    @compiled(cache=False)
    def twice(x):
        return double(double(x))

    seen = methods_while_compiling(twice, 3)
    assert len(seen) == 2
    assert all(now is not then for found in seen for now, then in zip(found, before))
    assert methods() == before
    assert methods_while_compiling(numba.njit(lambda x: x + 1), 3) == [before]

    @compiled(cache=False)
    def impossible(x):
        return x.nothing

    with pytest.raises(numba.TypingError):
        impossible(1)
    assert methods() == before


@pytest.mark.skipif(numba.version_info.short not in TRIED, reason="this version of Numba is left alone")
def test_the_compiler_hurries_for_a_function_of_others_inside_a_block_and_an_error_ends_it():
    before, was_on = methods(), gc.isenabled()
    with hurried():
        assert not gc.isenabled()
        assert all(now is not then for now, then in zip(methods(), before))
        with hurried():
            assert numba.njit(statistics)(np.ones(3), 2)[2] == 3
        assert all(now is not then for now, then in zip(methods(), before))
    assert (methods(), gc.isenabled()) == (before, was_on)
    with pytest.raises(numba.TypingError), hurried():
        numba.njit(lambda x: x.nothing)(1)
    assert (methods(), gc.isenabled()) == (before, was_on)


def test_what_is_declared_between_two_functions_is_found():
    def third(x):
        raise NotImplementedError

    @compiled(cache=False)
    def early(x):
        return x + 1

    early(1)

    @overload(third)
    def third_of(x):
        return lambda x: x / 3

    @compiled(cache=False)
    def late(x):
        return third(x)

    assert late(6) == 2.0


def test_equal_options_are_equal_however_they_were_set():
    from numba.core.compiler import Flags

    one, other, different = Flags(), Flags(), Flags()
    one.nrt = bool(Flags.options["nrt"].default)
    different.nrt = not one.nrt
    shortcuts = CompilerShortcuts()
    slow = hash(one)
    shortcuts.begin({"dispatcher": compiled(cache=False)(statistics)})
    try:
        assert one == other
        assert hash(one) == hash(other) == slow
        assert one != different
    finally:
        shortcuts.end({})


def test_a_numba_that_was_not_tried_is_left_alone(monkeypatch):
    compiler_shortcuts._shortcuts.cache_clear()
    monkeypatch.setattr(compiler_shortcuts, "TRIED", frozenset())
    try:
        assert compiler_shortcuts._shortcuts() == ()
    finally:
        compiler_shortcuts._shortcuts.cache_clear()
