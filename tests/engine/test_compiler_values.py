"""What is not written to memory while a function is compiled is the same in its results, references and memory."""

import sys
from collections import Counter
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core import ir
from numba.core.runtime import _nrt_python, rtsys

from pluri.engine.compiled import compiled
from pluri.engine.compiler_shortcuts import TRIED
from pluri.engine.compiler_values import _values

tried = pytest.mark.skipif(numba.version_info.short not in TRIED, reason="this version of Numba is left alone")


class Pair(NamedTuple):
    matrix: np.ndarray
    row: np.ndarray


def branches(pair, flag, n):
    if flag > 0:
        chosen = pair.row
    else:
        chosen = pair.matrix[0]
    if flag > 1:
        late = np.empty(3)
    total = 0.0
    for i in range(n):
        part = chosen[i:] if i % 2 else chosen
        if flag > 1:
            late[i % 3] = part[0]
        for value in part:
            if value < 0.0:
                continue
            total += value
        if total > 1e6:
            break
    if flag > 1:
        total += late[0]
    return total, chosen


def views(x):
    wide = np.broadcast_to(x[:3], (2, 3))
    table = x[:6].reshape(2, 3)
    turned = table.T.copy()
    flat = turned.reshape(6)
    flat[0] = 7.0
    both = np.concatenate((x, flat))
    return wide.sum() + turned[0, 1], turned, flat.view(np.int64)[0], table.astype(np.float32), both


def changed(x, order):
    y = x
    for k in order:
        if k % 2:
            y = y[1:]
        y, x = x, y
        x[0] += k
    return x, y, x.shape[0] + len(y)


def caught(x):
    found = 0
    for i in range(len(x)):
        try:
            if x[i] < 0:
                raise ValueError("negative")
            found += 1
        except Exception:
            found -= 10
    return found


def crossing(x, n):
    """Where ways meet, a view may be let go a second time."""
    total = 0.0
    for i in range(n):
        part = x[i:].copy()
        if part[0] > 2.0 and part[1] > 4.0:
            total += 1.0
        if i % 2:
            other = part.copy() if i % 3 else x
            if other[0] > 3.0 or other[1] > 5.0:
                continue
            if i > 4:
                break
        total += 2.0
    return total


CASES = {
    "crossing": (crossing, lambda: (np.arange(12.0), 10)),
    "branches": (branches, lambda: (Pair(np.arange(12.0).reshape(3, 4), -np.arange(4.0)), 2, 3)),
    "one branch": (branches, lambda: (Pair(np.arange(12.0).reshape(3, 4), np.ones(4)), 0, 3)),
    "views": (views, lambda: (np.arange(1.0, 9.0),)),
    "backwards": (views, lambda: (np.arange(1.0, 9.0)[::-1].copy(),)),
    "changed": (changed, lambda: (np.zeros(6), np.array([1, 2, 3, 4]))),
    "caught": (caught, lambda: (np.array([1.0, -1.0, 2.0]),)),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_numba_alone(name):
    function, arguments = CASES[name]
    ours, plain = compiled(cache=False)(function), numba.njit(error_model="numpy")(function)
    found, expected = ours(*arguments()), plain(*arguments())
    for one, other in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def counting():
    """Numba counts what it allocates."""
    was_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not was_on:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("name", CASES)
def test_no_reference_is_lost_or_kept(name, counting):
    function, arguments = CASES[name]
    loop = compiled(cache=False)(function)
    given = arguments()
    parts = [one for value in given for one in (value if isinstance(value, Pair) else [value])]
    arrays = [one for one in parts if isinstance(one, np.ndarray)]
    loop(*given)
    before = [sys.getrefcount(one) for one in arrays]
    allocated = rtsys.get_allocation_stats()
    for _ in range(5):
        loop(*given)
    assert [sys.getrefcount(one) for one in arrays] == before
    now = rtsys.get_allocation_stats()
    assert now.alloc - allocated.alloc == now.free - allocated.free


def blocks_of(function, types):
    """The code of a function as it is when it is turned into instructions."""
    seen = {}
    from numba.core.lowering import Lower

    class Watching(Lower):
        def _find_singly_assigned_variable(self):
            super()._find_singly_assigned_variable()
            seen["blocks"] = self.blocks

    from numba.core.typed_passes import NativeLowering

    before = NativeLowering.__dict__.get("lowering_class")
    NativeLowering.lowering_class = property(lambda self: Watching)
    try:
        numba.njit(function).compile(types)
    finally:
        NativeLowering.lowering_class = before
    return seen["blocks"]


@tried
def test_a_variable_of_one_branch_is_no_value_and_what_is_assigned_once_is():
    def example(x, flag):
        scale = x[0]
        if flag > 0:
            late = x[1]
        total = 0.0
        for i in range(3):
            total += scale * i
        if flag > 0:
            total += late
        return total

    blocks = blocks_of(example, (numba.float64[:], numba.int64))
    found = _values(blocks)
    assert {"x", "flag", "scale"} <= found
    n_assigned = Counter(one.target.name for block in blocks.values() for one in block.find_insts(ir.Assign))
    several = {name for name, number in n_assigned.items() if number > 1}
    assert {"late", "total"} <= {name.partition(".")[0] for name in several}
    assert not several & found
