"""Support vector machines of sequences: optimality of what libsvm found, indefinite kernels, inputs, and tools."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import pluri
from pluri.embedding import SpectralKMeans
from pluri.processes import GaussianProcessRegressor
from pluri.sequences import (
    FrameTransformer,
    GramCovariance,
    IndefiniteKernelWarning,
    LinearTimeNormalizer,
    SequenceSVC,
    SequenceSVR,
    TimeAlignmentKernel,
)
from pluri.sequences.alignment.indefinite import correct

#: A positive definite kernel, for which there is nothing to warn of.
SUM = TimeAlignmentKernel("sum", sigma=2.0, normalize=True)


def labelled(seed, n=24, n_classes=3, shortest=4, longest=9):
    """Noisy curves of a shape for each class, of random lengths, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = []
    for label in y:
        time = np.linspace(0, 1, rng.integers(shortest, longest + 1))
        curve = np.column_stack([np.sin((label + 1) * np.pi * time), label * time])
        X.append(curve + 0.3 * rng.normal(size=curve.shape))
    return X, y


@pytest.fixture
def train():
    return labelled(0)


@pytest.fixture
def test():
    return labelled(1, n=15)


def joined(X):
    return np.concatenate(X), np.array([len(x) for x in X])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_kernel_machine_is_one_problem_a_class_on_one_matrix(n_classes):
    (X, y), (new, _) = labelled(0, n_classes=n_classes), labelled(1, n=10)
    model = SequenceSVC(SUM, C=5.0, tol=1e-6).fit(X, y)
    gram, rows = SUM(X), SUM(new, X)
    for number, label in enumerate([1] if n_classes == 2 else range(n_classes)):
        alone = SVC(kernel="precomputed", C=5.0, tol=1e-6).fit(gram, y == label)
        found = model.decision_function(new)
        found = found if n_classes == 2 else found[:, number]
        assert_allclose(found, alone.decision_function(rows), atol=1e-10)
    if n_classes == 2:
        assert_array_equal(model.predict(new), (model.decision_function(new) > 0).astype(int))
    else:
        assert_array_equal(model.predict(new), model.decision_function(new).argmax(axis=1))


def test_coefficients_satisfy_the_conditions_of_an_optimum_and_the_duality_gap_is_closed(train):
    X, y = train
    C, tol = 2.0, 1e-6
    model = SequenceSVC(SUM, C=C, tol=tol).fit(X, y)
    gram = SUM(X)
    for number in range(3):
        sign = np.where(y == number, 1.0, -1.0)
        signed = np.zeros(len(y))
        signed[model.support_] = model.dual_coef_[number]
        alpha = signed * sign
        assert (alpha >= 0).all()
        assert (alpha <= C + 1e-9).all()
        assert_allclose(signed.sum(), 0.0, atol=1e-8)
        margin = sign * (gram @ signed + model.intercept_[number])
        assert (margin[alpha < 1e-9] >= 1 - 1e-4).all()
        assert (margin[alpha > C - 1e-9] <= 1 + 1e-4).all()
        assert_allclose(margin[(alpha > 1e-9) & (alpha < C - 1e-9)], 1.0, atol=1e-4)
        primal = 0.5 * signed @ gram @ signed + C * np.maximum(1 - margin, 0).sum()
        dual = alpha.sum() - 0.5 * signed @ gram @ signed
        assert_allclose(primal, dual, rtol=1e-4)


def test_a_tiny_price_of_errors_decides_the_same_for_all(train):
    X, y = train
    model = SequenceSVC(SUM, C=1e-9).fit(X, y)
    assert np.ptp(model.decision_function(X), axis=0).max() < 1e-6


def test_the_order_of_the_training_sequences_does_not_matter(train, test):
    X, y = train
    order = np.random.default_rng(0).permutation(len(y))
    model = SequenceSVC(SUM, C=3.0, tol=1e-7).fit(X, y)
    other = SequenceSVC(SUM, C=3.0, tol=1e-7).fit([X[n] for n in order], y[order])
    assert_allclose(other.decision_function(test[0]), model.decision_function(test[0]), atol=1e-4)


