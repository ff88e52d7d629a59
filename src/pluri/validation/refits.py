"""A refit that fails loses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def restored_on_failure(estimator: Any) -> Iterator[None]:
    """Put an estimator's attributes back if the block fails: a refit that fails loses nothing."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        put_back(estimator, before)
        raise


def put_back(estimator: Any, before: Mapping[str, Any]) -> None:
    """Give an estimator the attributes it had before."""
    # scikit-learn's own records of a running fit stay: it tears its callbacks down by them.
    running = {name: value for name, value in vars(estimator).items() if name.startswith(("_callback", "_skl"))}
    vars(estimator).clear()
    vars(estimator).update({**before, **running})
