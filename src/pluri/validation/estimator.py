"""The base of all estimators: scikit-learn's, with methods that learn until Ctrl-C comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isfunction
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from pluri.validation.interruption import MARK, interruptible

#: How the names of methods that learn begin.
LEARNING = ("fit", "partial_fit", "update", "prune")


class Estimator(BaseEstimator):
    """scikit-learn's estimator whose methods that learn end well after Ctrl-C.

    Every ``fit``, ``fit_*``, ``partial_fit``, ``update*`` or ``prune*`` that a subclass defines is
    `pluri.validation.interruption.interruptible`: an interrupt held by a loop inside is raised when the method has
    stored what it keeps; one that leaves nothing to keep puts the estimator back as it was.

    Examples
    --------
    >>> from pluri.validation.estimator import Estimator
    >>> from pluri.validation.interruption import hold
    >>> class Counter(Estimator):
    ...     def fit(self, X, y=None):
    ...         self.count_ = 0
    ...         try:
    ...             for row in X:
    ...                 if row is None:
    ...                     raise KeyboardInterrupt
    ...                 self.count_ += 1
    ...         except KeyboardInterrupt as stop:
    ...             hold(stop, f"interrupted after {self.count_} rows")
    ...         return self
    >>> counter = Counter()
    >>> try:
    ...     counter.fit([1, 2, None, 3])
    ... except KeyboardInterrupt as stop:
    ...     print(stop)
    interrupted after 2 rows
    >>> counter.count_
    2
    """

    #: What scikit-learn's tools ask of X (`sklearn.utils.InputTags`), besides what base classes say.
    _input_tags: ClassVar[Mapping[str, bool]] = {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for base in reversed(type(self).__mro__):
            for name, value in vars(base).get("_input_tags", {}).items():
                setattr(tags.input_tags, name, value)
        return tags

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, method in list(vars(cls).items()):
            if not name.startswith(LEARNING):
                continue
            if isfunction(method):
                setattr(cls, name, _marked(method))
            elif isfunction(getattr(method, "fn", None)):  # behind scikit-learn's available_if
                method.fn = _marked(method.fn)


def _marked(method: Callable[..., Any]) -> Callable[..., Any]:
    return method if hasattr(method, MARK) else interruptible(method=True)(method)
