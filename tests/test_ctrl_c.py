"""Ctrl-C in the fit of every public estimator, found by introspection: it is heard, and nothing is half-fitted.

The signal is a real one, sent from inside the fit: at the first, the middle and late calls of a function of pluri among
those that a fit of the same seed makes.
"""

import copy
import importlib
import inspect
import signal
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import pluri
from pluri.processes.dpp import DPP
from pluri.sequences import GaussianHMM
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import MARK

#: What makes a fit short, whichever of them an estimator has.
SHORT = {
    "n_components": 2, "max_iter": 6, "n_iter": 6, "n_warmup": 3, "n_draws": 3, "n_samples": 3, "burn_in": 3, "thin": 1,
    "n_init": 2, "n_chains": 2, "random_state": 0, "max_nodes": (1, 2, 3), "max_features": 4, "max_topics": 5,
}  # fmt: skip
FAMILIES = ("sequences", "mixtures", "topics", "factors", "processes", "processes.dpp",
            "processes.dpp.learning", "cochange")  # fmt: skip
#: Where in a fit the signal comes, as a share of its calls.
PLACES = (0.02, 0.5, 0.8, 0.97)
pytestmark = [pytest.mark.filterwarnings("ignore")]


def public_estimators():
    found = {}
    for family in FAMILIES:
        package = importlib.import_module(f"pluri.{family}")
        for name in package.__all__:
            kind = getattr(package, name)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and not inspect.isabstract(kind):
                found[name] = kind
    return found


ESTIMATORS = public_estimators()
BASES = {"HiddenMarkovModel", "TopicModel", "MixtureModel", "VariationalHMM", "FlatTopicModel", "DiscreteMixture"}
CONCRETE = sorted(set(ESTIMATORS) - BASES)


def rows(n_columns=6, n_rows=40):
    X = (np.random.default_rng(0).random((n_rows, n_columns)) < 0.4).astype(float)
    X[:, 0] = 1.0 - X[:, 1:].any(axis=1)  # no row without a one
    return X


def moments(n_rows=30):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, 2)), rng.normal(size=n_rows)


def subsets():
    return DPP(np.eye(4) + 0.3).sample(30, random_state=0)


def commits():
    from pluri.cochange import CommitHistory

    files = [["a.py", "b.py"], ["c.py", "d.py"], ["a.py", "c.py", "d.py"]]
    records = [{"time": time, "files": files[time % 3]} for time in range(40)]
    return CommitHistory.from_records(records, min_support=1, support_on="all")


#: Arguments of `fit` where a table of zeros and ones is not what an estimator learns from.
DATA = {
    "ConditionalDPP": lambda: ((moments(5)[0], np.eye(5)), [[0, 1], [2], [3, 4]]),
    "DPPKernelLearner": lambda: (subsets(),),
    "DPPSelector": lambda: moments()[:1],
    "DPPVariableSelection": moments,
    "FileRecommender": lambda: (commits(),),
    "FlowDensity": lambda: moments(60)[:1],
    "GaussianProcessRegressor": moments,
    "GaussianProcessClassifier": lambda: (moments()[0], moments()[1] > 0),
    "BayesianLinearRegression": moments,
    "InfiniteMixtureOfExperts": moments,
    "HMMClassifier": lambda: (rows(2), (rows(2)[:, 1] > 0).astype(int)),
    "HMMSearchCV": lambda: ([moments(8)[0] for _ in range(4)],),
    "IsingDenoiser": lambda: (np.sign(moments(64)[1]).reshape(8, 8),),
    "LatentInhibition": lambda: (rows(3),),
    "NaiveBayes": lambda: (rows(), rows()[:, 1] > 0),
    "SeparateDPP": lambda: ([np.eye(4) * scale for scale in (1.0, 2.0, 3.0)],),
    "SequentialDPPLearner": lambda: ([[moments(4)[0], moments(4)[0]]], [[[0], [1, 2]]]),
    "SupervisedLDA": lambda: (rows(), rows().sum(axis=1)),
    "SupervisedLDAClassifier": lambda: (rows(), rows()[:, 1] > 0),
    "SymbolClassHMM": lambda: (np.random.default_rng(0).integers(5, size=(60, 1)),),
    "TimeVaryingDPP": lambda: ([np.eye(4) * scale for scale in (1.0, 2.0, 3.0)],),
}
GIVEN = {
    "ConditionalDPP": {"similarity": "precomputed"},
    "HMMSearchCV": {"estimator": GaussianHMM(n_iter=3, random_state=0), "n_components": [1, 2], "cv": 2},
}


def made(name):
    kind = ESTIMATORS[name]
    settings = {key: value for key, value in SHORT.items() if key in inspect.signature(kind).parameters}
    arguments = (
        DATA[name]() if name in DATA else (rows(2),) if kind.__module__.startswith("pluri.sequences") else (rows(),)
    )
    return kind(**settings | GIVEN.get(name, {})), arguments


class Keyboard:
    """Counts calls of functions of pluri in this thread, and sends Ctrl-C at the given one."""

    def __init__(self, at=None):
        self.at, self.calls, self.pressed = at, 0, False

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)

    def __call__(self, frame, event, argument):
        if event != "call" or not frame.f_globals.get("__name__", "").startswith("pluri."):
            return
        self.calls += 1
        if self.calls == self.at:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)


def identities(model):
    return {key: id(value) for key, value in vars(model).items()}


def is_fitted(model):
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def test_every_public_estimator_hears_ctrl_c_by_its_base():
    assert len(CONCRETE) > 40
    for name, kind in ESTIMATORS.items():
        assert issubclass(kind, Estimator), name
        for method in ("fit", "partial_fit", "fit_predict", "fit_transform", "update"):
            found = inspect.getattr_static(kind, method, None)
            function = getattr(found, "fn", found)
            if inspect.isfunction(function) and function.__module__.startswith("pluri."):
                assert hasattr(function, MARK), f"{name}.{method}"


@pytest.mark.parametrize("name", CONCRETE)
def test_ctrl_c_goes_on_and_leaves_an_estimator_fitted_or_as_it_was(name):
    model, arguments = made(name)
    clone(model).fit(*arguments)  # compiles
    with Keyboard() as count:
        whole = clone(model).fit(*arguments)
    for share in PLACES:
        interrupted = clone(model)
        before = set(vars(interrupted))
        with pytest.raises(KeyboardInterrupt) as stop, Keyboard(max(2, int(share * count.calls))) as keyboard:
            interrupted.fit(*arguments)
        assert keyboard.pressed
        if getattr(stop.value, "result", None) is not None:
            assert stop.value.result is interrupted
            assert is_fitted(interrupted)
            assert {key for key in vars(interrupted) if key.endswith("_")} <= set(vars(whole))
            for method in ("predict", "transform"):
                if hasattr(interrupted, method) and name not in DATA:
                    assert np.isfinite(np.asarray(getattr(interrupted, method)(*arguments), dtype=float)).all()
        else:
            assert set(vars(interrupted)) == before
            # One that was fitted before is as it was then.
            fitted = copy.copy(whole)
            as_it_was = identities(fitted)
            with pytest.raises(KeyboardInterrupt) as again, Keyboard(max(2, int(share * count.calls))):
                fitted.fit(*arguments)
            assert getattr(again.value, "result", None) is fitted or identities(fitted) == as_it_was


def test_the_package_names_its_setting():
    assert "on_interrupt" in pluri.__all__
