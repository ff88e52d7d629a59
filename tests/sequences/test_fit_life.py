"""A fit from beginning to end: interrupted, resumed, continued, repeated, watched and stopped."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.sequences import GMMHMM, CategoricalHMM, ConvergenceMonitor, GaussianHMM, PoissonHMM, learning

OPTIONS = {"n_iter": 12, "tol": -np.inf, "random_state": 0}
NAMES = ("startprob_", "transmat_", "means_", "covars_")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 2)) + 1.5 * rng.integers(3, size=(120, 1))


def assert_same(one, other, names=NAMES):
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def interrupt_after(monkeypatch, n_calls):
    """Ctrl-C in the middle of an E-step."""
    expect, calls = learning.HiddenMarkovProblem.expect, iter(range(10**9))

    def interrupted(self, params, batch):
        if next(calls) == n_calls:
            raise KeyboardInterrupt
        return expect(self, params, batch)

    monkeypatch.setattr(learning.HiddenMarkovProblem, "expect", interrupted)


def test_an_interrupted_fit_keeps_what_it_has(X, monkeypatch):
    six = GaussianHMM(3, **OPTIONS | {"n_iter": 6}).fit(X)
    interrupt_after(monkeypatch, 6)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="fit interrupted after 6 iterations of run 1 of 1"):
        cut = GaussianHMM(3, **OPTIONS).fit(X)
    monkeypatch.undo()
    assert_same(cut, six)
    assert cut.n_iter_ == 6
    assert not cut.converged_
    assert len(cut.predict(X)) == len(X)


def test_an_interrupt_in_the_second_run_keeps_the_better_of_the_two(X, monkeypatch):
    one = GaussianHMM(3, **OPTIONS).fit(X)
    interrupt_after(monkeypatch, 14)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="2 iterations of run 2 of 3"):
        cut = GaussianHMM(3, n_init=3, **OPTIONS).fit(X)
    monkeypatch.undo()
    assert cut.objective_ >= one.objective_
    assert len(cut.history_) == 14


def test_an_interrupt_before_the_first_sweep_leaves_an_earlier_fit_alone(X, monkeypatch):
    model = GaussianHMM(3, **OPTIONS).fit(X)
    before = {name: np.array(getattr(model, name)) for name in NAMES}
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_components=2).fit(X[:50])
    monkeypatch.undo()
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)


FAMILIES = {
    "gaussian": (lambda **options: GaussianHMM(3, "tied", **options), NAMES),
    "gmm": (lambda **options: GMMHMM(3, 2, **options), (*NAMES, "weights_")),
    "poisson": (lambda **options: PoissonHMM(3, **options), ("startprob_", "transmat_", "lambdas_")),
    "categorical": (lambda **options: CategoricalHMM(3, **options), ("startprob_", "transmat_", "emissionprob_")),
}


@pytest.mark.parametrize("acceleration", [None, "squarem"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_fit_goes_on_from_its_checkpoint_bit_for_bit(X, family, acceleration, monkeypatch, tmp_path):
    make, names = FAMILIES[family]
    data = X if family in ("gaussian", "gmm") else np.abs(X).astype(int)[:, : 1 if family == "categorical" else 2]
    options = OPTIONS | {"acceleration": acceleration, "n_init": 2}
    whole = make(**options).fit(data)
    interrupt_after(monkeypatch, 17)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        make(**options, checkpoint=tmp_path / "fit.npz").fit(data)
    monkeypatch.undo()
    resumed = make(**options, checkpoint=tmp_path / "fit.npz").fit(data)
    assert_same(resumed, whole, names)
    np.testing.assert_array_equal(resumed.history_.objective, whole.history_.objective)
    again = make(**options, checkpoint=tmp_path / "fit.npz").fit(data)  # all done: returns at once
    assert_same(again, whole, names)


def test_a_longer_fit_goes_on_from_a_finished_one(X, tmp_path):
    path = tmp_path / "fit.npz"
    GaussianHMM(3, checkpoint=path, **OPTIONS | {"n_iter": 5}).fit(X)
    longer = GaussianHMM(3, checkpoint=path, **OPTIONS).fit(X)
    assert_same(longer, GaussianHMM(3, **OPTIONS).fit(X))
    assert longer.n_iter_ == 12


@pytest.mark.parametrize(
    "change", [{"covars_prior": 1.0}, {"n_components": 2}, {"diversity": 1.0}, {"random_state": 1}, {"params": "st"}]
)
def test_a_checkpoint_of_another_model_is_refused(X, tmp_path, change):
    path = tmp_path / "fit.npz"
    GaussianHMM(3, checkpoint=path, **OPTIONS).fit(X)
    content = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint"):
        GaussianHMM(checkpoint=path, **{"n_components": 3} | OPTIONS | change).fit(X)
    with pytest.raises(ValueError, match="checkpoint"):
        GaussianHMM(3, checkpoint=path, **OPTIONS).fit(X[:60])
    assert path.read_bytes() == content


def test_a_warm_start_goes_on_where_the_last_fit_ended(X):
    model = GaussianHMM(3, warm_start=True, **OPTIONS | {"n_iter": 5}).fit(X)
    model.set_params(n_iter=7).fit(X)
    whole = GaussianHMM(3, **OPTIONS).fit(X)
    for name in NAMES:
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(model.history_.objective, whole.history_.objective[5:], rtol=1e-11)


def test_without_a_warm_start_a_second_fit_begins_anew(X):
    model = GaussianHMM(3, **OPTIONS).fit(X)
    first = {name: np.array(getattr(model, name)) for name in NAMES}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X)
    for name, value in first.items():
        np.testing.assert_array_equal(getattr(model, name), value)


def test_the_best_of_several_runs_is_kept(X):
    model = GaussianHMM(4, n_init=5, **OPTIONS).fit(X)
    last = [model.history_.objective[model.history_.restart == run][-1] for run in range(5)]
    assert len(set(np.round(last, 6))) > 1
    assert model.objective_ == max(last)
    single = GaussianHMM(4, **OPTIONS).fit(X)
    assert single.history_.objective[-1] == last[0]  # the first run does not depend on how many follow


def test_the_last_objective_is_that_of_a_fresh_evaluation(X):
    """objective_ was taken before the last M-step: the stored parameters are at least as good."""
    model = GaussianHMM(3, covars_prior=0.0, covars_weight=0.0, **OPTIONS).fit(X)
    assert model.score(X) >= model.objective_
    longer = GaussianHMM(3, covars_prior=0.0, covars_weight=0.0, **OPTIONS | {"n_iter": 13}).fit(X)
    np.testing.assert_allclose(longer.history_.log_likelihood[-1], model.score(X), rtol=1e-12)


def test_no_iterations_store_the_values_that_a_longer_fit_starts_from(X):
    start = GaussianHMM(3, **OPTIONS | {"n_iter": 0}).fit(X)
    longer = GaussianHMM(3, **OPTIONS).fit(X)
    np.testing.assert_allclose(start.score(X), longer.history_.log_likelihood[0], rtol=1e-12)
    again = GaussianHMM(3, **OPTIONS | {"init_params": ""})
    for name in ("startprob_", "transmat_", "means_", "_covars_"):
        setattr(again, name, getattr(start, name))
    again.fit(X)
    assert_same(again, longer)


class Five(ConvergenceMonitor):
    @property
    def converged(self):
        return self.iter == 5


def test_a_monitor_of_ones_own_decides_when_to_stop(X):
    model = GaussianHMM(3, **OPTIONS | {"tol": 1e9})
    model.monitor_ = Five(1e9, 12, False)
    model.fit(X)
    assert model.n_iter_ == 5
    assert model.converged_
    assert isinstance(model.monitor_, Five)
    np.testing.assert_array_equal(model.monitor_.history, model.history_.objective)
    model.fit(X)  # and again, from the beginning
    assert model.monitor_.iter == 5


def test_the_monitor_shows_the_last_run_in_hmmlearns_form(X):
    model = GaussianHMM(3, **OPTIONS).fit(X)
    assert model.monitor_.iter == 12
    np.testing.assert_array_equal(list(model.monitor_.history), model.history_.objective)


def test_convergence_is_told_and_its_lack_is_warned_of(X):
    model = GaussianHMM(2, n_iter=500, tol=1e-3, random_state=0).fit(X)
    assert model.converged_
    assert model.n_iter_ < 500
    assert np.diff(model.history_.objective)[-1] < 1e-3
    with pytest.warns(ConvergenceWarning, match="n_iter=3"):
        model.set_params(n_iter=3, tol=1e-9).fit(X)
    assert not model.converged_


class Recorder:
    """A callback of scikit-learn that counts iterations and asks to stop after some."""

    def __init__(self, stop_after=None):
        self.stop_after, self.begun, self.ended, self.torn_down = stop_after, [], [], 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return context.task_name == "iteration" and self.ended.count("iteration") == self.stop_after


def test_callbacks_of_scikit_learn_see_every_iteration_and_can_stop(X):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    recorder = Recorder()
    watched = GaussianHMM(3, **OPTIONS).set_callbacks(recorder).fit(X)
    assert recorder.ended.count("iteration") == 12
    assert recorder.torn_down == 1
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert_same(watched, GaussianHMM(3, **OPTIONS).fit(X))
    stopper = Recorder(stop_after=4)
    stopped = GaussianHMM(3, **OPTIONS).set_callbacks(stopper).fit(X)
    assert stopped.n_iter_ == 4
    assert_same(stopped, GaussianHMM(3, **OPTIONS | {"n_iter": 4}).fit(X))


def test_callbacks_are_torn_down_when_a_fit_fails_and_the_next_one_works(X, monkeypatch):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    recorder = Recorder()
    model = GaussianHMM(3, **OPTIONS).set_callbacks(recorder)
    monkeypatch.setattr(learning.HiddenMarkovProblem, "maximize", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X)
    monkeypatch.undo()
    assert recorder.torn_down == 1
    assert model.fit(X).n_iter_ == 12
    assert recorder.torn_down == 2


@pytest.mark.parametrize("seed", [np.random.default_rng, np.random.RandomState, lambda s: s], ids=["new", "old", "int"])
def test_every_kind_of_seed_gives_the_same_fit_twice(X, seed):
    assert_same(*(GaussianHMM(3, **OPTIONS | {"random_state": seed(7)}).fit(X) for _ in range(2)))


def test_a_generator_advances_so_that_two_fits_differ(X):
    rng = np.random.default_rng(0)
    one, two = (GaussianHMM(4, **OPTIONS | {"random_state": rng}).fit(X) for _ in range(2))
    assert not np.array_equal(one.transmat_, two.transmat_)
