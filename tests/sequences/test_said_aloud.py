"""What used to go wrong in silence: units, starting values, posteriors, hopeless fits and misread input."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from pluri.sequences import (
    GMMHMM,
    BayesianCategoricalHMM,
    BernoulliHMM,
    CategoricalHMM,
    GaussianHMM,
    HMMClassifier,
    HMMSearchCV,
    MultinomialHMM,
    PoissonHMM,
    SymbolClassHMM,
    TooManyParametersWarning,
    VariationalGaussianHMM,
)

LEFT_RIGHT = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])


def hand_set(start, transition, means, variance):
    model = GaussianHMM(len(start))
    model.startprob_, model.transmat_ = np.array(start), np.array(transition)
    model.means_, model.covars_ = np.array(means)[:, None], np.full((len(start), 1), variance)
    return model


# Units ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
@pytest.mark.parametrize("family", [GaussianHMM, GMMHMM, VariationalGaussianHMM])
def test_the_unit_of_the_data_does_not_matter(family, kind):
    """The whole fit, starting values and priors, is the same in another unit: an identity, whatever the seed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 4.0 * rng.integers(2, size=(300, 1))
    options = {"covariance_type": kind, "random_state": 0, "n_iter": 5, "tol": -np.inf}
    unit, small = family(2, **options).fit(X), family(2, **options).fit(X * 2.0**-10)  # powers of two round alike
    np.testing.assert_allclose(small.means_, unit.means_ * 2.0**-10, rtol=1e-6)
    np.testing.assert_allclose(small.covars_, unit.covars_ * 2.0**-20, rtol=1e-6)
    np.testing.assert_allclose(small.transmat_, unit.transmat_, rtol=1e-6)


def test_small_numbers_are_not_swamped_by_the_prior():
    """The prior adds a thousandth of the variance to a sum of n of them: exact, so that no seed can fail it."""
    X = np.random.default_rng(0).normal(size=(200, 1)) * 0.006
    fitted = GaussianHMM(1).fit(X).covars_.ravel()[0]
    assert fitted == pytest.approx(X.var() * (1.0 + 1e-3 / 200), rel=1e-9)
    as_hmmlearn = GaussianHMM(1, covars_prior=1e-2).fit(X).covars_.ravel()[0]
    assert as_hmmlearn == pytest.approx(X.var() + 1e-2 / 200, rel=1e-9)


# Starting values ------------------------------------------------------------------------------------------------------


def test_a_topology_survives_clone_and_searches():
    X = np.concatenate([np.random.default_rng(n).normal(np.repeat([0.0, 3.0, 6.0], 8))[:, None] for n in range(9)])
    # States in the order of time from the first iteration: by chance they might stand the other way round, and a state
    # that explains no observation would be told of by a warning.
    starts = {"startprob_init": [1.0, 0.0, 0.0], "transmat_init": LEFT_RIGHT, "means_init": [[0.0], [3.0], [6.0]]}
    model = GaussianHMM(3, **starts, random_state=0)
    for fitted in (
        clone(model).fit(X, lengths=[24] * 9),
        HMMSearchCV(model, {"tol": [1.0, 0.1]}, cv=3, random_state=0).fit(X, lengths=[24] * 9).best_estimator_,
    ):
        assert (fitted.transmat_[LEFT_RIGHT == 0.0] == 0.0).all()
        assert fitted.startprob_.tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(model.transmat_init, LEFT_RIGHT)


CASES = [
    (GaussianHMM(2, params="st"), {"means_init": [[0.0], [5.0]], "covars_init": [[2.0], [3.0]]}),
    (GMMHMM(2, 1, params="st"), {"means_init": [[[0.0]], [[5.0]]], "covars_init": [[[2.0]], [[3.0]]]}),
    (GMMHMM(2, 2, params="st"), {"weights_init": [[0.3, 0.7], [0.5, 0.5]]}),
    (PoissonHMM(2, params="st"), {"lambdas_init": [[1.0], [5.0]]}),
    (BernoulliHMM(2, params="st"), {"probs_init": [[0.2], [0.7]]}),
    (CategoricalHMM(2, params="st", n_features=6), {"emissionprob_init": [[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]] * 2}),
    (MultinomialHMM(2, params="st"), {"emissionprob_init": [[1.0], [1.0]]}),
]


@pytest.mark.filterwarnings("ignore:X has one column")
@pytest.mark.parametrize(("model", "values"), CASES, ids=lambda case: type(case).__name__)
def test_starting_values_are_constructor_arguments(model, values):
    X = np.random.default_rng(0).integers(0, 6, size=(40, 1))
    fitted = clone(model).set_params(**values, random_state=0, n_iter=2, tol=-np.inf).fit(X)
    for name, value in values.items():
        found = getattr(fitted, name.removesuffix("init"))
        np.testing.assert_allclose(np.ravel(found), np.ravel(value))


