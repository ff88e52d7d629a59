"""One layout for compiled loops, without copies where none is needed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pluri.validation import plain_array


@pytest.mark.parametrize("layout", ["C", "Fortran", "strided", "read-only", "narrow", "unaligned", "a file", "a list"])
def test_every_layout_becomes_the_same(layout, tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    given = X
    if layout == "Fortran":
        given = np.asfortranarray(X)
    elif layout == "strided":
        given = np.repeat(X, 2, axis=0)[::2]
    elif layout == "read-only":
        given = X.copy()
        given.setflags(write=False)
    elif layout == "narrow":
        given = X.astype(np.float32)
    elif layout == "unaligned":
        given = np.frombuffer(b"." + X.tobytes(), dtype=np.float64, offset=1).reshape(4, 3)
    elif layout == "a file":
        np.save(tmp_path / "X.npy", X)
        given = np.load(tmp_path / "X.npy", mmap_mode="r")
    elif layout == "a list":
        given = X.tolist()
    found = plain_array(given)
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    assert found.flags.aligned
    assert found.flags.writeable
    assert_array_equal(found, X)
    copied = layout not in ("C", "read-only", "a file")
    assert np.may_share_memory(found, np.asarray(given)) != copied


def test_the_memory_lives_as_long_as_the_array_that_looks_at_it():
    def make():
        X = np.full(100_000, 7.0)
        X.setflags(write=False)
        return plain_array(X)

    found = make()
    np.zeros(100_000)  # would be put where the first array was
    assert (found == 7.0).all()


def test_nothing_is_not_an_error():
    empty = np.empty((0, 3))
    empty.setflags(write=False)
    assert plain_array(empty).shape == (0, 3)
