"""Every public estimator, found by introspection, made small and given data that it can learn from.

Nothing here names a model. A class that is exported by a public subpackage and has ``fit`` is a case; its settings are
made small by the vocabulary that all models share; its data is the first kind of `TABLES` or `OTHERS` that it accepts.
An estimator that accepts none of them fails its tests until somebody says what it eats.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

import pluri

#: Settings that make any fit short, by the names that all models share.
SMALL = {
    "random_state": 0,
    "n_components": 2,
    "n_clusters": 2,
    "size": 2,
    "n_chains": 2,
    "n_draws": 8,
    "n_warmup": 8,
    "thin": 1,
    "max_iter": 10,
    "n_iter": 10,
    "n_init": 1,
    "n_particles": 8,
    "n_predictive": 20,
    "max_topics": 4,
    "max_doc_topics": 3,
    "n_super": 2,
    "n_sub": 2,
    "n_trees": 2,
    "max_nodes": (1, 2, 2),
    "max_components": 3,
    "hidden": 8,
    "hidden_size": 6,
    "embedding_size": 4,
    "max_epochs": 3,
    "beam_size": 3,
    "n_layers": 2,
    "min_support": 2,
}

RNG = np.random.default_rng(20)
N_ROWS = 36
LABELS = np.arange(N_ROWS) % 2
GROUPS = np.repeat(np.arange(6), N_ROWS // 6)
NUMBERS = RNG.normal(size=(N_ROWS, 3)) + 3.0 * LABELS[:, None]
COUNTS = RNG.poisson(np.where(LABELS[:, None], [6, 6, 6, 1, 1, 1], [1, 1, 1, 6, 6, 6])).astype(float) + 1.0
SYMBOLS = RNG.integers(3, size=(N_ROWS, 1))
BINARY = (RNG.random((N_ROWS, 6)) < np.where(LABELS[:, None], 0.8, 0.2)).astype(int)
TARGET = NUMBERS @ [1.0, -0.5, 0.25] + 0.1 * RNG.normal(size=N_ROWS)

#: Rows of samples, in the order in which they are tried.
TABLES = {"numbers": NUMBERS, "counts": COUNTS, "symbols": SYMBOLS, "binary": BINARY}


def _kernels():
    factors = RNG.normal(size=(3, 4, 3))
    return [factor @ factor.T + np.eye(4) for factor in factors]


def _subsets():
    return [np.array([0, 1]), np.array([2]), np.array([1, 3]), np.array([0, 3])] * 4


def _histories():
    from pluri.cochange import CommitHistory

    commits = [["a.py", "b.py"], ["c.py", "d.py"], ["a.py", "b.py", "c.py"], ["d.py", "a.py"]] * 12
    return CommitHistory.from_records({"time": 1e9 + 1e5 * t, "files": files} for t, files in enumerate(commits))


#: What is no table of samples: arguments of `fit`, in the order in which they are tried.
OTHERS = {
    "image": lambda: (np.where(RNG.random((6, 6)) < 0.5, 1.0, -1.0),),
    "picture": lambda: (RNG.random((12, 14)),),
    "sequences and labels": lambda: (np.split(NUMBERS, 6), LABELS[:6]),
    "measurements": lambda: (NUMBERS, RNG.normal(size=(N_ROWS, 3, 5))),
    "kernels": lambda: (_kernels(),),
    "subsets": lambda: (_subsets(), 4),
    "items and subsets": lambda: ((RNG.normal(size=(4, 2)), np.eye(4)), _subsets()),
    "segments": lambda: ([[np.eye(4)[:2], np.eye(4)[2:]]] * 3, [[np.array([0]), np.array([1])]] * 3),
    "vectors and tokens": lambda: (NUMBERS, [["low", "high"][label : label + 1] * (1 + label) for label in LABELS]),
    "sentences and trees": lambda: ([["a", "b"], ["a", "c", "b"]] * 6, ["(S a (T b))", "(S a (T c b))"] * 6),
    "commits": lambda: (_histories(),),
}


def public_estimators() -> list[type]:
    """Classes with `fit` and parameters that a public subpackage exports and that can be made without arguments."""
    found = set()
    for module in pkgutil.walk_packages(pluri.__path__, "pluri."):
        if any(part.startswith("_") for part in module.name.split(".")) or module.name.startswith("pluri.cli"):
            continue
        package = importlib.import_module(module.name)
        for name in getattr(package, "__all__", ()):
            kind = getattr(package, name)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and hasattr(kind, "fit"):
                found.add(kind)
    bases = {base for kind in found for base in kind.__mro__[1:]}  # there to be derived from
    return sorted(
        (kind for kind in found if kind not in bases or kind._get_param_names()), key=lambda kind: kind.__name__
    )


def first_argument(kind: type) -> str:
    """What `fit` calls its data: X where it is rows of samples."""
    return list(inspect.signature(kind.fit).parameters)[1]


@dataclass(frozen=True)
class Case:
    """An estimator with the data that it learned from."""

    kind: type
    data: str
    arguments: tuple[Any, ...]

    @property
    def is_table(self) -> bool:
        """Whether it learns from rows of samples."""
        return self.data in TABLES

    @property
    def X(self) -> np.ndarray:
        return self.arguments[0]

    @property
    def y(self) -> np.ndarray | None:
        return self.arguments[1] if len(self.arguments) > 1 else None

    @property
    def reads_sequences(self) -> bool:
        """Whether rows have an order, and `fit` is told where a sequence ends."""
        return self.takes("fit", "lengths")

    def takes(self, method: str, argument: str) -> bool:
        """Whether a method has an argument of its own of this name."""
        return argument in inspect.signature(getattr(self.kind, method)).parameters

    def make(self, **settings: Any) -> Any:
        """An estimator with small settings, not fitted."""
        return small(self.kind).set_params(**settings)

    def fitted(self) -> Any:
        """A fitted estimator, made once: do not change it."""
        return _fitted(self.kind)

    def queries(self) -> list[str]:
        """Methods that answer for rows of samples, one answer a row."""
        model = self.fitted()
        names = ("predict", "predict_proba", "transform", "score_samples", "decision_function")
        return [name for name in names if hasattr(model, name) and self._answers_rows(model, name)]

    def _answers_rows(self, model: Any, name: str) -> bool:
        first = next(iter(list(inspect.signature(getattr(self.kind, name)).parameters)[1:]), "")
        return first == "X" and (name != "score_samples" or not self.reads_sequences)

    def totals(self) -> list[str]:
        """Methods that give one number for all rows."""
        model = self.fitted()
        return [name for name in ("score", "bic", "aic", "perplexity") if hasattr(model, name) and self.is_table]


def small(kind: type) -> Any:
    """An estimator of a class with short fits; a model inside it is another public estimator."""
    names = inspect.signature(kind.__init__).parameters
    given = {name: value for name, value in SMALL.items() if name in names}
    if "estimator" in names and names["estimator"].default is inspect.Parameter.empty:
        grid = {"n_components": [1, 2]}
        given = {name: value for name, value in given.items() if name == "random_state"} | {"cv": 2}
        if "param_distributions" in names:
            from pluri.mixtures import GaussianMixture

            given |= {"estimator": GaussianMixture(2, random_state=0), "param_distributions": grid, "n_iter": 2}
        else:
            from pluri.sequences import GaussianHMM

            given |= {"estimator": GaussianHMM(2, random_state=0), "param_grid": grid}
    return kind(**given)


@functools.cache
def case_of(kind: type) -> Case:
    """The first kind of data that an estimator accepts."""
    refusals = []
    tags = get_tags(small(kind))
    targets = [None, LABELS, TARGET]
    if tags.target_tags.required:
        targets = [TARGET, LABELS] if tags.regressor_tags is not None else [LABELS, TARGET]
    feeds = [*OTHERS.items()]
    if first_argument(kind) == "X":
        feeds = [(name, (X,) if y is None else (X, y)) for y in targets for name, X in TABLES.items()] + feeds
    for name, made in feeds:
        try:
            arguments = made() if callable(made) else made
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                small(kind).fit(*arguments)
            return Case(kind, name, arguments)
        except (ValueError, TypeError, AttributeError, IndexError, KeyError) as refusal:
            refusals.append(f"{name}: {type(refusal).__name__}: {refusal}")
    raise AssertionError(f"{kind.__name__} accepts none of the data that the seams have:\n" + "\n".join(refusals))


@functools.cache
def _fitted(kind: type) -> Any:
    case = case_of(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.make().fit(*case.arguments)


ESTIMATORS = public_estimators()


def pytest_generate_tests(metafunc):
    if "kind" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("of")
        concerned = marker.args[0] if marker else lambda kind: True
        kinds = [kind for kind in ESTIMATORS if "table" not in metafunc.fixturenames or first_argument(kind) == "X"]
        metafunc.parametrize("kind", [*filter(concerned, kinds)], ids=lambda kind: kind.__name__)


def pytest_configure(config):
    config.addinivalue_line("markers", "of(predicate): the estimator classes that a test of all of them concerns")


@pytest.fixture
def case(kind) -> Case:
    """One public estimator and its data."""
    return case_of(kind)


@pytest.fixture
def table(case) -> Case:
    """One public estimator that learns from rows of samples."""
    if not case.is_table:
        pytest.skip(f"learns from {case.data}, not from rows of samples")
    return case
