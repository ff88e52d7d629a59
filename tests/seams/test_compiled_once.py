"""Compiled functions are compiled for one layout of the data: another one would wait for the compiler again.

joblib hands read-only arrays to its workers, pandas frames are in Fortran's order, files hold narrow numbers.
"""

import sys

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")


def signatures():
    """Types that each compiled function of ours was compiled for, or loaded from the cache for."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in list(sys.modules.items()) if name.startswith("pluri.")]
    functions = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, Dispatcher)}
    return {f"{one.py_func.__module__}.{one.py_func.__name__}": set(one.signatures) for one in functions.values()}


def locked(array):
    array = np.array(array)
    array.setflags(write=False)
    return array


def narrow_in_fortran_order(array):
    array = np.asarray(array)
    return np.asfortranarray(array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype)))


def fit_and_ask(table, X, *rest):
    model = table.make().fit(X, *rest)
    for name in table.queries():
        getattr(model, name)(X)


def test_another_layout_of_the_data_compiles_nothing(table):
    fit_and_ask(table, *table.arguments)
    before = signatures()
    for layout in (locked, narrow_in_fortran_order):
        fit_and_ask(table, *map(layout, table.arguments))
        again = {name: types - before[name] for name, types in signatures().items() if before.get(name)}
        assert not {name: types for name, types in again.items() if types}, layout.__name__