def test_predictions_compare_with_support_vectors_only(train, test, monkeypatch):
    X, y = train
    model = SequenceSVC(SUM, C=10.0).fit(X, y)
    assert 0 < len(model.support_) < len(X)
    assert_array_equal(model.support_frames_, np.concatenate([X[n] for n in model.support_]))
    asked = []
    original = TimeAlignmentKernel.gram

    def watched(self, left, right=None, diagonal=None):
        asked.append((len(left), len(right)))
        return original(self, left, right, diagonal)

    monkeypatch.setattr(TimeAlignmentKernel, "gram", watched)
    model.predict(test[0])
    assert asked == [(len(test[0]), len(model.support_))]
    n_kept = sum(len(part) for part in vars(model).values() if isinstance(part, np.ndarray) and part.ndim == 2)
    assert n_kept <= len(model.support_frames_) + 3


def indefinite():
    X = [np.array(x, dtype=float) for x in ([0, 1], [1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1])]
    return X, np.array([0, 1, 0, 1, 0, 1])


def test_an_indefinite_kernel_is_warned_of_and_its_eigenvalue_kept():
    X, y = indefinite()
    with pytest.warns(IndefiniteKernelWarning, match="not positive semi-definite"):
        model = SequenceSVC(TimeAlignmentKernel(), psd="none").fit(X, y)
    assert_allclose(model.min_eigenvalue_, np.linalg.eigvalsh(TimeAlignmentKernel()(X))[0])
    assert model.min_eigenvalue_ < -0.1


@pytest.mark.filterwarnings("ignore::pluri.sequences.IndefiniteKernelWarning")
@pytest.mark.parametrize("kind", [SequenceSVC, SequenceSVR])
@pytest.mark.parametrize("psd", ["shift", "none"])
@pytest.mark.parametrize("kernel", [TimeAlignmentKernel(), "precomputed"], ids=["sequences", "precomputed"])
def test_a_weight_of_two_is_the_sequence_twice(kind, psd, kernel):
    """Not with "clip" and "flip", which change all eigenvalues."""
    X, y = indefinite()
    heavy, copies = np.array([2.0, 2.0, 1.0, 1.0, 1.0, 3.0]), [0, 1, 0, 1, 2, 3, 4, 5, 5, 5]
    given, asked, asked_twice = X, X, X
    if kernel == "precomputed":
        given = asked = TimeAlignmentKernel()(X)
        asked_twice = asked[:, copies]
    twice = given[np.ix_(copies, copies)] if kernel == "precomputed" else [X[n] for n in copies]
    one = kind(kernel, psd=psd, tol=1e-9).fit(given, y, sequence_weight=heavy)
    two = kind(kernel, psd=psd, tol=1e-9).fit(twice, y[copies])
    ask = "decision_function" if kind is SequenceSVC else "predict"
    assert_allclose(getattr(one, ask)(asked), getattr(two, ask)(asked_twice), atol=1e-6)


def test_the_default_is_convex_with_copies_too():
    X, _ = indefinite()
    assert SequenceSVC().psd == SequenceSVR().psd == "shift"
    gram = TimeAlignmentKernel()([*X[:3], *X])
    found = correct(gram, "shift")
    assert np.linalg.eigvalsh(gram)[0] < -0.1
    assert np.linalg.eigvalsh(found.gram)[0] > -1e-12
    assert_allclose(found.min_eigenvalue, np.linalg.eigvalsh(TimeAlignmentKernel()(X))[0], atol=1e-12)


