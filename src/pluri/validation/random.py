"""One door for randomness: every function below the estimators takes a ``numpy.random.Generator``."""

from __future__ import annotations

import numbers

import numpy as np

RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn scikit-learn's ``random_state`` into a NumPy ``Generator``.

    An int gives the same stream each time, a ``Generator`` is used as it is (and so advances), a legacy
    ``RandomState`` seeds a new generator from its own stream, ``None`` takes fresh entropy.

    Examples
    --------
    >>> from pluri.validation import as_generator
    >>> bool(as_generator(3).random() == as_generator(3).random())
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint64))
    if random_state is None or (isinstance(random_state, numbers.Integral) and int(random_state) >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise ValueError(
        "random_state must be None, a non-negative int, a numpy.random.Generator or a RandomState, "
        f"got {random_state!r}"
    )
