"""Learning whole kernels: ascent of every method, the truth where it is known, and first mistakes."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from pluri import on_interrupt
from pluri.inference import AscentWarning
from pluri.processes.dpp.learning import DPPKernelLearner, subset_log_probabilities

N = 6
EVERY = [list(one) for size in range(N + 1) for one in itertools.combinations(range(N), size)]
METHODS = {
    "gradient": {},
    "picard": {},
    "picard-long": {"step_size": 4.0},
    "picard-squarem": {"acceleration": "squarem"},
    "em": {},
    "low_rank": {"rank": N},
    "low_rank-penalty": {"rank": N, "alpha": 2.0},
    "low_rank-batches": {"rank": N, "batch_size": 8},
}


def learner(name, **settings):
    return DPPKernelLearner(name.split("-")[0], random_state=0, **METHODS[name], **settings)


@pytest.fixture(scope="module")
def truth():
    place = np.linspace(0, 1, N)
    return np.exp(-((place[:, None] - place) ** 2) / (2 * 0.3**2)) + 1e-3 * np.eye(N)


@pytest.fixture(scope="module")
def law(truth):
    return np.exp(subset_log_probabilities(truth, EVERY))


@pytest.fixture(scope="module")
def draws(law):
    chosen = np.random.default_rng(0).choice(len(EVERY), size=10000, p=law / law.sum())
    return [EVERY[index] for index in chosen]


def distance(model, law):
    return np.abs(np.exp(model.log_prob(EVERY)) - law).sum() / 2


@pytest.mark.parametrize("name", METHODS)
def test_the_objective_never_falls(name):
    rng = np.random.default_rng(1)
    for case in range(30):
        n_items = int(rng.integers(1, 7))
        masks = rng.random((int(rng.integers(1, 25)), n_items)) < rng.uniform(0.1, 0.9)
        with warnings.catch_warnings():
            warnings.simplefilter("error", AscentWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = learner(name, max_iter=12).set_params(random_state=case)
            if name.startswith("low_rank"):
                model.set_params(rank=n_items)
            model.fit(masks, sample_weight=rng.random(len(masks)))
        objective = model.history_.objective
        assert (np.diff(objective) >= -1e-10).all(), (case, objective)
        if model.alpha == 0:
            assert model.log_likelihood_ >= objective[-1] - 1e-9
        assert np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize("name", ["gradient", "picard-squarem", "em", "low_rank"])
def test_the_law_itself_as_weights_is_learned_to_the_last_subset(name, truth, law):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = learner(name, max_iter=400, tol=1e-8, n_init=2).fit(EVERY, n_items=N, sample_weight=law)
    assert distance(model, law) < 0.005
    assert model.log_likelihood_ == pytest.approx(float(law @ np.log(law)), abs=2e-4)
    kernel = model.factors_ @ model.factors_.T if name == "low_rank" else model.L_
    # Only signs of rows and columns are free.
    np.testing.assert_allclose(np.abs(kernel), truth, atol=0.1)


@pytest.mark.parametrize("name", ["gradient", "picard-squarem", "em", "low_rank"])
def test_five_thousand_draws_are_enough_for_the_probabilities(name, truth, law, draws):
    """The error of the maximum-likelihood estimate itself is 0.02 on average, give or take 0.004."""
    train, held_out = draws[:5000], draws[5000:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = learner(name, max_iter=400, n_init=2).fit(train, n_items=N)
    baseline = DPPKernelLearner("quality").fit(train, n_items=N)
    assert distance(model, law) < 0.045
    assert distance(baseline, law) > 0.15
    at_truth = np.mean(subset_log_probabilities(truth, held_out))
    # 21 parameters cost 21 / (2 * 5000) = 0.002 on average.
    assert model.score(held_out) > at_truth - 0.01
    assert model.score(held_out) > baseline.score(held_out) + 0.1


def test_a_low_rank_law_is_recovered_with_its_own_rank(law):
    rng = np.random.default_rng(5)
    V = rng.standard_normal((N, 3))
    law = np.exp(subset_log_probabilities(V, EVERY, factor=True))
    model = DPPKernelLearner("low_rank", rank=3, n_init=8, tol=1e-10, random_state=0)
    model.fit(EVERY, n_items=N, sample_weight=np.where(law > 1e-14, law, 0.0))
    assert distance(model, law) < 1e-3
    assert model.factors_.shape == (N, 3)
    assert not hasattr(model, "L_")


def test_mini_batches_come_close_to_all_data_at_once(draws):
    whole = DPPKernelLearner("low_rank", rank=N, random_state=0).fit(draws)
    model = DPPKernelLearner("low_rank", rank=N, batch_size=16, tol=1e-5, random_state=0).fit(draws)
    assert model.log_likelihood_ > whole.log_likelihood_ - 0.01


def test_quality_alone_gives_the_frequencies():
    subsets = [[0], [0, 1], [0], [2, 1]]
    model = DPPKernelLearner("quality").fit(subsets, n_items=4)
    np.testing.assert_allclose(np.diag(model.L_) / (1 + np.diag(model.L_)), [0.75, 0.5, 0.25, 0.0])
    probability = np.array([0.75, 0.5, 0.25, 0.0])
    masks = np.array([np.isin(np.arange(4), one) for one in subsets])
    independent = np.log(np.where(masks, probability, 1 - probability)).sum(axis=1)
    np.testing.assert_allclose(model.log_prob(subsets), independent)


@pytest.mark.parametrize("name", ["gradient", "picard", "em", "low_rank"])
def test_weights_are_the_same_as_repetitions(name):
    once = [[0], [1, 2], [2], [], [0, 2]]
    weight = [3, 1, 2, 1, 2]
    repeated = [one for one, times in zip(once, weight) for _ in range(times)]
    settings = {"rank": 3, "alpha": 1.0} if name == "low_rank" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = DPPKernelLearner(name, random_state=0, max_iter=20, **settings).fit(once, sample_weight=weight)
        other = DPPKernelLearner(name, random_state=0, max_iter=20, **settings).fit(repeated[::-1])
    np.testing.assert_allclose(one.log_prob(once), other.log_prob(once), atol=1e-8)


def test_relabelled_items_have_relabelled_probabilities(law):
    order = np.random.default_rng(2).permutation(N)
    settings = {"sample_weight": law, "n_items": N}
    model = DPPKernelLearner(n_init=2, tol=1e-9, random_state=0).fit(EVERY, **settings)
    moved = DPPKernelLearner(n_init=2, tol=1e-9, random_state=0).fit([order[one] for one in EVERY], **settings)
    np.testing.assert_allclose(
        np.exp(moved.log_prob([order[one] for one in EVERY])), np.exp(model.log_prob(EVERY)), atol=2e-3
    )


def test_items_that_never_occur_have_zero_rows():
    model = DPPKernelLearner(random_state=0).fit([[0], [2], [0, 2], []], n_items=5)
    assert not model.L_[[1, 3, 4]].any()
    assert model.log_prob([[1]])[0] == -np.inf
    low = DPPKernelLearner("low_rank", random_state=0).fit([[0], [2], [0, 2], []], n_items=5)
    assert not low.factors_[[1, 3, 4]].any()
    nothing = DPPKernelLearner().fit([[], []], n_items=2)
    assert nothing.log_likelihood_ == 0.0
    assert DPPKernelLearner("low_rank").fit([[]], n_items=2).score([[]]) == 0.0


def test_twenty_thousand_items_need_no_square_matrix():
    # The kernel itself would have 3.2 GB.
    rng = np.random.default_rng(0)
    subsets = [rng.choice(20000, size=rng.integers(1, 5), replace=False) for _ in range(3000)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DPPKernelLearner("low_rank", rank=6, max_iter=5, alpha=1.0, random_state=0).fit(subsets, n_items=20000)
    assert model.factors_.shape == (20000, 6)
    assert np.isfinite(model.score(subsets))
    assert (np.diff(model.history_.objective) > 0).all()


def test_the_process_learned_has_the_same_law(draws):
    for name in ("gradient", "low_rank"):
        model = learner(name).fit(draws[:500], n_items=N)
        process = model.dpp_
        for subset in ([], [0], [1, 4], [0, 2, 5]):
            assert process.log_prob(subset) == pytest.approx(model.log_prob([subset])[0])


def test_a_warm_start_goes_on(draws):
    for name in ("gradient", "picard", "em", "low_rank", "low_rank-batches"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = learner(name, max_iter=3, warm_start=True).fit(draws[:300], n_items=N)
            reached = model.log_likelihood_
            model.fit(draws[:300], n_items=N)
            assert model.history_.objective[0] >= reached - 1e-6, name
            assert model.log_likelihood_ >= reached
            model.fit([[0, 1], [2]], n_items=7)  # other items: starts afresh
            assert model.n_items_ == 7


@pytest.mark.parametrize("name", ["gradient", "em"])
def test_an_interrupted_fit_keeps_the_best_so_far(name, draws, monkeypatch):
    calls = 0
    module = {"gradient": "gradients", "em": "fixed_points"}[name]
    from importlib import import_module

    module = import_module(f"pluri.processes.dpp.learning.{module}")
    inside = module.kernel_value_and_gradient

    def interrupting(*arguments):
        nonlocal calls
        calls += 1
        if calls == 15:
            raise KeyboardInterrupt
        return inside(*arguments)

    monkeypatch.setattr(module, "kernel_value_and_gradient", interrupting)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = learner(name).fit(draws[:300], n_items=N)
    assert not model.converged_
    assert model.log_likelihood_ >= model.history_.objective[-1] - 1e-9


def test_too_few_iterations_are_told(draws):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = DPPKernelLearner("picard", max_iter=2, random_state=0).fit(draws[:300], n_items=N)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_same_random_state_same_kernel(draws):
    one, other = (DPPKernelLearner(random_state=4).fit(draws[:300], n_items=N).L_ for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_scikit_learn_conventions(draws):
    model = DPPKernelLearner("picard", step_size=2.0, n_init=2)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.score([[0]])
    with pytest.raises(NotFittedError):
        _ = model.dpp_
    search = GridSearchCV(DPPKernelLearner(random_state=0), {"inference": ["quality", "gradient"]}, cv=2)
    search.fit(draws[:600], n_items=N)
    assert search.best_params_ == {"inference": "gradient"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"inference": "adam"}, "inference must be one of"),
        ({"inference": "low_rank", "rank": 2}, "rank must be at least the size of the largest subset \\(3\\), got 2"),
        ({"rank": 0}, "rank must be an integer of at least 1 or None"),
        ({"max_iter": 0}, "max_iter must be an integer"),
        ({"n_init": 1.5}, "n_init must be an integer"),
        ({"alpha": -1}, "alpha must be a number of at least 0"),
        ({"tol": np.nan}, "tol must be a number"),
        ({"step_size": 0.5}, "step_size must be a number of at least 1"),
        ({"learning_rate": 0}, "learning_rate must be a positive number"),
        ({"acceleration": "squarem"}, "acceleration must be None unless inference is 'picard'"),
    ],
)
def test_bad_settings_get_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        DPPKernelLearner(**settings).fit([[0, 1, 2], [0]])


def test_a_failed_refit_loses_nothing(draws):
    model = DPPKernelLearner(random_state=0).fit(draws[:300], n_items=N)
    before = model.L_.copy()
    with pytest.raises(ValueError, match="at least one subset"):
        model.fit([])
    np.testing.assert_array_equal(model.L_, before)


def test_larger_subsets_than_the_rank_score_minus_infinity(draws):
    model = DPPKernelLearner("low_rank", rank=2, random_state=0).fit([[0, 1], [2], [0, 2], []])
    with pytest.warns(RuntimeWarning, match="has probability zero"):
        assert model.score([[0, 1, 2]]) == -np.inf


def test_every_method_is_tried_here():
    allowed = DPPKernelLearner._parameters["inference"].values
    assert {name.split("-")[0] for name in METHODS} | {"quality"} >= set(allowed)