@pytest.mark.parametrize("kind", [SequenceSVC, SequenceSVR])
@pytest.mark.parametrize("psd", ["clip", "flip", "shift"])
def test_corrected_matrices_are_learned_from_and_new_rows_are_treated_alike(kind, psd):
    X, y = indefinite()
    new = [np.array([0.0, 0.4, 1.0]), np.array([1.0, 1.0])]
    gram, rows = TimeAlignmentKernel()(X), TimeAlignmentKernel()(new, X)
    values, vectors = np.linalg.eigh(gram)
    changed = {"clip": np.maximum(values, 0), "flip": np.abs(values), "shift": values - values[0]}[psd]
    learned = (vectors * changed) @ vectors.T
    assert np.linalg.eigvalsh(learned)[0] > -1e-12
    assert_allclose(correct(gram, psd).gram, learned, atol=1e-12)
    factor = {"clip": values > 0, "flip": np.sign(values), "shift": np.ones(len(X))}[psd]
    projected = rows @ (vectors * factor) @ vectors.T
    alone = {SequenceSVC: SVC, SequenceSVR: SVR}[kind](kernel="precomputed", tol=1e-8).fit(learned, y)
    model = kind(TimeAlignmentKernel(), psd=psd, tol=1e-8).fit(X, y)
    found = model.decision_function(new) if kind is SequenceSVC else model.predict(new)
    expected = alone.decision_function(projected) if kind is SequenceSVC else alone.predict(projected)
    assert_allclose(found, expected, atol=1e-6)
    if psd != "shift":  # what a row of the training matrix becomes is what was learned from
        assert_allclose(gram @ (vectors * factor) @ vectors.T, learned, atol=1e-12)


def test_regression_is_that_on_the_matrix_of_similarities(train, test):
    X, y = train
    target = y + 0.1 * np.random.default_rng(0).normal(size=len(y))
    model = SequenceSVR(SUM, C=4.0, epsilon=0.05, tol=1e-7).fit(X, target)
    alone = SVR(kernel="precomputed", C=4.0, epsilon=0.05, tol=1e-7).fit(SUM(X), target)
    assert_allclose(model.predict(test[0]), alone.predict(SUM(test[0], X)), atol=1e-8)
    assert_allclose(model.score(test[0], test[1]), alone.score(SUM(test[0], X), test[1]), atol=1e-8)


def test_a_regression_without_support_vectors_predicts_a_constant(train):
    model = SequenceSVR(SUM, epsilon=10.0).fit(*train)
    assert len(model.support_) == 0
    assert np.ptp(model.predict(train[0])) == 0.0


@pytest.mark.parametrize("kind", [SequenceSVC, SequenceSVR])
def test_lists_lengths_groups_and_labels_of_frames_say_the_same(kind, train, test):
    (X, y), (new, _) = train, test
    rows, lengths = joined(X)
    new_rows, new_lengths = joined(new)
    groups = np.repeat(np.arange(len(X)), lengths)
    model = kind(SUM).fit(X, y)
    expected = model.predict(new)
    for other in (
        kind(SUM).fit(rows, y, lengths),
        kind(SUM).fit(rows, y, groups=groups),
        kind(SUM).fit(rows, np.repeat(y, lengths), lengths=lengths),
        kind(SUM).fit(X, y, groups=np.arange(len(X))),
    ):
        assert_array_equal(other.predict(new), expected)
        assert_array_equal(other.predict(new_rows, new_lengths), expected)
        assert_array_equal(other.predict(new_rows, groups=np.repeat(np.arange(len(new)), new_lengths)), expected)
    assert model.score(rows, np.repeat(y, lengths), groups=groups) == model.score(X, y)
    assert_array_equal(kind(SUM).fit(np.stack([x[:4] for x in X]), y).predict(np.stack([x[:4] for x in new])),
                       kind(SUM).fit([x[:4] for x in X], y).predict([x[:4] for x in new]))  # fmt: skip


@pytest.mark.parametrize("kind", [SequenceSVC, SequenceSVR])
def test_weights_are_copies(kind, train, test):
    X, y = train
    weight = 1 + np.arange(len(y)) % 3
    model = kind(SUM, C=1.5, tol=1e-8).fit(X, y, sequence_weight=weight)
    copies = [x for x, count in zip(X, weight) for _ in range(count)]
    written_out = kind(SUM, C=1.5, tol=1e-8).fit(copies, np.repeat(y, weight))
    ask = "decision_function" if kind is SequenceSVC else "predict"
    assert_allclose(getattr(model, ask)(test[0]), getattr(written_out, ask)(test[0]), atol=1e-5)
    assert_allclose(getattr(kind(SUM, C=1.5, tol=1e-8).fit(X, y, sample_weight=weight), ask)(test[0]),
                    getattr(model, ask)(test[0]))  # fmt: skip
    counts = 1 + np.arange(len(test[1])) % 2
    many = [x for x, count in zip(test[0], counts) for _ in range(count)]
    assert_allclose(model.score(*test, sample_weight=counts), model.score(many, np.repeat(test[1], counts)))


