"""Rows chosen behind scikit-learn's interface, against sums and searches over all subsets."""

import itertools

import numpy as np
import pandas
import pytest
from scipy import sparse
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.priors.kernels import RBFKernel
from pluri.processes.dpp import DPP, KDPP
from pluri.processes.dpp.samplers import chain_gap
from pluri.processes.dpp.selection.selector import DPPSelector

RNG = np.random.default_rng(7)
X = RNG.normal(size=(7, 3))
QUALITY = np.array([1.0, 2.0, 0.5, 1.5, 1.0, 3.0, 0.8])

#: A choice among given rows is a function of all of them, and has another number of rows.
EXPECTED_FAILURES = {
    "check_transformer_general": "the result has fewer rows",
    "check_transformer_data_not_an_array": "the result has fewer rows",
    "check_methods_sample_order_invariance": "the result has fewer rows",
    "check_methods_subset_invariance": "a choice among all rows is none among a few of them",
    "check_fit_idempotent": "transforms other rows than those of the fit",
}


@parametrize_with_checks(
    [
        DPPSelector(),
        DPPSelector(size=2, method="map", local_search=True),
        DPPSelector(size=1, kernel="cosine", method="mcmc"),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def kernel_matrix(rows, quality=None, size=1):
    """The RBF kernel of three or more columns at the default length scale, by hand."""
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    scale = np.median(distances[np.triu_indices(len(rows), 1)]) / size ** (1 / rows.shape[1])
    factors = np.ones(len(rows)) if quality is None else quality
    return np.exp(-0.5 * (distances / scale) ** 2) * factors * factors[:, None]


def volumes(L, size):
    return {s: np.linalg.det(L[np.ix_(s, s)]) for s in itertools.combinations(range(len(L)), size)}


def test_exact_draws_have_the_probabilities_of_all_subsets():
    # 21 pairs, 1000 draws: chi-square at a false alarm of 1e-6.
    weights = volumes(kernel_matrix(X, QUALITY, 2), 2)
    law = np.array(list(weights.values())) / sum(weights.values())
    place = {subset: number for number, subset in enumerate(weights)}
    rng = np.random.default_rng(0)
    selector = DPPSelector(2, random_state=rng)
    counts = np.zeros(len(law))
    for _ in range(1000):
        counts[place[tuple(selector.fit(X, quality=QUALITY).selected_indices_)]] += 1
    common = law * 1000 >= 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = 1000 * np.append(law[common], law[~common].sum())
    statistic = ((observed - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()
    assert statistic < chi2.ppf(1 - 1e-6, common.sum())


def test_log_probability_and_determinant_equal_enumeration():
    L = kernel_matrix(X, QUALITY, 3)
    for method in ("exact", "map", "mcmc"):
        selector = DPPSelector(3, method=method, random_state=0).fit(X, quality=QUALITY)
        weights = volumes(L, 3)
        chosen = tuple(np.sort(selector.selected_indices_))
        assert selector.log_det_ == pytest.approx(np.log(weights[chosen]))
        assert selector.log_prob_ == pytest.approx(np.log(weights[chosen] / sum(weights.values())))
    free = DPPSelector(None, random_state=1).fit(X)
    plain = kernel_matrix(X)
    chosen = np.ix_(free.selected_indices_, free.selected_indices_)
    expected = np.linalg.slogdet(plain[chosen])[1] - np.linalg.slogdet(plain + np.eye(7))[1]
    assert free.log_prob_ == pytest.approx(expected)


def test_map_takes_the_best_row_next_and_local_search_the_best_pair():
    L = kernel_matrix(X, QUALITY, 4)
    chosen = []
    for _ in range(4):
        rest = [item for item in range(7) if item not in chosen]
        chosen.append(max(rest, key=lambda item: np.linalg.det(L[np.ix_([*chosen, item], [*chosen, item])])))
    assert DPPSelector(4, method="map").fit(X, quality=QUALITY).selected_indices_.tolist() == chosen
    weights = volumes(kernel_matrix(X, QUALITY, 2), 2)
    best = DPPSelector(2, method="map", local_search=True).fit(X, quality=QUALITY)
    assert tuple(best.selected_indices_) == max(weights, key=weights.get)


def test_map_of_free_size_stops_where_the_determinant_falls():
    L = kernel_matrix(X, QUALITY)
    selector = DPPSelector(None, method="map", local_search=True).fit(X, quality=QUALITY)
    highest = max(max(volumes(L, size).values()) for size in range(1, 8))
    assert selector.log_det_ == pytest.approx(np.log(highest))
    with pytest.warns(UserWarning, match="no row was chosen"):
        empty = DPPSelector(None, method="map").fit(X, quality=0.5 * np.ones(7))
    assert empty.transform(X).shape == (0, 3)


@pytest.mark.parametrize("kernel", ["cosine", "linear", "exponential_cosine"])
@pytest.mark.parametrize("method", ["exact", "map", "mcmc"])
def test_sparse_rows_give_the_choice_of_dense_rows(kernel, method):
    rows = np.abs(RNG.normal(size=(30, 8))) * (RNG.random((30, 8)) < 0.5)
    rows[rows.sum(axis=1) == 0, 0] = 1.0
    dense = DPPSelector(4, kernel=kernel, method=method, random_state=3).fit(rows)
    few = DPPSelector(4, kernel=kernel, method=method, random_state=3).fit(sparse.csr_matrix(rows))
    if method == "map":
        np.testing.assert_array_equal(few.selected_indices_, dense.selected_indices_)
    matrix = {"cosine": rows / np.linalg.norm(rows, axis=1, keepdims=True), "linear": rows}.get(kernel)
    if matrix is None:
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        law = KDPP(np.exp(units @ units.T - 1), 4)
    else:
        law = KDPP(features=matrix, size=4)
    for selector in (dense, few):
        assert selector.log_prob_ == pytest.approx(law.log_prob(selector.selected_indices_), abs=1e-6)
    assert sparse.issparse(few.transform(sparse.csr_matrix(rows)))


def test_many_sparse_rows_are_never_multiplied_out():
    # The product of 60000 rows with each other would take 29 GB.
    rows = sparse.csr_array(sparse.random(60_000, 50, 0.1, "csr", None, np.random.default_rng(0)))
    exact = DPPSelector(5, kernel="cosine", random_state=0).fit(rows)
    greedy = DPPSelector(5, kernel="cosine", method="map").fit(rows)
    assert len(exact.selected_indices_) == len(greedy.selected_indices_) == 5
    assert greedy.log_det_ > exact.log_det_
    words = sparse.csr_array(sparse.random(20_000, 30_000, 0.001, "csr", None, np.random.default_rng(0)))
    greedy = DPPSelector(5, kernel="cosine", method="map").fit(words)
    assert np.isnan(greedy.log_prob_)
    assert np.isfinite(greedy.log_det_)


def test_many_dense_rows_are_drawn_exactly_without_their_kernel():
    # Mean log determinant of 30 draws against that of the same law from its spectrum: 6.5 standard errors, 1e-6 by
    # Student's law with 29 degrees of freedom.
    rows = np.random.default_rng(1).normal(size=(1100, 4))
    scale = RBFKernel("median").fixed(rows).length_scale / 5 ** (1 / 4)
    law = KDPP.from_kernel(rows, 5, "rbf", length_scale=scale)
    draws = law.sample(400, random_state=0)
    expected = [law.log_prob(draw) for draw in draws]
    rng = np.random.default_rng(2)
    found = [law.log_prob(DPPSelector(5, random_state=rng).fit(rows).selected_indices_) for _ in range(30)]
    error = np.sqrt(np.var(found, ddof=1) / 30 + np.var(expected) / 400)
    assert abs(np.mean(found) - np.mean(expected)) < 6.5 * error


@pytest.mark.parametrize("n_rows", [12, 1500])
@pytest.mark.parametrize("method", ["exact", "map", "mcmc"])
def test_duplicates_are_never_chosen_together_and_more_rows_than_differ_are_refused(n_rows, method):
    few = RNG.normal(size=(3, 2))
    rows = few[np.arange(n_rows) % 3]
    selector = DPPSelector(3, method=method, random_state=0).fit(rows)
    assert sorted(selector.selected_indices_ % 3) == [0, 1, 2]
    message = f"size must be at most 3, the number of the {n_rows} rows that this kernel tells apart, got 4"
    with pytest.raises(ValueError, match=message):
        DPPSelector(4, method=method).fit(rows)


def test_rows_of_rank_two_give_two_rows_at_most():
    with pytest.raises(ValueError, match="size must be at most 2"):
        DPPSelector(3, kernel="linear").fit(RNG.normal(size=(20, 2)))


def test_rows_that_all_coincide_give_one_row():
    assert DPPSelector(1, random_state=0).fit(np.ones((4, 2))).get_support().sum() == 1
    assert DPPSelector(1).fit([[1.0, 2.0]]).selected_indices_.tolist() == [0]


def test_quality_is_an_argument_of_fit_or_a_function_of_the_rows():
    given = DPPSelector(3, random_state=4).fit(X, quality=np.exp(X[:, 0]))
    computed = DPPSelector(3, random_state=4, quality=lambda rows: np.exp(rows[:, 0])).fit(X)
    np.testing.assert_array_equal(given.selected_indices_, computed.selected_indices_)
    assert given.log_prob_ == computed.log_prob_
    zero = np.where(np.arange(7) < 4, 0.0, 1.0)
    for seed in range(20):
        assert DPPSelector(3, random_state=seed).fit(X, quality=zero).selected_indices_.tolist() == [4, 5, 6]


def test_default_length_scale_is_the_median_distance_or_the_spacing_of_the_rows_wanted():
    median = RBFKernel("median").fixed(X).length_scale
    for size, scale in ((1, median), (3, median / 3 ** (1 / 3)), (None, median)):
        named = DPPSelector(size, random_state=5).fit(X)
        given = DPPSelector(size, kernel_params={"length_scale": scale}, random_state=5).fit(X)
        assert named.log_det_ == pytest.approx(given.log_det_)
        assert named.log_prob_ == pytest.approx(given.log_prob_)
    called = DPPSelector(3, kernel=RBFKernel("median"), random_state=5).fit(X)
    assert called.log_det_ == pytest.approx(np.log(volumes(kernel_matrix(X), 3)[tuple(called.selected_indices_)]))


@pytest.mark.parametrize("n_columns", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [500, 1500])
@pytest.mark.parametrize("method", ["exact", "map"])
def test_ordinary_numbers_of_rows_are_possible_in_few_dimensions(method, n_rows, n_columns):
    rows = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    for size in (20, 50) if n_rows == 500 else (50,):  # the larger number is the harder one
        assert len(set(DPPSelector(size, method=method, random_state=0).fit(rows).selected_indices_)) == size


def test_a_draw_and_a_search_agree_on_what_is_possible():
    rows = np.random.default_rng(0).normal(size=(300, 1))
    scale = {"length_scale": RBFKernel("median").fixed(rows).length_scale}
    rank = DPP.from_kernel(rows, "rbf", **scale).rank
    assert rank < 25
    for method in ("exact", "map", "mcmc"):
        if method != "mcmc":
            DPPSelector(rank, method=method, kernel_params=scale, random_state=0).fit(rows)
        with pytest.raises(ValueError, match=f"size must be at most {rank}, the number of the 300 rows"):
            DPPSelector(rank + 1, method=method, kernel_params=scale).fit(rows)


def test_anything_with_as_many_rows_can_be_taken_from():
    selector = DPPSelector(3, method="map").fit(X)
    texts = [f"text {number}" for number in range(7)]
    chosen = [texts[index] for index in selector.selected_indices_]
    assert selector.transform(texts) == chosen
    assert selector.transform(np.array(texts)).tolist() == chosen
    assert selector.transform(pandas.Series(texts)).tolist() == chosen
    assert selector.transform(pandas.DataFrame({"text": texts, "n": range(7)}))["text"].tolist() == chosen
    np.testing.assert_array_equal(selector.transform(np.arange(7)), selector.selected_indices_)
    assert selector.transform([{"id": number} for number in range(7)])[0] == {"id": selector.selected_indices_[0]}
    with pytest.raises(ValueError, match="X must have the 7 rows among which fit has chosen, got 6"):
        selector.transform(texts[:6])
    with pytest.raises(ValueError, match="features"):
        selector.transform(X[:, :2])


@pytest.mark.parametrize("kind", [list, np.array, "series"])
def test_texts_are_sent_to_a_vectorizer_in_one_sentence(kind):
    texts = ["a long story " * 50, "another one " * 50]
    given = pandas.Series(texts) if kind == "series" else kind(texts)
    with pytest.raises(ValueError, match=r"got texts: .*TfidfVectorizer.*kernel='cosine'") as caught:
        DPPSelector(1).fit(given)
    assert len(str(caught.value)) < 200


def test_a_quality_that_is_no_function_is_sent_to_fit():
    with pytest.raises(TypeError, match=r"quality must be a function of X or None, got ndarray: .*fit\(X, quality"):
        DPPSelector(2, quality=QUALITY).fit(X)
    with pytest.raises(TypeError, match="positional"):
        DPPSelector(2).select(X, QUALITY)


def test_a_slow_chain_is_told_without_settings_that_the_selector_lacks(monkeypatch):
    monkeypatch.setattr(chain_gap, "FEW_GAPS", 10**9)  # no gap is known well enough
    with pytest.warns(ConvergenceWarning) as caught:
        DPPSelector(2, method="mcmc", random_state=0).fit(X)
    assert len(caught) == 1
    assert "method='exact'" in str(caught[0].message)
    assert "n_warmup" not in str(caught[0].message)


def test_number_of_rows_may_be_a_share_or_random():
    rows = RNG.normal(size=(40, 5))
    assert len(DPPSelector(0.1, random_state=0).fit(rows).selected_indices_) == 4
    assert len(DPPSelector(0.001, random_state=0).fit(rows).selected_indices_) == 1
    # Mean size of 300 draws: 5.5 standard errors, false alarm 4e-8.
    law = DPP(kernel_matrix(rows))
    rng = np.random.default_rng(6)
    sizes = [len(DPPSelector(None, random_state=rng).fit(rows).selected_indices_) for _ in range(300)]
    assert abs(np.mean(sizes) - law.expected_size) < 5.5 * np.sqrt(law.size_variance / 300)


def test_transform_takes_the_rows_of_the_fit_and_of_no_other_number():
    selector = DPPSelector(3, method="map")
    taken = selector.fit_transform(X)
    np.testing.assert_array_equal(taken, X[selector.selected_indices_])
    np.testing.assert_array_equal(selector.transform(2 * X), 2 * taken)
    with pytest.raises(ValueError, match="X must have the 7 rows among which fit has chosen, got 5"):
        selector.transform(X[:5])
    np.testing.assert_array_equal(selector.get_support(indices=True), np.sort(selector.selected_indices_))
    np.testing.assert_array_equal(np.flatnonzero(selector.get_support()), selector.get_support(indices=True))
    assert selector.get_feature_names_out().tolist() == ["x0", "x1", "x2"]


def test_data_frames_stay_data_frames():
    frame = pandas.DataFrame(X, columns=["a", "b", "c"], index=list("tuvwxyz"))
    selector = DPPSelector(3, method="map").fit(frame)
    assert selector.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = frame.iloc[selector.selected_indices_]
    pandas.testing.assert_frame_equal(selector.transform(frame), expected)
    pandas.testing.assert_frame_equal(selector.set_output(transform="pandas").transform(frame), expected)
    unnamed = DPPSelector(3, method="map").set_output(transform="pandas").fit_transform(X)
    np.testing.assert_array_equal(unnamed.to_numpy(), expected.to_numpy())


def test_texts_are_chosen_at_the_end_of_a_pipeline():
    texts = ["red apples", "red apples red apples", "blue sky", "sky so blue", "green grass grows"]
    chosen = make_pipeline(TfidfVectorizer(), DPPSelector(3, kernel="cosine", method="map")).fit(texts)[-1]
    assert chosen.selected_indices_.tolist() == [0, 2, 4]
    features = TfidfVectorizer().fit_transform(texts)
    assert clone(chosen).select(features, ids=texts) == [texts[0], texts[2], texts[4]]
    assert clone(chosen).select(features) == [0, 2, 4]
    with pytest.raises(ValueError, match="ids must name each of the 5 rows, got 1"):
        clone(chosen).select(features, ids=["a"])


def test_a_random_state_gives_the_same_rows_again():
    for method in ("exact", "mcmc"):
        first = DPPSelector(3, method=method, random_state=8).fit(X).selected_indices_
        again = DPPSelector(3, method=method, random_state=8).fit(X).selected_indices_
        np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 8}, r"size must be at most the number of rows \(n_samples = 7\), got 8"),
        ({"size": 0}, "size must be a whole number of at least 1, a share between 0 and 1, or None, got 0"),
        ({"size": 1.5}, "size must be a whole number of at least 1"),
        ({"size": True}, "size must be a whole number of at least 1"),
        ({"method": "greedy"}, "method must be one of .*'map'.*, got 'greedy'"),
        ({"kernel": "gauss"}, "kernel must be one of .* or a callable, got 'gauss'"),
        ({"kernel": lambda a, b: np.ones(3)}, r"kernel must give similarities \(n_a, n_b\) of two sets of rows"),
        ({"kernel": lambda a, b: -np.ones((len(a), len(b)))}, "must be positive semi-definite"),
        ({"kernel_params": {"length_scale": -1.0}}, "length_scale must be a positive number"),
        ({"quality": lambda rows: [1.0]}, "quality must be 7 finite, non-negative numbers"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        DPPSelector(**({"size": 2} | settings)).fit(X)


def test_sparse_rows_have_no_gaussian_kernel():
    with pytest.raises(TypeError, match="got a sparse matrix: use kernel='cosine' or 'linear'"):
        DPPSelector(2).fit(sparse.csr_array(X))


def test_a_draw_is_exact_as_long_as_its_decomposition_is_small(monkeypatch):
    X = np.abs(np.random.default_rng(0).normal(size=(30, 12)))
    auto = DPPSelector(3, kernel="cosine", random_state=0).fit(X)
    assert auto.method_ == "exact"
    exact = DPPSelector(3, kernel="cosine", method="exact", random_state=0).fit(X)
    np.testing.assert_array_equal(auto.selected_indices_, exact.selected_indices_)
    for name, limit in (("LARGEST_DECOMPOSED", 11), ("MOST_FEATURES", 359)):
        with monkeypatch.context() as patch:
            patch.setattr(f"pluri.processes.dpp.selection.row_choice.{name}", limit)
            large = DPPSelector(3, kernel="cosine", random_state=0).fit(X)
            assert large.method_ == "mcmc"
            chain = DPPSelector(3, kernel="cosine", method="mcmc", random_state=0).fit(X)
            np.testing.assert_array_equal(large.selected_indices_, chain.selected_indices_)
            # An explicit choice is kept, and a kernel that is no product of features needs no decomposition.
            assert DPPSelector(3, kernel="cosine", method="exact", random_state=0).fit(X).method_ == "exact"
            assert DPPSelector(3, random_state=0).fit(X).method_ == "exact"
            patch.setattr(f"pluri.processes.dpp.selection.row_choice.{name}", limit + 1)
            assert DPPSelector(3, kernel="cosine", random_state=0).fit(X).method_ == "exact"
