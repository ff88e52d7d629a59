"""Ctrl-C in the fit of every public estimator: it is heard, and nothing is half-fitted.

The signal is a real one, sent from inside the fit: at early, middle and late calls of a function of pluri among
those that a fit of the same seed makes.
"""

import copy
import inspect
import signal
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import pluri
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import MARK

#: Where in a fit the signal comes, as a share of its calls; two places of the four are a second opinion.
PLACES = [(0.02, 0.97), pytest.param((0.5, 0.8), marks=pytest.mark.thorough)]
pytestmark = [pytest.mark.filterwarnings("ignore")]


class Keyboard:
    """Counts calls of functions of pluri in this thread, and sends Ctrl-C at the given one.

    Generators are not counted: one that is closed before its end, as in ``any(...)``, is called once more, and what is
    raised there Python reports and drops ("Exception ignored in"), Ctrl-C as well.
    """

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
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
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


def test_every_public_estimator_hears_ctrl_c_by_its_base(kind):
    assert issubclass(kind, Estimator)
    for method in ("fit", "partial_fit", "fit_predict", "fit_transform", "update"):
        found = inspect.getattr_static(kind, method, None)
        function = getattr(found, "fn", found)
        if inspect.isfunction(function) and function.__module__.startswith("pluri."):
            assert hasattr(function, MARK), method


@pytest.mark.parametrize("places", PLACES, ids=["ends", "middle"])
def test_ctrl_c_goes_on_and_leaves_an_estimator_fitted_or_as_it_was(case, places):
    model, arguments = case.make(), case.arguments
    whole = clone(model).fit(*arguments)  # compiles, imports
    with Keyboard() as count:
        clone(model).fit(*arguments)
    for share in places:
        interrupted = clone(model)
        before = set(vars(interrupted))
        with pytest.raises(KeyboardInterrupt) as stop, Keyboard(max(2, int(share * count.calls))) as keyboard:
            interrupted.fit(*arguments)
        assert keyboard.pressed
        if getattr(stop.value, "result", None) is not None:
            assert stop.value.result is interrupted
            assert is_fitted(interrupted)
            assert {key for key in vars(interrupted) if key.endswith("_")} <= set(vars(whole))
            for name in case.queries() if case.is_table else ():
                answer = np.asarray(getattr(interrupted, name)(case.X))
                assert answer.dtype.kind not in "fc" or np.isfinite(answer).all(), name
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