@pytest.mark.filterwarnings("ignore::pluri.sequences.DeadStateWarning")
def test_attributes_set_by_hand_are_refused_where_they_would_be_lost():
    X = np.random.default_rng(0).normal(size=(40, 1))
    model = GaussianHMM(3, init_params="mc", random_state=0)
    model.startprob_, model.transmat_ = np.array([1.0, 0.0, 0.0]), LEFT_RIGHT
    for estimator in (model, HMMClassifier(model)):
        grid = {"tol" if estimator is model else "hmm__tol": [0.1]}
        with pytest.raises(ValueError, match="got startprob_, transmat_ set as attributes"):
            HMMSearchCV(estimator, grid, cv=2).fit(X, np.arange(40) % 3, lengths=[10] * 4)
    assert (model.fit(X).transmat_[LEFT_RIGHT == 0.0] == 0.0).all()  # hmmlearn's habit, in a plain fit


def test_a_wrong_starting_value_is_refused_and_a_warm_start_goes_on():
    X = np.random.default_rng(0).normal(size=(40, 1))
    with pytest.raises(ValueError, match=r"transmat_ must have shape \(2, 2\), got \(3, 3\)"):
        GaussianHMM(2, transmat_init=LEFT_RIGHT).fit(X)
    model = GaussianHMM(2, means_init=[[-1.0], [1.0]], warm_start=True, random_state=0, n_iter=3, tol=-np.inf).fit(X)
    before = model.objective_
    assert model.fit(X).history_.objective[0] >= before


