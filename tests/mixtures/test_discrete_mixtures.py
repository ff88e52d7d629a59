"""Bernoulli, Poisson, multinomial and categorical mixtures: known answers, laws of EM, missing values, diversity."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import pluri.io
from pluri.engine import ArraySource, Batch, IterableSource
from pluri.mixtures.discrete.bernoulli import BernoulliMixture
from pluri.mixtures.discrete.categorical import CategoricalMixture
from pluri.mixtures.discrete.multinomial import MultinomialMixture
from pluri.mixtures.discrete.poisson import PoissonMixture
from pluri.mixtures.mixture import DeadComponentWarning
from pluri.priors import Beta, DeterminantalPrior, Dirichlet, Diversity, Gamma
from pluri.priors.kernels import CosineKernel, ProbabilityProductKernel

K, D = 3, 6
MODELS = (BernoulliMixture, PoissonMixture, MultinomialMixture, CategoricalMixture)
WEIGHTS = np.array([0.5, 0.3, 0.2])
SIZES = (2, 3, 4, 2, 3, 2)

#: What the checks get wrong about these models.
NO_CLASSIFIER = "takes whatever has predict_proba and sparse input for a classifier of two or four classes"
NO_CATEGORIES = "moves categories by a fraction, after which they are none"
SPARSE = {"check_estimator_sparse_array": NO_CLASSIFIER, "check_estimator_sparse_matrix": NO_CLASSIFIER}
EXCUSED = {
    "BernoulliMixture": SPARSE,
    "PoissonMixture": SPARSE,
    "MultinomialMixture": SPARSE,
    "CategoricalMixture": {
        "check_positive_only_tag_during_fit": NO_CATEGORIES,
        "check_sample_weight_equivalence_on_dense_data": "gives real numbers to a model of categories",
    },
}


@pytest.mark.filterwarnings("ignore:every value of X")  # the checks are not of zeros and ones
@parametrize_with_checks([model() for model in MODELS], expected_failed_checks=lambda e: EXCUSED[type(e).__name__])
def test_the_estimators_keep_scikit_learns_contract(estimator, check):
    check(estimator)


# Data and starts ----------------------------------------------------------------------------------------------------


def truth(model, seed=0):
    rng = np.random.default_rng(seed)
    if model is BernoulliMixture:
        return {"probabilities_init": rng.beta(0.6, 0.6, (K, D)).clip(0.02, 0.98)}
    if model is PoissonMixture:
        return {"rates_init": rng.gamma(1.0, 4.0, (K, D))}
    if model is MultinomialMixture:
        return {"probabilities_init": rng.dirichlet(np.full(D, 0.7), K)}
    return {"probabilities_init": [rng.dirichlet(np.ones(size), K) for size in SIZES]}


def draw(model, n=300, seed=0):
    """Rows of a known mixture, and the component of each."""
    rng = np.random.default_rng(seed + 100)
    (parts,) = truth(model, seed).values()
    labels = rng.choice(K, n, p=WEIGHTS)
    if model is BernoulliMixture:
        X = (rng.random((n, D)) < parts[labels]).astype(float)
    elif model is PoissonMixture:
        X = rng.poisson(parts[labels]).astype(float)
    elif model is MultinomialMixture:
        X = np.stack([rng.multinomial(12, parts[label]) for label in labels]).astype(float)
    else:
        X = np.stack([[rng.choice(table.shape[1], p=table[label]) for table in parts] for label in labels])
    return X, labels


def start(model, seed=7):
    """Starting values half way between the truth and something else."""
    (own,), (other,) = truth(model).values(), truth(model, seed).values()
    name = next(iter(truth(model)))
    middle = [(a + b) / 2 for a, b in zip(own, other)]
    return {name: middle if model is CategoricalMixture else np.array(middle), "weights_init": np.full(K, 1.0 / K)}


def fit(model, X, weight=None, **options):
    options = {"tol": 0.0, "max_iter": 25} | start(model) | options
    if model is CategoricalMixture:
        options = {"categories": [np.arange(size) for size in SIZES]} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model(options.pop("n_components", K), **options).fit(X, sample_weight=weight)


def parts_of(model):
    if isinstance(model, CategoricalMixture):
        return np.concatenate(model.probabilities_, axis=1)
    return model.rates_ if isinstance(model, PoissonMixture) else model.probabilities_


def same(first, second, atol=1e-9):
    return (
        np.allclose(first.weights_, second.weights_, atol=atol)
        and np.allclose(parts_of(first), parts_of(second), atol=atol)
        and np.isclose(first.objective_, second.objective_, rtol=1e-10)
    )


def log_densities(model, X):
    """Log p(x | component) by scipy."""
    columns = []
    for j in range(model.n_components):
        if isinstance(model, BernoulliMixture):
            columns.append(stats.bernoulli.logpmf(X, model.probabilities_[j]).sum(axis=1))
        elif isinstance(model, PoissonMixture):
            columns.append(stats.poisson.logpmf(X, model.rates_[j]).sum(axis=1))
        elif isinstance(model, MultinomialMixture):
            columns.append(stats.multinomial.logpmf(X, X.sum(axis=1).astype(int), model.probabilities_[j]))
        else:
            tables = model.probabilities_
            columns.append(sum(np.log(tables[f][j, X[:, f].astype(int)]) for f in range(X.shape[1])))
    return np.stack(columns, axis=1)


# Known answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_densities_and_posteriors_are_those_of_scipy(model):
    X, _ = draw(model)
    fitted = fit(model, X, max_iter=5)
    joint = log_densities(fitted, X) + np.log(fitted.weights_)
    scores = logsumexp(joint, axis=1)
    assert np.allclose(fitted.score_samples(X), scores, atol=1e-9)
    assert np.allclose(fitted.predict_proba(X), np.exp(joint - scores[:, None]), atol=1e-9)
    assert (fitted.predict(X) == joint.argmax(axis=1)).all()
    free = {BernoulliMixture: D * K, PoissonMixture: D * K, MultinomialMixture: (D - 1) * K}
    n_free = free.get(model, K * sum(size - 1 for size in SIZES)) + K - 1
    assert np.isclose(fitted.bic(X), -2 * scores.sum() + n_free * np.log(len(X)))
    assert np.isclose(fitted.aic(X), -2 * scores.sum() + n_free * 2)


@pytest.mark.parametrize("smoothing", [0.0, 1e-3])
def test_one_component_has_the_averages_of_the_columns(smoothing):
    for model in MODELS:
        X, _ = draw(model)
        fitted = model(1, smoothing=smoothing).fit(X)
        if model is CategoricalMixture:
            for f, table in enumerate(fitted.probabilities_):
                assert np.allclose(table[0], np.bincount(X[:, f]) / len(X))
        else:
            mean = X.mean(axis=0)
            assert np.allclose(parts_of(fitted)[0], mean / mean.sum() if model is MultinomialMixture else mean)


@pytest.mark.parametrize("model", MODELS)
def test_well_separated_components_are_found(model):
    X, _labels = draw(model, 600, seed=3)
    fitted = model(K, n_init=3, random_state=0).fit(X)
    close = fit(model, X, tol=1e-8, max_iter=500, **truth(model, 3))
    assert fitted.score(X) >= close.score(X) - 0.02


def test_bernoulli_smoothing_is_the_stated_formula():
    X, _ = draw(BernoulliMixture)
    before = fit(BernoulliMixture, X, max_iter=3, smoothing=0.7, probabilities_prior=Beta(1.5, 2.0))
    posterior = before.predict_proba(X)
    after = fit(
        BernoulliMixture,
        X,
        max_iter=1,
        smoothing=0.7,
        probabilities_prior=Beta(1.5, 2.0),
        weights_init=before.weights_,
        probabilities_init=before.probabilities_,
    )
    ones = posterior.T @ X + 0.7 * X.mean(axis=0) + 0.5
    assert np.allclose(after.probabilities_, ones / (posterior.sum(axis=0)[:, None] + 0.7 + 1.5))


def test_the_poisson_prior_is_a_gamma_law():
    X, _ = draw(PoissonMixture)
    fitted = PoissonMixture(1, rates_prior=Gamma(3.0, 4.0), smoothing=0.0).fit(X)
    assert np.allclose(fitted.rates_[0], (X.sum(axis=0) + 2.0) / (len(X) + 4.0))
    gamma = stats.gamma(3.0, scale=0.25).logpdf
    # The objective is the log-likelihood plus the log prior, up to a constant that does not depend on the rates.
    at_one = PoissonMixture(1, rates_prior=Gamma(3.0, 4.0), smoothing=0.0, rates_init=np.ones((1, D)), max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        at_one.fit(X)
    gain = fitted.score_samples(X).sum() - stats.poisson.logpmf(X, 1.0).sum()
    gain += gamma(fitted.rates_).sum() - gamma(np.ones(D)).sum()
    assert np.isclose(fitted.objective_ - at_one.objective_, gain)


# Laws of EM ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"smoothing": 0.0},
        {"weight_prior": 0.5},
        {"acceleration": "squarem"},
        {"acceleration": "anderson", "diversity": 2.0},
        {"diversity": 0.5},
        {"diversity": 50.0},
        {"diversity": DeterminantalPrior(CosineKernel(), 5.0)},
        {"smoothing": 3.0, "diversity": 5.0},
    ],
    ids=str,
)
def test_the_objective_never_falls(model, options):
    X, _ = draw(model, 120)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DeadComponentWarning)
        fitted = model(K, tol=0.0, max_iter=40, **(start(model) | options)).fit(X)
    bounds = np.array(fitted.lower_bounds_)
    assert (np.diff(bounds) >= -1e-9).all()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("options", [{}, {"diversity": 5.0}], ids=str)
def test_a_weight_of_two_is_a_row_twice(model, options):
    X, _ = draw(model, 80)
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    twice = fit(model, np.repeat(X, weight.astype(int), axis=0), **options)
    assert same(fit(model, X, weight, **options), twice, 1e-6 if options else 1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_components_and_of_columns_does_not_matter(model):
    X, _ = draw(model)
    fitted = fit(model, X)
    order = [2, 0, 1]
    name, given = next(iter(start(model).items()))
    permuted = [table[order] for table in given] if model is CategoricalMixture else given[order]
    other = fit(model, X, **{name: permuted})
    assert np.allclose(other.weights_, fitted.weights_[order], atol=1e-9)
    assert np.allclose(parts_of(other), parts_of(fitted)[order], atol=1e-9)
    columns = np.array([3, 1, 0, 5, 2, 4])
    if model is CategoricalMixture:
        given = {name: [given[f] for f in columns], "categories": [np.arange(SIZES[f]) for f in columns]}
    else:
        given = {name: given[:, columns]}
    moved = fit(model, X[:, columns], **given)
    assert np.isclose(moved.objective_, fitted.objective_)
    assert np.allclose(moved.predict_proba(X[:, columns]), fitted.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_batches_threads_and_other_layouts_change_nothing(model):
    X, _ = draw(model)
    fitted = fit(model, X)
    assert same(fit(model, np.asfortranarray(X)), fitted)
    assert same(fit(model, X.astype(np.float32)), fitted)
    assert same(fit(model, X.astype(np.int64)), fitted)
    assert same(fit(model, ArraySource(X, batch_size=64)), fitted)
    assert same(fit(model, ArraySource(X, batch_size=64), n_jobs=2, engine="threads"), fitted)


def test_a_cluster_gives_what_one_core_gives():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=1, processes=False, dashboard_address=":0", set_as_default=False) as client:
        for model in MODELS:
            X, _ = draw(model, 200)
            source = ArraySource(X, batch_size=50)
            assert same(fit(model, source, engine=client, max_iter=5), fit(model, X, max_iter=5))


# Missing values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [BernoulliMixture, PoissonMixture, CategoricalMixture])
def test_a_missing_value_is_summed_over(model):
    X, _ = draw(model, 100)
    fitted = fit(model, X, max_iter=5)
    row = X[:1].astype(float)
    if model is CategoricalMixture:
        values = [range(size) for size in SIZES]
    else:
        values = [range(2 if model is BernoulliMixture else 200)] * D
    holed = row.copy()
    holed[0, [1, 4]] = np.nan
    total = []
    for one, other in product(values[1], values[4]):
        full = row.copy()
        full[0, [1, 4]] = one, other
        total.append(full[0])
    assert np.isclose(fitted.score_samples(holed)[0], logsumexp(fitted.score_samples(np.array(total))), atol=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_rows_without_any_value_change_nothing_but_the_weights_count(model):
    X, _ = draw(model, 100)
    blank = np.concatenate([X, np.full((20, D), np.nan)])
    fitted = fit(model, blank, smoothing=0.0)
    assert np.allclose(fitted.score_samples(blank)[-20:], 0.0, atol=1e-12)
    assert np.allclose(fitted.predict_proba(blank)[-1], fitted.weights_)
    # A blank row says nothing: at the fixed point of EM the rest decides alone.
    long = fit(model, blank, smoothing=0.0, tol=1e-12, max_iter=3000)
    assert np.isclose(long.objective_, fit(model, X, smoothing=0.0, tol=1e-12, max_iter=3000).objective_, rtol=1e-6)


def test_holes_at_random_leave_the_truth_to_be_found():
    X, _labels = draw(BernoulliMixture, 3000, seed=3)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.3] = np.nan
    fitted = fit(BernoulliMixture, X, tol=1e-7, max_iter=500, **truth(BernoulliMixture, 3))
    assert np.abs(fitted.probabilities_ - truth(BernoulliMixture, 3)["probabilities_init"]).max() < 0.12


# Completion of binary rows ------------------------------------------------------------------------------------------


def test_completion_equals_enumeration():
    X, _ = draw(BernoulliMixture)
    fitted = fit(BernoulliMixture, X, max_iter=5)
    every = np.array(list(product([0.0, 1.0], repeat=D)))
    mass = np.exp(fitted.score_samples(every))
    assert np.isclose(mass.sum(), 1.0)
    for present, absent in (((0, 3), (5,)), ((2,), ()), ((), (1, 4)), ((), ())):
        fits = (every[:, list(present)] == 1).all(axis=1) & (every[:, list(absent)] == 0).all(axis=1)
        expected = mass[fits] @ every[fits] / mass[fits].sum()
        assert np.allclose(fitted.predict_missing(present, absent), expected, atol=1e-12)
        row = np.full((1, D), np.nan)
        row[0, list(present)], row[0, list(absent)] = 1.0, 0.0
        assert np.allclose(fitted.predict_missing_rows(row)[0], expected, atol=1e-12)
    assert np.allclose(fitted.predict_missing([]), fitted.weights_ @ fitted.probabilities_)
    complete = fitted.predict_missing_rows(X)
    assert (complete == X).all()


def test_a_column_of_one_group_raises_the_weight_of_that_group():
    X = np.zeros((60, 6))
    X[:30, :3], X[30:, 3:] = 1.0, 1.0
    fitted = BernoulliMixture(2, random_state=0).fit(X)
    assert (fitted.predict_missing([0])[:3] > 0.99).all()
    assert (fitted.predict_missing([0])[3:] < 0.01).all()


@pytest.mark.parametrize(
    ("present", "absent", "words"),
    [
        ([9], None, "from 0 to 5"),
        ([-1], None, "from 0 to 5"),
        ([0.5], None, "column numbers"),
        ("ab", None, "column numbers"),
        ([1], [1], "in both"),
        (np.array([1, 0, 0, 1, 1, 0]), None, "repeats.*predict_missing_rows"),
        ([True, False], None, "column numbers.*predict_missing_rows"),
    ],
)
def test_columns_that_are_none_are_refused(present, absent, words):
    fitted = fit(BernoulliMixture, draw(BernoulliMixture)[0], max_iter=1)
    with pytest.raises(ValueError, match=words):
        fitted.predict_missing(present, absent)


# Diversity ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_diversity_moves_components_apart(model):
    X, _ = draw(model, 150)
    kernel = {
        BernoulliMixture: ProbabilityProductKernel("bernoulli"),
        PoissonMixture: ProbabilityProductKernel("poisson"),
        MultinomialMixture: ProbabilityProductKernel("categorical"),
    }
    plain, apart = fit(model, X, max_iter=50), fit(model, X, max_iter=50, diversity=3.0)
    if model is CategoricalMixture:
        from pluri.components.diverse_tables import ProductCategoricalKernel

        kernel[model] = ProductCategoricalKernel(SIZES)
    prior = DeterminantalPrior(kernel[model])
    assert prior.log_density(parts_of(apart)) > prior.log_density(parts_of(plain))


def test_the_two_forms_of_diversity_of_multinomial_rows_agree():
    X, _ = draw(MultinomialMixture, 150)
    kernel = ProbabilityProductKernel("categorical")
    one = fit(MultinomialMixture, X, tol=1e-10, max_iter=300, diversity=Diversity(3.0))
    other = fit(MultinomialMixture, X, tol=1e-10, max_iter=300, diversity=DeterminantalPrior(kernel, 3.0))
    assert np.isclose(one.objective_, other.objective_, rtol=1e-5)


def test_more_components_than_can_be_told_apart_are_refused():
    X = np.array([[0.0], [1.0], [1.0], [0.0]])
    for model in (BernoulliMixture, CategoricalMixture):
        with pytest.raises(ValueError, match="n_components must be at most 2 with diversity"):
            model(3, diversity=1.0).fit(X)


# Categories ---------------------------------------------------------------------------------------------------------


def test_words_and_numbers_give_the_same_classes():
    X, _ = draw(CategoricalMixture)
    words = np.array([[f"v{value}" for value in row] for row in X], dtype=object)
    numbers = fit(CategoricalMixture, X)
    named = fit(CategoricalMixture, words, categories=[[f"v{v}" for v in range(size)] for size in SIZES])
    learned = fit(CategoricalMixture, words, categories=None)
    assert same(numbers, named)
    assert same(numbers, learned)
    assert (named.predict(words) == numbers.predict(X)).all()
    assert [known.tolist() for known in learned.categories_] == [[f"v{v}" for v in range(s)] for s in SIZES]


def test_categories_of_batches_are_learned_from_all_of_them():
    X = np.array([["a", "x"], ["b", "x"], ["c", "y"], ["a", "z"]], dtype=object)
    source = IterableSource([Batch(X[:2]), Batch(X[2:])])
    fitted = CategoricalMixture(2, random_state=0).fit(source)
    assert [known.tolist() for known in fitted.categories_] == [["a", "b", "c"], ["x", "y", "z"]]
    whole = CategoricalMixture(2, random_state=0).fit(X)
    assert np.allclose(fitted.score_samples(X), whole.score_samples(X))


def test_pandas_columns_of_several_kinds():
    import pandas

    frame = pandas.DataFrame(
        {
            "colour": pandas.Categorical(["red", "blue", "red", None] * 5),
            "size": pandas.array([1, 2, None, 2] * 5, dtype="Int64"),
            "flag": [True, False, True, True] * 5,
        }
    )
    fitted = CategoricalMixture(2, random_state=0).fit(frame)
    assert fitted.feature_names_in_.tolist() == ["colour", "size", "flag"]
    assert [len(known) for known in fitted.categories_] == [2, 2, 2]
    assert np.isfinite(fitted.score(frame))


def test_what_a_stream_has_not_seen_yet_may_still_come():
    early, late = np.array([[4, 0, 1], [0, 3, 0], [2, 2, 0]]), np.array([[0, 0, 5], [1, 0, 3]])
    counts = MultinomialMixture(2, random_state=0).partial_fit(early * [1, 1, 0]).partial_fit(late)
    assert counts.probabilities_[:, 2].max() > 0.1
    known = CategoricalMixture(2, categories=[[0, 1, 2]], random_state=0)
    assert known.partial_fit([[0], [1], [1]]).partial_fit([[2], [2]]).probabilities_[0][:, 2].max() > 0.1


def test_samples_are_values_of_the_categories():
    X = np.array([["red", 4], ["blue", 7], ["red", 4], ["blue", 7]], dtype=object)
    rows, labels = CategoricalMixture(2, random_state=0).fit(X).sample(50)
    assert set(map(tuple, rows.tolist())) <= {("red", 4), ("blue", 7), ("red", 7), ("blue", 4)}
    assert rows.shape == (50, 2)
    assert labels.shape == (50,)


def test_an_unseen_category_is_new_or_missing_or_a_mistake():
    X, _ = draw(CategoricalMixture)
    strange, blank = X[:3].astype(float), X[:3].astype(float)
    strange[:, 2], blank[:, 2] = 99, np.nan
    with pytest.raises(ValueError, match="known categories in column 2, got 99"):
        fit(CategoricalMixture, X, unseen="error").predict(strange)
    lenient = fit(CategoricalMixture, X, unseen="missing")
    assert np.allclose(lenient.predict_proba(strange), lenient.predict_proba(blank))
    assert np.allclose(lenient.score_samples(strange), lenient.score_samples(blank))
    open_minded = fit(CategoricalMixture, X)
    assert np.allclose(open_minded.predict_proba(strange), open_minded.predict_proba(blank))
    # One of each category, and one that is new, besides the rows that were seen.
    cost = np.log(len(X) + SIZES[2] + 1)
    assert np.allclose(open_minded.score_samples(blank) - open_minded.score_samples(strange), cost)
    with pytest.raises(ValueError, match="known categories in column 2, got 99"):
        open_minded.partial_fit(strange)
    assert np.isfinite(fit(CategoricalMixture, X, max_iter=0).score(strange))


def test_a_search_scores_folds_with_a_category_that_others_lack():
    # Two classes that hardly overlap (columns agree with probability 0.9, eight of them) and one value that a single
    # row has. That the held-out likelihood prefers one class to two is less likely than one in a million.
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=120)
    X = np.where(rng.random((120, 8)) < 0.9, labels[:, None], 1 - labels[:, None])
    X[60, 3] = 7
    search = GridSearchCV(CategoricalMixture(random_state=0), {"n_components": [1, 2]}, cv=5, error_score="raise")
    search.fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"n_components": 2}


def test_the_summary_of_a_categorical_mixture_names_the_likeliest_categories():
    X = np.array([["red", 4], ["blue", 7], ["red", 4], ["blue", 7]] * 5, dtype=object)
    fitted = CategoricalMixture(2, random_state=0).fit(X)
    rows = sorted(line.split(maxsplit=3)[3] for line in fitted.summary().splitlines()[-2:])
    assert rows == ["0: blue (1.00), 1: 7 (1.00)", "0: red (1.00), 1: 4 (1.00)"]


# The life of an estimator -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_sample_has_the_moments_of_the_mixture(model):
    X, _ = draw(model)
    fitted = fit(model, X, random_state=0)
    rows, labels = fitted.sample(20_000)
    again, _ = fitted.sample(20_000)
    assert (rows == again).all()
    # Five standard errors of the share of a component: a false alarm once in 600,000.
    share = np.bincount(labels, minlength=K) / len(labels)
    assert (np.abs(share - fitted.weights_) < 5 * np.sqrt(fitted.weights_ * (1 - fitted.weights_) / 20_000)).all()
    if model is not CategoricalMixture:
        mean = fitted.weights_ @ parts_of(fitted) * (12 if model is MultinomialMixture else 1)
        assert np.allclose(rows.mean(axis=0), mean, atol=5 * rows.std(axis=0).max() / np.sqrt(20_000))


@pytest.mark.parametrize("model", MODELS)
def test_warm_starts_go_on_and_zero_iterations_keep_the_start(model):
    X, _ = draw(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = fit(model, X, max_iter=20)
        part = fit(model, X, max_iter=10, warm_start=True)
        assert same(part.fit(X), whole)
    given = next(iter(start(model).values()))
    untouched = fit(model, X, max_iter=0)
    assert np.allclose(parts_of(untouched), np.hstack(given) if model is CategoricalMixture else given, atol=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_a_stream_of_batches_comes_near_the_fit_of_all(model):
    X, _ = draw(model, 4000, seed=3)
    given = truth(model, 3)
    if model is CategoricalMixture:
        given |= {"categories": [np.arange(size) for size in SIZES]}
    stream = model(K, random_state=0, **given)
    for begin in range(0, 4000, 200):
        stream.partial_fit(X[begin : begin + 200])
    assert stream.score(X) > fit(model, X, tol=1e-8, max_iter=300, **given).score(X) - 0.02
    assert stream.n_iter_ == 20


@pytest.mark.parametrize("model", MODELS)
def test_a_saved_model_answers_alike(model, tmp_path):
    from pluri.components.weighted_sums import WeightedSums
    from pluri.mixtures.learning import MixtureStatistics
    from pluri.mixtures.streaming import StreamedStatistics

    X, _ = draw(model)
    records = [model, StreamedStatistics, MixtureStatistics, WeightedSums]
    fitted = fit(model, X, diversity=1.0)
    pluri.io.save(fitted, tmp_path / "model.pluri", trusted=records)
    loaded = pluri.io.load(tmp_path / "model.pluri", trusted=records)
    assert (loaded.score_samples(X) == fitted.score_samples(X)).all()
    stream = model(K, random_state=0, **truth(model)).partial_fit(X)
    pluri.io.save(stream, tmp_path / "stream.pluri", trusted=records)
    resumed = pluri.io.load(tmp_path / "stream.pluri", trusted=records)
    assert np.allclose(parts_of(resumed.partial_fit(X)), parts_of(stream.partial_fit(X)))


def test_a_checkpoint_goes_on_where_it_stopped(tmp_path):
    for model in MODELS:
        X, _ = draw(model)
        path = tmp_path / f"{model.__name__}.npz"
        fit(model, X, max_iter=10, checkpoint=path)
        assert same(fit(model, X, max_iter=20, checkpoint=path), fit(model, X, max_iter=20))


@pytest.mark.parametrize("how", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("model", MODELS)
def test_every_start_leads_to_a_fit(model, how):
    X, _ = draw(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = model(K, init_params=how, random_state=3).fit(X)
        second = model(K, init_params=how, random_state=3).fit(X)
    assert same(first, second, 0.0)
    one = model(1).fit(X)
    assert first.score(X) > one.score(X)


@pytest.mark.parametrize("model", MODELS)
def test_split_and_merge_does_no_harm(model):
    X, _ = draw(model, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DeadComponentWarning)
        plain = model(4, random_state=1).fit(X)
        moved = model(4, random_state=1, split_merge=2).fit(X)
    assert moved.objective_ >= plain.objective_ - 1e-9


# Bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (np.ones(4), "2D array"),
        (np.ones((2, 3)), "n_samples >= n_components"),
        (np.array([[1.0, np.inf]] * 4), "infinity"),
        (np.array([["2020-01-01"]] * 4, dtype="M8[D]"), "dates"),
        (np.ones((4, 2)) + 1j, "Complex"),
    ],
    ids=str,
)
def test_what_is_no_matrix_of_the_right_kind_is_refused(model, X, words):
    fitted = model(3)
    with pytest.raises(ValueError, match=words):
        fitted.fit(X)
    assert not hasattr(fitted, "weights_")


@pytest.mark.parametrize(
    ("model", "X", "words"),
    [
        (BernoulliMixture(binarize=None), [[2.0, 1.0]], "zeros and ones"),
        (BernoulliMixture(), [["a", "b"]], "could not convert"),
        (PoissonMixture(), [[-1.0, 2.0]], "Negative values"),
        (PoissonMixture(), [["a", "b"]], "could not convert"),
        (MultinomialMixture(), [[-1.0, 2.0]], "Negative values"),
        (CategoricalMixture(), [[0.5, 1.0]], "whole numbers or strings in column 0, got 0.5"),
        (CategoricalMixture(), [[np.nan, 1.0], [np.nan, 2.0]], "at least one value in column 0"),
        (CategoricalMixture(categories=[["a"]]), [["a"], ["b"]], "known categories"),
        (CategoricalMixture(categories=[["a"], ["b"]]), [["a"], ["b"]], "one array for each of 1 columns"),
    ],
    ids=str,
)
def test_wrong_values_are_named(model, X, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "settings",
    [
        {"n_components": 0},
        {"smoothing": -1.0},
        {"smoothing": np.nan},
        {"diversity": "much"},
        {"diversity": -1.0},
        {"init_params": "guess"},
        {"weights_init": [0.5, 0.6]},
        {"weights_init": [1.0]},
        {"prior": "weak"},
        {"prior": np.nan},
        {"tol": -1.0},
    ],
    ids=str,
)
def test_wrong_settings_are_named(model, settings):
    if "prior" in settings:
        settings = {"rates_prior" if model is PoissonMixture else "probabilities_prior": settings["prior"]}
    with pytest.raises(ValueError, match=next(iter(settings))):
        model(**({"n_components": 2} | settings)).fit(draw(model, 20)[0])


def test_wrong_starting_values_are_named():
    for model in MODELS:
        name = next(iter(truth(model)))
        for wrong in (np.ones((K, D + 1)), np.full((K, D), -1.0)):
            with pytest.raises(ValueError, match=name):
                model(K, **{name: wrong}).fit(draw(model, 20)[0])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_data_are_learned_without_a_word(model, value):
    X = np.full((6, 3), value)
    fitted = model(2, random_state=0).fit(X)
    assert np.allclose(fitted.score_samples(X), -3.0 if model is PoissonMixture and value else 0.0, atol=1e-6) or (
        model is MultinomialMixture and np.isclose(fitted.score(X), stats.multinomial.logpmf([1, 1, 1], 3, [1 / 3] * 3))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadComponentWarning)
        as_many = model(6, random_state=0).fit(X)
    assert np.isclose(as_many.score(X), fitted.score(X), atol=1e-6)


@pytest.mark.parametrize("model", [BernoulliMixture, PoissonMixture, MultinomialMixture])
def test_empty_rows_and_columns_are_data_like_any_other(model):
    X, _ = draw(model)
    X[:5], X[:, 2] = 0.0, 0.0
    fitted = model(K, random_state=0).fit(X)
    assert np.allclose(parts_of(fitted)[:, 2], 0.0, atol=1e-9)
    assert np.isfinite(fitted.score_samples(X)).all()


def test_a_sparse_prior_and_a_determinantal_one_do_not_go_together():
    X, _ = draw(MultinomialMixture)
    prior = DeterminantalPrior(CosineKernel(), 1.0)
    with pytest.raises(ValueError, match="at least 1 beside a DeterminantalPrior"):
        MultinomialMixture(2, probabilities_prior=0.5, diversity=prior).fit(X)
    assert MultinomialMixture(2, probabilities_prior=Dirichlet(0.5), random_state=0).fit(X).converged_


def test_inputs_are_left_as_they_are():
    for model in MODELS:
        X, _ = draw(model, 50)
        given, again = start(model), start(model)
        before = X.copy()
        fit(model, X, **given)
        assert (before == X).all()
        for name, value in given.items():
            assert all(np.array_equal(part, other) for part, other in zip(value, again[name]))