@pytest.mark.parametrize("kind", [SequenceSVC, SequenceSVR])
@pytest.mark.parametrize("kernel", ["precomputed", TimeAlignmentKernel(normalize=True, sigma="median")], ids=str)
@pytest.mark.parametrize("psd", ["none", "clip"])
def test_a_sequence_of_weight_zero_is_left_out(kind, kernel, psd, train, test):
    X, y = train
    weight = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.5)
    kept = np.flatnonzero(weight)
    rest, new = [X[n] for n in kept], test[0]
    ask = "decision_function" if kind is SequenceSVC else "predict"
    model, without = kind(kernel, tol=1e-8, psd=psd), kind(kernel, tol=1e-8, psd=psd)
    if kernel == "precomputed":
        found = getattr(model.fit(SUM(X), y, sequence_weight=weight), ask)(SUM(new, X))
        expected = getattr(without.fit(SUM(rest), y[kept], sequence_weight=weight[kept]), ask)(SUM(new, rest))
    else:
        found = getattr(model.fit(X, y, sequence_weight=weight), ask)(new)
        expected = getattr(without.fit(rest, y[kept], sequence_weight=weight[kept]), ask)(new)
    assert_allclose(found, expected, atol=1e-9)
    assert_array_equal(model.support_, kept[without.support_])


def test_weights_of_classes_are_weights_of_their_sequences(train, test):
    X, y = train
    by_class = SequenceSVC(SUM, class_weight={0: 3.0}).fit(X, y)
    by_sequence = SequenceSVC(SUM).fit(X, y, sequence_weight=np.where(y == 0, 3.0, 1.0))
    assert_array_equal(by_class.decision_function(test[0]), by_sequence.decision_function(test[0]))
    few = np.concatenate([np.flatnonzero(y == 0)[:2], np.flatnonzero(y > 0)])
    balanced = SequenceSVC(SUM, class_weight="balanced").fit([X[n] for n in few], y[few])
    weight = len(few) / (3 * np.bincount(y[few]))[y[few]]
    same = SequenceSVC(SUM).fit([X[n] for n in few], y[few], sequence_weight=weight)
    assert_array_equal(balanced.decision_function(test[0]), same.decision_function(test[0]))


def test_similarities_can_be_given(train, test):
    (X, y), (new, _) = train, test
    expected = SequenceSVC(SUM, C=2.0).fit(X, y)
    model = SequenceSVC("precomputed", C=2.0).fit(SUM(X), y)
    assert_array_equal(model.predict(SUM(new, X)), expected.predict(new))
    found = cross_val_score(SequenceSVC("precomputed"), SUM(X), y, cv=3)
    assert_allclose(found, cross_val_score(SequenceSVC(SUM), X, y, cv=3))
    with pytest.raises(ValueError, match="square"):
        SequenceSVC("precomputed").fit(np.ones((3, 2)), [0, 1, 0])
    with pytest.raises(ValueError, match="symmetric"):
        SequenceSVC("precomputed").fit(np.triu(np.ones((3, 3))), [0, 1, 0])


def test_a_median_is_that_of_the_sequences_it_was_fitted_to(train):
    X, y = train
    model = SequenceSVC(TimeAlignmentKernel("sum", sigma="median", normalize=True)).fit(X, y)
    assert model.kernel.sigma == "median"
    assert model.kernel_.sigma == TimeAlignmentKernel("sum", sigma="median").resolve(X).sigma


