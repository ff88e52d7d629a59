import importlib
import sys
import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pluri import on_interrupt
from pluri.engine import ArraySource
from pluri.inference import expectation_maximization
from pluri.progress import CallbackSupport, fit_callbacks, with_callbacks

pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


@pytest.fixture(scope="module", params=["with_callbacks", "_fit_context"])
def estimator(request, toys):
    """The smallest estimator around the loop: a mixture on the line."""
    decorate = with_callbacks if request.param == "with_callbacks" else _fit_context(prefer_skip_nested_validation=True)

    class Estimator(CallbackSupport, BaseEstimator):
        _parameter_constraints: ClassVar[dict] = {}

        def __init__(self, max_iter=6, n_init=1, tol=-np.inf):
            self.max_iter, self.n_init, self.tol = max_iter, n_init, tol

        @decorate
        def fit(self, X, y=None):
            problem = toys.Mixture(2, 0.1)
            with fit_callbacks(
                self, max_iter=self.max_iter, n_init=self.n_init, X=X, y=y, attributes=lambda p: {"params_": p}
            ) as on_iteration:
                result = expectation_maximization(
                    problem,
                    ArraySource(X),
                    rng=np.random.default_rng(0),
                    max_iter=self.max_iter,
                    n_init=self.n_init,
                    tol=self.tol,
                    on_iteration=on_iteration,
                )
                self.params_, self.result_ = result.params, result
            return self

        def score(self, X, y=None):
            return toys.Mixture(2).expect(self.params_, next(iter(ArraySource(X).batches()))).log_likelihood

    return Estimator


class Recorder:
    """Notes each hook; asks to stop at the given task."""

    def __init__(self, stop_at=None):
        self.stop_at, self.events = stop_at, []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name, context.task_id))
        return (context.task_name, context.task_id) == self.stop_at

    def count(self, event, task):
        return sum((name, about) == (event, task) for name, about, _ in self.events)

    def is_balanced(self):
        """Whether tasks begin and end like brackets."""
        stack = []
        for event, name, index in self.events:
            if event in ("setup", "begin"):
                stack.append((event, name, index))
            elif stack.pop() != ("begin" if event == "end" else "setup", name, index):
                return False
        return not stack


class Scores:
    """Scores the estimator that each task gives."""

    def __init__(self):
        self.scores = []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.scores.append((context.task_name, fitted_estimator.score(X)))


def test_without_callbacks_there_is_no_hook(toys, estimator):
    with fit_callbacks(estimator(), max_iter=3) as on_iteration:
        assert on_iteration is None
    assert estimator().fit(toys.two_groups()).result_.n_iter == 6


@pytest.mark.parametrize("n_init", [1, 3])
def test_every_iteration_is_a_task(toys, estimator, n_init):
    recorder = Recorder()
    model = estimator(n_init=n_init).set_callbacks(recorder).fit(toys.two_groups())
    assert recorder.count("begin", "iteration") == len(model.result_.history) == 6 * n_init
    assert recorder.count("end", "run") == (n_init if n_init > 1 else 0)
    assert recorder.is_balanced()


@pytest.mark.parametrize("n_init", [1, 2])
def test_converged_runs_end_their_tasks(toys, estimator, n_init):
    recorder = Recorder()
    model = estimator(n_init=n_init, max_iter=500, tol=0.5).set_callbacks(recorder).fit(toys.two_groups())
    assert model.result_.converged
    assert recorder.count("end", "iteration") == recorder.count("begin", "iteration") == len(model.result_.history)
    assert recorder.is_balanced()


def test_stop_at_an_iteration_ends_the_run(toys, estimator):
    recorder = Recorder(stop_at=("iteration", 2))
    model = estimator().set_callbacks(recorder).fit(toys.two_groups())
    assert (model.result_.n_iter, model.result_.reason) == (3, "stopped")
    assert recorder.is_balanced()


def test_stop_at_an_iteration_ends_each_of_several_runs(toys, estimator):
    recorder = Recorder(stop_at=("iteration", 2))
    model = estimator(n_init=3).set_callbacks(recorder).fit(toys.two_groups())
    assert model.result_.history.restart.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert recorder.is_balanced()


def test_stop_at_a_run_ends_the_fit(toys, estimator):
    recorder = Recorder(stop_at=("run", 1))
    model = estimator(n_init=4).set_callbacks(recorder).fit(toys.two_groups())
    assert sorted(set(model.result_.history.restart.tolist())) == [0, 1]
    assert recorder.is_balanced()


def test_failed_run_and_interruption_leave_no_task_open(toys, estimator, monkeypatch):
    calls = {"n": 0}
    original = toys.Mixture.maximize

    def maximize(self, stats, params):
        calls["n"] += 1
        if calls["n"] == 9:
            raise np.linalg.LinAlgError("singular")
        if calls["n"] == 17:
            raise KeyboardInterrupt
        return original(self, stats, params)

    monkeypatch.setattr(toys.Mixture, "maximize", maximize)
    recorder = Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with on_interrupt("keep"):
            model = estimator(n_init=4).set_callbacks(recorder).fit(toys.two_groups())
    assert model.result_.interrupted
    assert model.result_.history.restart.tolist() == [0] * 6 + [1] * 2 + [2] * 6 + [3]
    assert recorder.is_balanced()
    assert recorder.events[-1][0] == "teardown"


def test_error_tears_callbacks_down(toys, estimator, monkeypatch):
    def fail(self, stats, params):
        raise TypeError("a bug")

    monkeypatch.setattr(toys.Mixture, "maximize", fail)
    recorder = Recorder()
    with pytest.raises(TypeError, match="a bug"):
        estimator().set_callbacks(recorder).fit(toys.two_groups())
    assert recorder.events[-1] == ("teardown", "fit", 0)


@pytest.mark.parametrize("n_init", [1, 2])
def test_callbacks_see_the_model_of_each_iteration(toys, estimator, n_init):
    x, scores = toys.two_groups(), Scores()
    model = estimator(n_init=n_init).set_callbacks(scores).fit(x)
    # The model after iteration t is the one that the E-step of iteration t + 1 sees.
    first = [score for name, score in scores.scores if name == "iteration"][:5]
    np.testing.assert_allclose(first, model.result_.history.run(0).log_likelihood[1:])
    assert scores.scores[-1] == ("fit", model.score(x))


def test_scikit_learn_callbacks_work_in_a_pipeline(toys, estimator, capsys):
    from sklearn.callback import ProgressBar, ScoringMonitor

    x = toys.two_groups()
    monitor = ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X)})
    step = estimator(n_init=2).set_callbacks(monitor)
    make_pipeline(StandardScaler(), step).set_callbacks(ProgressBar()).fit(x, np.zeros(len(x)))
    shown = capsys.readouterr().out
    assert "Estimator - fit" in shown
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    np.testing.assert_allclose([row["score"] for row in rows[:5]], step.result_.history.run(0).log_likelihood[1:])
    assert hasattr(clone(step), "_skl_callbacks")


def test_older_scikit_learn_has_no_callbacks_and_does_not_mind(monkeypatch):
    import pluri.progress.callbacks as callbacks

    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    try:
        importlib.reload(callbacks)

        class Estimator(callbacks.CallbackSupport):
            @callbacks.with_callbacks
            def fit(self):
                with callbacks.fit_callbacks(self, max_iter=3) as on_iteration:
                    return on_iteration

        assert Estimator().fit() is None
        assert not hasattr(Estimator(), "set_callbacks")
    finally:
        monkeypatch.undo()
        importlib.reload(callbacks)