# Posteriors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["scaling", "log"])
def test_posteriors_sum_to_one_after_many_steps_far_from_every_state(implementation):
    transition = 0.9 * np.eye(4) + 0.1 * np.roll(np.eye(4), 1, axis=1)
    model = hand_set([0.25] * 4, transition, [0.0, 1e-3, 2e-3, 3e-3], 1e-8).set_params(implementation=implementation)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((20_000, 1)) < 0.01, 10.0, 1e-3) * rng.normal(size=(20_000, 1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-9)
    once = model.set_params(init_params="", params="st", n_iter=1).fit(X)
    assert once.state_occupancy_.sum() == pytest.approx(20_000, abs=1e-4)


@pytest.mark.parametrize("seed", range(40))
def test_the_score_is_never_below_the_best_path(seed):
    """Transitions down to 1e-300 and emission gaps beyond what a double can hold; exact whatever the seed."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    transition = 10.0 ** -rng.choice([0, 1, 50, 120, 197, 250, 300], size=(k, k))
    start = 10.0 ** -rng.choice([0, 1, 120, 197, 300], size=k)
    means = rng.normal(size=k) * rng.choice([1, 40, 60])
    model = hand_set(start / start.sum(), transition / transition.sum(axis=1, keepdims=True), means, 1.0)
    X = np.where(rng.random(8) < 0.5, means[rng.integers(k, size=8)], 50.0 * rng.normal(size=8))[:, None]
    score, best = model.score(X), model.decode(X, algorithm="viterbi")[0]
    assert score >= best - 1e-9 * abs(best)
    in_log_space = model.set_params(implementation="log")
    assert score == pytest.approx(in_log_space.score(X), rel=1e-9)


def test_a_transition_of_1e_197_and_a_gap_of_more_than_708_nats():
    model = hand_set([1.0, 0.0], [[1.0 - 1e-197, 1e-197], [0.0, 1.0]], [0.0, 40.0], 1.0)
    X = np.array([[0.0], [-1.0], [40.0], [40.0]])
    assert model.score(X) >= model.decode(X)[0]


# From some starts a state takes every row of such numbers, which is told; the claim is about what is left of it.
@pytest.mark.filterwarnings("ignore:states .* explain no observation")
@pytest.mark.parametrize("seed", range(6))
def test_posteriors_of_huge_counts_sum_to_one(seed):
    rng = np.random.default_rng(seed)
    X = np.floor(1e18 * (1.0 + 0.1 * rng.random((50, 2))))
    for family in (PoissonHMM, MultinomialHMM):
        model = family(2, random_state=0, n_iter=5, tol=-np.inf).fit(X)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_an_impossible_sequence_is_refused_by_both_algorithms():
    model = CategoricalHMM(2)
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.full((2, 2), 0.5)
    model.emissionprob_ = np.array([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])
    for algorithm in ("viterbi", "map"):
        with pytest.raises(ValueError, match="sequence 1 has probability zero under the model"):
            model.set_params(algorithm=algorithm).predict([[0, 1], [0, 2]])


# Hopeless fits and misread input --------------------------------------------------------------------------------------


def test_more_parameters_than_numbers_are_warned_of():
    X = np.random.default_rng(0).normal(size=(12, 8))
    with pytest.warns(TooManyParametersWarning, match="460 free parameters were learned from 96 numbers"):
        GaussianHMM(10, "full", random_state=0, n_iter=1).fit(X)


def test_strings_are_not_taken_for_symbols_in_silence():
    reads = ["ACGT", "GGCA", "TTACG"]
    with pytest.warns(UserWarning, match=r"read as one sequence of 3 symbols: .* pass \[list\(text\) for text in X\]"):
        CategoricalHMM(2, random_state=0, n_iter=1).fit(reads)
    model = CategoricalHMM(2, random_state=0, n_iter=2, tol=-np.inf, unseen="missing").fit([list(r) for r in reads])
    assert model.vocabulary_[0].tolist() == ["A", "C", "G", "T"]
    with pytest.raises(ValueError, match="X must hold single characters, as in fit"):
        model.predict(reads)
    with pytest.raises(TypeError, match="got a string"):
        model.predict("ACGT")


def test_byte_strings_are_strings():
    sequences = [["a", "b", "a", "b"], ["b", "b", "a"]]
    expected = CategoricalHMM(2, random_state=0, n_iter=2, tol=-np.inf).fit(sequences)
    for form in (lambda s: [c.encode() for c in s], lambda s: np.array(s, dtype="S")):
        model = CategoricalHMM(2, random_state=0, n_iter=2, tol=-np.inf).fit([form(s) for s in sequences])
        assert model.vocabulary_[0].tolist() == ["a", "b"]
        np.testing.assert_array_equal(model.transmat_, expected.transmat_)


def test_n_features_is_not_ignored_for_strings():
    with pytest.raises(ValueError, match=r"n_features must be None for strings, or as many as there are \(2\), got 9"):
        CategoricalHMM(2, n_features=9).fit([["a", "b"], ["b", "a"]])


class Column:
    """A column of labels as polars has it: a type of its own, missing values are None, no `astype`."""

    dtype = "Int64"

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)


def test_labels_of_another_librarys_type_are_labels():
    X = np.arange(6.0)[:, None]
    for values in ([0, 1, 0, None, 1, 0], ["a", "b", "a", None, "b", "a"]):
        known = [value for value in values if value is not None]
        model = HMMClassifier(pseudo_count=1.0).fit(X, Column(values))
        assert model.classes_.tolist() == sorted(set(known))
        assert 0.0 <= model.score(X, Column(values)) <= 1.0


def test_the_online_filter_can_be_pickled():
    model = hand_set([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.0, 3.0], 1.0)
    online = model.filter()
    online.update([1.0])
    copy = pickle.loads(pickle.dumps(online))
    np.testing.assert_array_equal(copy.update([2.0]), online.update([2.0]))


# The user's arrays ----------------------------------------------------------------------------------------------------

FORMS = {
    "read-only": lambda X: frozen(X.copy()),
    "fortran": lambda X: np.asfortranarray(X),
    "int32": lambda X: X.astype(np.int32),
    "read-only fortran": lambda X: frozen(np.asfortranarray(X)),
}
FAMILIES = [GaussianHMM, GMMHMM, PoissonHMM, BernoulliHMM, MultinomialHMM, CategoricalHMM, VariationalGaussianHMM]


def frozen(X):
    X.setflags(write=False)
    return X


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::pluri.sequences.DeadStateWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "model",
    [
        *(family(2, random_state=0, n_iter=3, tol=-np.inf) for family in FAMILIES),
        BayesianCategoricalHMM(2, random_state=0, n_draws=10, n_warmup=10),
        SymbolClassHMM(2, random_state=0, n_warmup=0, n_draws=10),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_users_array_is_read_and_never_written(model, form):
    X = np.random.default_rng(0).integers(0, 3, size=(60, 1 if isinstance(model, CategoricalHMM) else 2))
    given = FORMS[form](X)
    expected, found = clone(model).fit(X), clone(model).fit(given)
    np.testing.assert_array_equal(found.transmat_, expected.transmat_)
    for name in ("predict", "predict_proba", "filter_proba", "score_sequences", "score_samples", "bic"):
        one, other = getattr(expected, name)(X, [25, 35]), getattr(found, name)(given, [25, 35])
        for left, right in zip(
            np.atleast_1d(np.asarray(one, dtype=object)), np.atleast_1d(np.asarray(other, dtype=object))
        ):
            np.testing.assert_array_equal(left, right, err_msg=name)
    found.sample_paths(given, [25, 35], random_state=0)
    found.best_paths(given[:10], 2)
    np.testing.assert_array_equal(given, X)


def test_unseen_symbols_do_not_change_the_users_array():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).integers(0, 3, size=(60, 1))
    model = SymbolClassHMM(2, random_state=0, n_warmup=0, n_draws=10).fit(X)
    model.symbol_classes_[1] = -1  # as if it had not been seen
    for given in (frozen(X.copy()), pandas.DataFrame(X), X.copy()):
        model.predict(given)
        np.testing.assert_array_equal(np.asarray(given), X)