def test_searches_and_pipelines_take_lists_of_sequences(train, test):
    X, y = train
    grid = {"kernel__sigma": [1.0, 3.0], "C": [0.1, 10.0]}
    search = GridSearchCV(SequenceSVC(SUM), grid, cv=3, error_score="raise").fit(X, y)
    expected = cross_val_score(clone(search.best_estimator_), X, y, cv=3).mean()
    assert search.best_score_ == expected
    pipeline = make_pipeline(FrameTransformer(StandardScaler()), SequenceSVC(SUM)).fit(X, y)
    rows = np.concatenate(X)
    scaled = [(x - rows.mean(axis=0)) / rows.std(axis=0) for x in X]
    alone = SequenceSVC(SUM).fit(scaled, y)
    new = [(x - rows.mean(axis=0)) / rows.std(axis=0) for x in test[0]]
    assert_allclose(pipeline.decision_function(test[0]), alone.decision_function(new), atol=1e-10)
    assert len(cross_val_score(pipeline, X, y, cv=3, error_score="raise")) == 3


def test_boundaries_reach_the_model_through_pipelines_and_cross_validation(train):
    X, y = train
    rows, lengths = joined(X)
    groups, labels = np.repeat(np.arange(len(X)), lengths), np.repeat(y, lengths)
    pipeline = make_pipeline(StandardScaler(), SequenceSVC(SUM))
    with config_context(enable_metadata_routing=True):
        found = cross_val_score(pipeline, rows, labels, cv=GroupKFold(3), params={"groups": groups})
    expected = []
    for learn, held in GroupKFold(3).split(rows, groups=groups):
        scaler = StandardScaler().fit(rows[learn])
        model = SequenceSVC(SUM).fit(scaler.transform(rows[learn]), labels[learn], groups=groups[learn])
        expected.append(model.score(scaler.transform(rows[held]), labels[held], groups=groups[held]))
    assert_allclose(found, expected)
    with pytest.raises(ValueError, match="does not hand them on"):
        cross_val_score(pipeline, rows, labels, cv=GroupKFold(3), groups=groups, error_score="raise")


def test_similarities_serve_other_methods(train):
    X, y = train
    gram = SUM(X)
    clusters = SpectralKMeans(3, kernel="precomputed", random_state=0).fit(gram)
    assert np.bincount(clusters.predict(gram)).sum() == len(X)
    assert clusters.lower_bound_ <= clusters.inertia_
    coordinates = KernelPCA(2, kernel="precomputed").fit_transform(gram)
    centred = gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean()
    assert_allclose((coordinates**2).sum(axis=0), np.linalg.eigvalsh(centred)[::-1][:2], rtol=1e-8)
    numbers = np.arange(len(X))[:, None]
    kernel = ConstantKernel(2.0, "fixed") * GramCovariance(gram)
    process = GaussianProcessRegressor(kernel, noise_variance=0.1, hyper_inference="fixed").fit(numbers[:18], y[:18])
    mean, std = process.predict(numbers[18:], return_std=True)
    inverse = np.linalg.inv(2.0 * gram[:18, :18] + 0.1 * np.eye(18))
    cross = 2.0 * gram[18:, :18]
    assert_allclose(mean, cross @ inverse @ y[:18], atol=1e-6)
    assert_allclose(std**2, 2.0 - np.einsum("ij,jk,ik->i", cross, inverse, cross), atol=1e-6)
    learned = GaussianProcessRegressor(ConstantKernel() * GramCovariance(gram)).fit(numbers, y)
    assert learned.noise_variance_ > 0
    for wrong in ([[0.5]], [[len(X)]], [[-1]], [[0, 1]]):
        with pytest.raises(ValueError, match="X must"):
            GramCovariance(gram)(wrong)


@pytest.mark.parametrize("length", [1, 5, 30])
def test_resampled_sequences_are_rows_whose_inner_products_are_linear_warps(length, train):
    X, _ = train
    rows = LinearTimeNormalizer(length).fit_transform(X)
    assert rows.shape == (len(X), 2 * length)
    kernel = TimeAlignmentKernel("linear", frame_kernel="linear", length=length)
    assert_allclose(rows @ rows.T / length, kernel(X), atol=1e-12)
    flat, lengths = joined(X)
    assert_array_equal(LinearTimeNormalizer(length).fit_transform(flat, lengths=lengths), rows)
    names = LinearTimeNormalizer(length).fit(X).get_feature_names_out()
    assert (len(names), names[-1]) == (2 * length, f"frame{length - 1}_x1")


