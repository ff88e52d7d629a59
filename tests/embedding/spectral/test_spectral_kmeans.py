"""The estimator: settings, formats, weights, new rows, files, and what it refuses."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import pluri
from pluri.embedding import SpectralKMeans
from pluri.metrics import one_to_one_accuracy

RANDOM_STARTS = "k-means on the coordinates begins at random rows: copies of rows are drawn as other rows are"


def excuses(estimator):
    if estimator.assign == "pqr":
        return {"check_methods_sample_order_invariance": "asks for fewer coordinates than clusters"}
    return {"check_sample_weight_equivalence_on_dense_data": RANDOM_STARTS}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SpectralKMeans(), SpectralKMeans(2, assign="pqr")], expected_failed_checks=excuses)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def blobs(n=120, k=4, columns=8, spread=5.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    return spread * np.eye(columns)[labels] + rng.normal(size=(n, columns)), labels


EVERY_WAY = [
    {"assign": assign, "center": center, "refine": refine, "kernel": kernel}
    for assign in ("pqr", "cluster_qr", "kmeans")
    for center in (True, False)
    for refine in (True, False)
    for kernel in ("linear", "polynomial")
]


@pytest.mark.parametrize("settings", EVERY_WAY, ids=str)
def test_what_is_told_of_the_rows_of_the_fit_is_what_was_found(settings):
    X, y = blobs()
    model = SpectralKMeans(4, random_state=0, **settings).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    assert_allclose(-model.score(X), model.inertia_, rtol=1e-7)
    assert model.lower_bound_ <= model.inertia_ * (1 + 1e-9)
    assert one_to_one_accuracy(y, model.labels_) > 0.9
    assert f"{model.n_clusters} clusters of 120 rows" in model.summary()
    if settings["refine"]:
        start = SpectralKMeans(4, random_state=0, **{**settings, "refine": False}).fit(X)
        assert model.inertia_ <= start.inertia_ * (1 + 1e-12)
        assert_allclose(model.lower_bound_, start.lower_bound_)
    if settings["assign"] == "kmeans":
        assert model.membership_ is None
        assert len(model.pivots_) == 0
    else:
        assert_allclose(model.membership_[model.pivots_].argmax(axis=1), np.arange(4))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("refine", [True, False])
def test_the_linear_kernel_as_a_matrix_gives_what_the_rows_give(center, refine):
    X, _ = blobs(seed=1)
    settings = {"assign": "pqr", "center": center, "refine": refine}
    expected = SpectralKMeans(4, **settings).fit(X)
    new = blobs(seed=2)[0][:30]
    for model, rows, others in (
        (SpectralKMeans(4, kernel="precomputed", **settings), X @ X.T, new @ X.T),
        (SpectralKMeans(4, kernel=lambda A, B: A @ B.T, **settings), X, new),
    ):
        found = model.fit(rows)
        assert one_to_one_accuracy(expected.labels_, found.labels_) == 1.0
        assert_allclose(found.inertia_, expected.inertia_, rtol=1e-8)
        assert_allclose(found.lower_bound_, expected.lower_bound_, rtol=1e-8)
        assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
        assert_allclose(np.abs(found.transform(others)), np.abs(expected.transform(new)), atol=1e-7)
        assert one_to_one_accuracy(expected.predict(new), found.predict(others)) == 1.0


def test_the_cost_of_a_kernel_is_that_of_its_feature_space():
    X, _ = blobs(60, seed=3)
    gram = rbf_kernel(X, gamma=0.05)
    values, vectors = np.linalg.eigh(gram)
    features = vectors * np.sqrt(np.maximum(values, 0))
    model = SpectralKMeans(4, kernel="rbf", kernel_params={"gamma": 0.05}, random_state=0).fit(X)
    means = np.array([features[model.labels_ == k].mean(axis=0) for k in range(4)])
    assert_allclose(model.inertia_, ((features - means[model.labels_]) ** 2).sum(), rtol=1e-8)
    lloyd = KMeans(4, init=means, n_init=1, tol=0).fit(features)
    assert_array_equal(lloyd.labels_, model.labels_)  # at rest


def test_sparse_rows_give_what_dense_ones_give():
    X, _ = blobs(seed=4)
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    for settings in ({"center": True}, {"center": False}, {"center": True, "refine": False}):
        dense = SpectralKMeans(4, assign="pqr", **settings).fit(X)
        for made in (sparse.csr_matrix(X), sparse.csc_matrix(X), sparse.csr_array(X)):
            found = SpectralKMeans(4, assign="pqr", **settings).fit(made)
            assert_array_equal(found.labels_, dense.labels_)
            assert_allclose(found.inertia_, dense.inertia_)
            assert_allclose(found.lower_bound_, dense.lower_bound_)
            assert_allclose(found.transform(made), dense.embedding_, atol=1e-8)
            assert_array_equal(found.predict(made), dense.labels_)
            assert_allclose(found.score(made), dense.score(X))


@pytest.mark.parametrize("settings", [{}, {"center": False}, {"refine": False}, {"kernel": "rbf"}], ids=str)
def test_a_weight_is_a_number_of_copies(settings):
    X, _ = blobs(60, seed=5)
    weights = np.random.default_rng(0).integers(0, 4, size=60)
    weighted = SpectralKMeans(4, assign="pqr", **settings).fit(X, sample_weight=weights)
    copied = SpectralKMeans(4, assign="pqr", **settings).fit(np.repeat(X, weights, axis=0))
    assert_allclose(weighted.inertia_, copied.inertia_, rtol=1e-8)
    assert_allclose(weighted.lower_bound_, copied.lower_bound_, rtol=1e-8)
    assert_allclose(weighted.eigenvalues_, copied.eigenvalues_, rtol=1e-8)
    assert_array_equal(weighted.predict(X), copied.predict(X))
    assert_array_equal(weighted.labels_, weighted.predict(X))  # those of weight zero as well
    assert_allclose(np.abs(weighted.transform(X)), np.abs(copied.transform(X)), atol=1e-8)
    assert_allclose(weighted.score(X, sample_weight=weights), copied.score(np.repeat(X, weights, axis=0)))


def test_k_means_from_the_same_clusters_ends_where_the_refinement_ends():
    X, _ = blobs(seed=6, spread=2.0)
    start = SpectralKMeans(4, assign="pqr", refine=False).fit(X)
    model = SpectralKMeans(4, assign="pqr").fit(X)
    lloyd = KMeans(4, init=start.cluster_centers_, n_init=1, tol=0).fit(X)
    assert_allclose(model.cluster_centers_, lloyd.cluster_centers_)
    for k, center in enumerate(model.cluster_centers_):
        assert_allclose(X[model.labels_ == k].mean(axis=0), center)


def test_texts_go_through_a_pipeline_and_a_file(tmp_path):
    rng = np.random.default_rng(7)
    fields = ["ice puck goal rink team", "court law judge vote party", "cell gene drug trial patient"]
    labels = np.arange(60) % 3
    texts = [" ".join(rng.choice(fields[k].split(), 12)) for k in labels]
    pipeline = make_pipeline(TfidfVectorizer(), SpectralKMeans(3)).fit(texts)
    model = pipeline[-1]
    assert model.assign_ == "pqr"
    assert not model.center_
    assert one_to_one_accuracy(labels, model.labels_) == 1.0
    assert_array_equal(pipeline.predict(texts), model.labels_)
    pluri.save(pipeline, tmp_path / "texts.skops")
    assert_array_equal(pluri.load(tmp_path / "texts.skops").predict(texts), model.labels_)
    with pytest.warns(UserWarning, match="1 rows are zero"):
        with_empty = make_pipeline(TfidfVectorizer(), SpectralKMeans(3)).fit([*texts, ""])
    assert with_empty[-1].labels_[-1] == -1
    assert with_empty.predict(["", texts[0]])[0] == -1
    assert_array_equal(with_empty[-1].labels_[:-1], model.labels_)
    assert "no cluster" in with_empty[-1].summary()


def test_types_and_frames_give_the_same():
    X = np.round(10 * blobs(seed=8)[0])
    expected = SpectralKMeans(4, assign="pqr").fit(X)
    for made in (X.astype(int), X.astype(np.float32), pandas.DataFrame(X), X.tolist()):
        found = clone(expected).fit(made)
        assert_array_equal(found.labels_, expected.labels_)
        assert found.cluster_centers_.dtype == np.float64
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    out = SpectralKMeans(4, assign="pqr").set_output(transform="pandas").fit(frame).transform(frame)
    assert list(out.columns) == [f"spectralkmeans{number}" for number in range(4)]


def test_rows_far_from_zero_keep_their_clusters():
    X, _ = blobs(seed=9)
    near, far = (SpectralKMeans(4, assign="pqr").fit(X + offset) for offset in (0.0, 1e7))
    assert_array_equal(near.labels_, far.labels_)
    assert_array_equal(far.predict(X + 1e7), far.labels_)
    assert_allclose(near.lower_bound_, far.lower_bound_, rtol=1e-5)


def test_constant_columns_and_copies_of_rows_do_no_harm():
    X, _ = blobs(seed=10)
    expected = SpectralKMeans(4, assign="pqr").fit(X)
    padded = SpectralKMeans(4, assign="pqr").fit(np.column_stack([X, np.full(len(X), 3.0)]))
    assert_allclose(padded.inertia_, expected.inertia_)
    twice = SpectralKMeans(4, assign="pqr").fit(np.repeat(X, 2, axis=0))
    assert_allclose(twice.inertia_, 2 * expected.inertia_)
    assert_array_equal(twice.labels_[::2], expected.labels_)


def test_few_columns_and_many_clusters_are_left_to_k_means():
    rng = np.random.default_rng(11)
    centers = 10 * np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]])
    X = np.repeat(centers, 20, axis=0) + rng.normal(size=(100, 2))
    model = SpectralKMeans(5, random_state=0).fit(X)
    assert model.assign_ == "kmeans"
    assert one_to_one_accuracy(np.repeat(np.arange(5), 20), model.labels_) == 1.0
    assert model.lower_bound_ == 0.0  # two directions hold all the variance
    assert model.gap_ == np.inf
    assert "an unknown share" in model.summary()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 13}, r"n_clusters must be at most the number of rows that count \(n_samples=12\), got 13"),
        ({"assign": "qr"}, "assign must be one of 'auto', 'pqr', 'cluster_qr', 'kmeans', got 'qr'"),
        ({"n_clusters": 5, "assign": "pqr"}, "n_clusters must be at most 4 for assign='pqr'"),
        ({"n_clusters": 2, "assign": "pqr", "n_components": 9}, "n_components must be at most 4 for assign='pqr'"),
        ({"n_clusters": 2, "assign": "pqr", "n_components": 1}, r"n_components must be at least n_clusters \(2\)"),
        ({"assign": "pqr", "n_init": 4}, "n_init must be 1 or 'auto' unless assign='kmeans'"),
        ({"n_init": 0}, "n_init must be an integer of at least 1 or 'auto', got 0"),
        ({"kernel": "gauss"}, "kernel must be a function of two tables, 'precomputed' or one of"),
        ({"kernel": "rbf", "kernel_params": {"width": 1.0}}, "kernel_params must be arguments of the kernel 'rbf'"),
        ({"kernel": lambda A, B: A}, r"kernel must give a matrix of shape \(12, 12\)"),
        ({"kernel": "precomputed"}, "X must be a square matrix of similarities"),
        ({"center": "yes"}, "center must be True or False or 'auto', got 'yes'"),
        ({"eigen_solver": "lobpcg"}, "eigen_solver must be one of"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"tol": -1.0}, "tol must be"),
        ({"refine": 1}, "refine must be True or False"),
    ],
)
def test_mistakes_get_a_sentence(settings, sentence):
    X = np.random.default_rng(12).normal(size=(12, 3))
    model = SpectralKMeans(**{"n_clusters": 2, **settings})
    with pytest.raises(ValueError, match=sentence):
        model.fit(X)
    assert not hasattr(model, "labels_")


def test_data_that_cannot_be_used_get_a_sentence():
    with pytest.raises(ValueError, match=r"X must not exceed 1e\+100 in size, got 1e\+200"):
        SpectralKMeans(2).fit(1e200 * np.random.default_rng(0).normal(size=(9, 3)).round(0).clip(-1, 1))
    with pytest.raises(ValueError, match="X must be symmetric"):
        SpectralKMeans(1, kernel="precomputed").fit(np.arange(9.0).reshape(3, 3))
    with pytest.raises(ValueError, match=r"n_clusters must be at most 1 .* 0 independent directions"):
        SpectralKMeans(2, assign="pqr").fit(np.ones((5, 3)))
    gram = np.eye(4) + 0.5 * np.kron(np.eye(2), np.ones((2, 2)))
    model = SpectralKMeans(2, kernel="precomputed", random_state=0).fit(gram)
    with pytest.raises(AttributeError, match="score"):
        model.score(np.eye(4))


def test_a_small_eigengap_and_a_short_refinement_are_told():
    with pytest.warns(UserWarning, match="differ by .* only"):
        SpectralKMeans(3, assign="pqr", center=False).fit(np.eye(8))
    with pytest.warns(UserWarning, match="max_iter=1"):
        SpectralKMeans(4, assign="pqr", max_iter=1).fit(blobs(seed=13, spread=1.0)[0])


def test_big_but_allowed_numbers_are_clustered():
    X, _ = blobs(seed=14)
    expected = SpectralKMeans(4, assign="pqr").fit(X)
    for factor in (1e90, 1e-90):
        found = SpectralKMeans(4, assign="pqr").fit(factor * X)
        assert_array_equal(found.labels_, expected.labels_)
        assert_allclose(found.gap_, expected.gap_, rtol=1e-6)