@pytest.mark.parametrize("kind", [SequenceSVC, SequenceSVR])
@pytest.mark.parametrize("kernel", [SUM, TimeAlignmentKernel(sigma=2.0), "precomputed"])
def test_a_saved_model_keeps_its_answers_and_its_support_vectors_only(kind, kernel, train, test, tmp_path):
    (X, y), (new, _) = train, test
    given, asked = (SUM(X), SUM(new, X)) if kernel == "precomputed" else (X, new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        model = kind(kernel, C=5.0).fit(given, y)
    pluri.save(model, tmp_path / "model.skops")
    loaded = pluri.load(tmp_path / "model.skops")
    assert_array_equal(loaded.predict(asked), model.predict(asked))
    assert loaded.summary() == model.summary()
    if kernel != "precomputed":
        assert len(loaded.support_lengths_) == len(model.support_)


def test_what_cannot_be_meant_is_refused(train):
    X, y = train
    rows, lengths = joined(X)
    model = SequenceSVC(SUM).fit(X, y)
    for told, action in {
        "an array alone could be one sequence or many": lambda: model.predict(X[0]),
        "one entry for each of 24 sequences": lambda: SequenceSVC(SUM).fit(X, y[:-1]),
        "must be the same for all frames": lambda: SequenceSVC(SUM).fit(rows, np.arange(len(rows)) % 3, lengths),
        "no missing values": lambda: SequenceSVC(SUM).fit([np.full((3, 2), np.nan), *X[1:]], y),
        "at least one frame": lambda: SequenceSVC(SUM).fit([np.zeros((0, 2)), *X[1:]], y),
        "at least two classes": lambda: SequenceSVC(SUM).fit(X, np.zeros(len(y), int)),
        "requires y": lambda: SequenceSVC(SUM).fit(X),
        "C must be a positive number": lambda: SequenceSVC(SUM, C=0).fit(X, y),
        "psd must be one of": lambda: SequenceSVC(SUM, psd="truncate").fit(X, y),
        "kernel must be a TimeAlignmentKernel": lambda: SequenceSVC("rbf").fit(X, y),
        "lengths must be None": lambda: SequenceSVC(SUM).fit(X, y, lengths),
        "groups and lengths": lambda: SequenceSVC(SUM).fit(rows, y, lengths, groups=np.arange(len(rows))),
        "features": lambda: model.predict([np.zeros((3, 5))]),
        "positive for at least one sequence of each class": lambda: SequenceSVC(SUM).fit(X, y, sequence_weight=y > 0),
        "only zero weights": lambda: SequenceSVC(SUM).fit(X, y, sequence_weight=np.zeros(len(y))),
    }.items():
        with pytest.raises(ValueError, match=told):
            action()
    with pytest.raises(NotFittedError):
        SequenceSVC(SUM).predict(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="no missing values"):
        model.fit([np.full((3, 4), np.nan), np.zeros((3, 4))], [0, 1])
    assert {name: id(value) for name, value in vars(model).items()} == {n: id(v) for n, v in before.items()}


def test_a_limit_of_steps_is_told(train):
    with pytest.warns(ConvergenceWarning):
        SequenceSVC(SUM, C=100.0, max_iter=1).fit(*train)


ESTIMATORS = [SequenceSVC(), SequenceSVC(SUM, psd="clip"), SequenceSVR(), LinearTimeNormalizer(3), FrameTransformer()]


def test_plain_lists_are_rows_and_said_to_be():
    X = [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 1.0, 2.5], [1.0, 1.0, 0.5]]
    with pytest.warns(UserWarning, match="4 sequences of one frame"):
        model = SequenceSVC(SUM).fit(X, [0, 1, 0, 1])
    assert_array_equal(model.predict(X), model.predict(np.array(X)))
    ragged = SequenceSVC(SUM).fit([[0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 2.0], [1.0]], [0, 1, 0, 1])
    assert ragged.predict([[0.0, 1.0], [1.0, 1.0]]).shape == (2,)
    assert ragged.n_features_in_ == 1


@pytest.mark.filterwarnings("ignore:X, a list of .* is read as .* sequences of one frame:UserWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
