"""The classifier whose states are the classes: counting, anchors, unknown labels, and its place in scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pluri.datasets import make_toy_hmm
from pluri.engine import ArraySource
from pluri.priors import Dirichlet, Diversity, Sticky, log_determinant, rows_objective
from pluri.sequences import GMMHMM, BernoulliHMM, CategoricalHMM, GaussianHMM, PoissonHMM
from pluri.sequences.labelled.classifier import HMMClassifier
from pluri.sequences.labelled.labels import encode_labels, join_labels

TIGHT = {"rtol": 1e-9, "atol": 1e-12}

# Three words over the letters x, y, z with the labels A, B: seven samples, four steps.
WORDS = [["x", "y", "y"], ["z", "x"], ["x", "z"]]
TAGS = [["A", "B", "B"], ["B", "A"], ["A", "A"]]


def labelled_chain(seed=0, n_sequences=40, k=4, spread=1.0):
    """Sequences of a random chain with Gaussian emissions: X, y, lengths."""
    rng = np.random.default_rng(seed)
    model = GaussianHMM(k, random_state=seed)
    model.startprob_ = rng.dirichlet(np.ones(k))
    model.transmat_ = rng.dirichlet(np.ones(k) * 0.5, size=k)
    model.means_ = np.arange(k)[:, None] * np.array([[1.0, -1.0]])
    model.covars_ = np.full((k, 2), spread)
    lengths = rng.integers(3, 12, size=n_sequences)
    parts = [model.sample(int(length), random_state=rng) for length in lengths]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts]), lengths


# Counting -----------------------------------------------------------------------------------------------------------


def test_three_words_counted_by_hand():
    model = HMMClassifier(CategoricalHMM()).fit(WORDS, TAGS)
    assert model.classes_.tolist() == ["A", "B"]
    np.testing.assert_allclose(model.hmm_.startprob_, [2 / 3, 1 / 3], **TIGHT)
    # Steps: A to B, B to B, B to A, A to A.
    np.testing.assert_allclose(model.hmm_.transmat_, [[1 / 2, 1 / 2], [1 / 2, 1 / 2]], **TIGHT)
    # A emits x, x, x, z; B emits y, y, z.
    np.testing.assert_allclose(model.hmm_.emissionprob_, [[3 / 4, 0, 1 / 4], [0, 2 / 3, 1 / 3]], **TIGHT)
    np.testing.assert_allclose(model.anchor_transmat_, model.hmm_.transmat_, **TIGHT)


def test_pseudo_counts_by_hand():
    model = HMMClassifier(CategoricalHMM(emissionprob_prior=2.0), pseudo_count=0.5)
    model.fit([["x", "y"], ["x", "x", "x"]], [["A", "B"], ["A", "A", "A"]])
    np.testing.assert_allclose(model.hmm_.startprob_, [2.5 / 3, 0.5 / 3], **TIGHT)
    np.testing.assert_allclose(model.hmm_.transmat_, [[2.5 / 4, 1.5 / 4], [1 / 2, 1 / 2]], **TIGHT)
    np.testing.assert_allclose(model.hmm_.emissionprob_, [[5 / 6, 1 / 6], [1 / 3, 2 / 3]], **TIGHT)


def test_pseudo_counts_add_to_the_priors_of_the_model():
    X, y, lengths = labelled_chain()
    both = HMMClassifier(GaussianHMM(transmat_prior=Sticky(3.0), startprob_prior=1.5), pseudo_count=2.0)
    one = HMMClassifier(GaussianHMM(transmat_prior=Sticky(3.0, concentration=3.0), startprob_prior=3.5))
    both.fit(X, y, lengths)
    one.fit(X, y, lengths)
    np.testing.assert_allclose(both.hmm_.transmat_, one.hmm_.transmat_, **TIGHT)
    np.testing.assert_allclose(both.hmm_.startprob_, one.hmm_.startprob_, **TIGHT)


def test_emissions_are_those_of_naive_bayes():
    X, y, lengths = labelled_chain()
    gaussian = HMMClassifier(GaussianHMM(covars_prior=0.0)).fit(X, y, lengths)
    peer = GaussianNB(var_smoothing=0.0).fit(X, y)
    np.testing.assert_allclose(gaussian.hmm_.means_, peer.theta_, **TIGHT)
    np.testing.assert_allclose(np.diagonal(gaussian.hmm_.covars_, axis1=1, axis2=2), peer.var_, **TIGHT)
    bits = X > 0.5
    bernoulli = HMMClassifier(BernoulliHMM(probs_prior=2.0)).fit(bits, y, lengths)
    peer = BernoulliNB(alpha=1.0).fit(bits, y)
    np.testing.assert_allclose(np.log(bernoulli.hmm_.probs_), peer.feature_log_prob_, **TIGHT)


def test_a_class_that_is_never_left_has_a_uniform_row_and_a_warning():
    X = np.arange(5.0)[:, None]
    with pytest.warns(UserWarning, match=r"nothing ever follows the classes \['end'\]"):
        model = HMMClassifier().fit(X, ["a", "b", "end", "a", "end"], [3, 2])
    np.testing.assert_allclose(model.hmm_.transmat_, [[0, 1 / 2, 1 / 2], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3]], **TIGHT)
    HMMClassifier(pseudo_count=1.0).fit(X, ["a", "b", "end", "a", "end"], [3, 2])  # no warning: errors are on


def test_names_of_classes_do_not_matter():
    X, y, lengths = labelled_chain()
    names = np.array(["delta", "alpha", "charlie", "bravo"])
    by_number = HMMClassifier(pseudo_count=1.0).fit(X, y, lengths)
    by_name = HMMClassifier(pseudo_count=1.0).fit(X, names[y], lengths)
    order = np.argsort(names)
    np.testing.assert_allclose(by_name.hmm_.transmat_, by_number.hmm_.transmat_[np.ix_(order, order)], **TIGHT)
    assert (by_name.predict(X, lengths) == names[by_number.predict(X, lengths)]).all()


def test_integer_weights_equal_repeated_sequences():
    X, y, lengths = labelled_chain(n_sequences=5)
    weight = np.array([2, 0, 1, 3, 1])
    ends = np.cumsum(lengths)
    rows = [np.arange(end - length, end) for end, length in zip(ends, lengths)]
    repeated = np.concatenate([rows[n] for n in np.repeat(np.arange(5), weight)])
    kept = np.isin(np.arange(4), y[repeated])
    assert kept.all()
    weighted = HMMClassifier(pseudo_count=0.5).fit(X, y, lengths, sequence_weight=weight)
    plain = HMMClassifier(pseudo_count=0.5).fit(X[repeated], y[repeated], np.repeat(lengths, weight))
    np.testing.assert_allclose(weighted.hmm_.transmat_, plain.hmm_.transmat_, **TIGHT)
    np.testing.assert_allclose(weighted.hmm_.startprob_, plain.hmm_.startprob_, **TIGHT)
    np.testing.assert_allclose(weighted.hmm_.means_, plain.hmm_.means_, **TIGHT)
    np.testing.assert_allclose(weighted.hmm_.covars_, plain.hmm_.covars_, **TIGHT)


def test_list_and_source_equal_array_with_lengths():
    X, y, lengths = labelled_chain()
    y = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    ends = np.cumsum(lengths)[:-1]
    flat = HMMClassifier(pseudo_count=0.5).fit(X, y, lengths)
    listed = HMMClassifier(pseudo_count=0.5).fit(np.split(X, ends), np.split(y, ends))
    mixed = HMMClassifier(pseudo_count=0.5).fit(np.split(X, ends), y)
    source = ArraySource(X, lengths, labels=y, batch_size=50)
    batched = HMMClassifier(pseudo_count=0.5).fit(source)
    for other in (listed, mixed, batched):
        np.testing.assert_allclose(other.hmm_.transmat_, flat.hmm_.transmat_, rtol=1e-7)
        np.testing.assert_allclose(other.hmm_.means_, flat.hmm_.means_, rtol=1e-7)
        assert (other.predict(np.split(X, ends)) == flat.predict(X, lengths)).all()


# Diversity and anchor -----------------------------------------------------------------------------------------------


def test_unsmoothed_counts_are_their_own_optimum_whatever_the_anchor():
    X, y, lengths = labelled_chain()
    counted = HMMClassifier().fit(X, y, lengths)
    anchored = HMMClassifier(anchor=1e5).fit(X, y, lengths)
    np.testing.assert_allclose(anchored.hmm_.transmat_, counted.hmm_.transmat_, atol=1e-9)
    np.testing.assert_allclose(anchored.anchor_transmat_, counted.hmm_.transmat_, **TIGHT)


@pytest.mark.parametrize("pseudo_count", [0.0, 2.0])
def test_a_heavy_anchor_returns_the_counts(pseudo_count):
    X, y, lengths = labelled_chain()
    hmm = GaussianHMM(diversity=5.0)
    model = HMMClassifier(hmm, anchor=1e9, pseudo_count=pseudo_count).fit(X, y, lengths)
    counted = HMMClassifier(pseudo_count=pseudo_count).fit(X, y, lengths)
    np.testing.assert_allclose(model.anchor_transmat_, counted.hmm_.transmat_, **TIGHT)
    np.testing.assert_allclose(model.hmm_.transmat_, model.anchor_transmat_, atol=1e-4)


@pytest.mark.parametrize(("diversity", "anchor"), [(0.0, 50.0), (3.0, 0.0), (3.0, 50.0)])
def test_transition_matrix_maximises_the_penalised_likelihood_of_the_counts(diversity, anchor):
    X, y, lengths = labelled_chain(k=3)
    hmm = GaussianHMM(diversity=Diversity(diversity, max_iter=500), tol=1e-9)
    model = HMMClassifier(hmm, anchor=anchor, pseudo_count=2.0).fit(X, y, lengths)
    counts = np.zeros((3, 3))
    inside = np.repeat(np.arange(len(lengths)), lengths)
    for before, after, same in zip(y[:-1], y[1:], inside[:-1] == inside[1:]):
        counts[before, after] += same
    np.testing.assert_allclose(
        model.anchor_transmat_, (counts + 2.0) / (counts + 2.0).sum(axis=1, keepdims=True), **TIGHT
    )
    base = Dirichlet(1.0) if anchor else Dirichlet(3.0)  # the pseudo-counts are in the anchor, if there is one

    def objective(rows):
        return rows_objective(
            counts,
            rows,
            base=base,
            diversity=Diversity(diversity),
            anchor=model.anchor_transmat_,
            anchor_weight=anchor,
        )

    def rows_of(logits):
        rows = np.exp(logits.reshape(3, 3) - logits.max())
        return rows / rows.sum(axis=1, keepdims=True)

    found = minimize(lambda logits: -objective(rows_of(logits)), np.log(model.anchor_transmat_).ravel(), tol=1e-12)
    np.testing.assert_allclose(objective(model.hmm_.transmat_), -found.fun, atol=1e-6)
    np.testing.assert_allclose(model.hmm_.transmat_, rows_of(found.x), atol=2e-4)


def test_likelihood_undoes_the_smoothing_of_the_anchor():
    X, y, lengths = labelled_chain()
    raw = HMMClassifier().fit(X, y, lengths).hmm_.transmat_
    model = HMMClassifier(anchor=10.0, pseudo_count=5.0).fit(X, y, lengths)
    smoothed = model.anchor_transmat_
    assert np.abs(model.hmm_.transmat_ - raw).sum() < 0.5 * np.abs(smoothed - raw).sum()


def test_diversity_finds_its_way_from_counts_with_zeros():
    X, y, lengths = labelled_chain(n_sequences=6)
    counted = HMMClassifier().fit(X, y, lengths)
    assert (counted.hmm_.transmat_ == 0).any()
    diverse = HMMClassifier(GaussianHMM(diversity=2.0)).fit(X, y, lengths)
    assert diverse.hmm_.log_det_ > log_determinant(counted.hmm_.transmat_)
    assert (np.diff(diverse.hmm_.history_.objective) > -1e-6).all()


# Unknown labels -----------------------------------------------------------------------------------------------------


def test_semi_supervised_with_all_labels_is_counting():
    X, y, lengths = labelled_chain()
    plain = HMMClassifier(unknown=None).fit(X, y, lengths)
    open_to_unknown = HMMClassifier(unknown=99).fit(X, y, lengths)
    np.testing.assert_array_equal(plain.hmm_.transmat_, open_to_unknown.hmm_.transmat_)
    assert plain.hmm_.n_iter_ == 2  # the second E-step finds nothing to gain
    np.testing.assert_allclose(plain.hmm_.history_.objective[0], plain.hmm_.history_.objective[1], rtol=1e-12)


def test_objective_sums_over_the_unknown_states_only(enumeration):
    rng = np.random.default_rng(3)
    case = enumeration.make_case("gaussian-diag", k=3, n_samples=6, n_features=2, seed=3)
    template = case.model.set_params(params="", init_params="")
    labels = np.array([0, -1, 2, 1, -1, -1])
    model = HMMClassifier(template).fit(case.X, labels)
    np.testing.assert_array_equal(model.hmm_.transmat_, case.model.transmat_)
    truth = case.enumerate(labels=labels).log_likelihood
    np.testing.assert_allclose(model.hmm_.history_.log_likelihood[0], truth, rtol=1e-11)
    X = rng.normal(size=(4, 2))
    np.testing.assert_allclose(model.predict_proba(X), case.enumerate(X).posterior, rtol=1e-9, atol=1e-12)
    score, path = model.decode(X, algorithm="viterbi")
    np.testing.assert_allclose(score, case.enumerate(X).log_joint[0], rtol=1e-11)
    assert path.tolist() == case.enumerate(X).paths[0].tolist()


def test_unlabelled_sequences_help_when_labels_are_few():
    X, y, lengths = labelled_chain(seed=1, n_sequences=500, k=3, spread=0.6)
    n_labelled, n_train = int(lengths[:4].sum()), int(lengths[:300].sum())
    test = X[n_train:], y[n_train:], lengths[300:]
    X, y = X[:n_train], y[:n_train]
    few = HMMClassifier(pseudo_count=0.5).fit(X[:n_labelled], y[:n_labelled], lengths[:4])
    partial = np.where(np.arange(n_train) < n_labelled, y, -1)
    many = HMMClassifier(pseudo_count=0.5).fit(X, partial, lengths[:300])
    everything = HMMClassifier(pseudo_count=0.5).fit(X, y, lengths[:300])
    accuracy = [model.score(*test) for model in (few, many, everything)]
    assert accuracy[0] + 0.02 < accuracy[1] <= accuracy[2] + 0.01
    assert (np.diff(many.hmm_.history_.objective) > -1e-6).all()


def test_symbols_and_steps_without_a_label_are_not_impossible():
    X = [["x", "y"], ["x", "z", "z", "y"]]
    model = HMMClassifier(CategoricalHMM(n_iter=5, tol=0)).fit(X, [["A", "B"], [None] * 4])
    assert np.isfinite(model.hmm_.history_.objective).all()
    assert model.predict(X)[:2].tolist() == ["A", "B"]


@pytest.mark.parametrize(
    ("y", "classes", "n_unknown"),
    [
        ([0, 1, -1, 1], [0, 1], 1),
        ([-1, 1, -1, 1], [-1, 1], 0),
        ([3.0, 5.0, -1.0, 5.0], [3, 5], 1),
        (["a", "b", "", "a"], ["a", "b"], 1),
        (["", "b", "", "b"], ["", "b"], 0),
        (["a", None, float("nan"), "b"], ["a", "b"], 2),
        ([2, None, 7, 2], [2, 7], 1),
        ([2, None, 7, -1], [2, 7], 2),
        (np.array(["a", "b", None, "a"], dtype=object), ["a", "b"], 1),
        ([True, False, True, True], [False, True], 0),
        ([5, 5, 5, 5], [5], 0),
        ([-1, -1, -1, -1], [-1], 0),
    ],
)
def test_marks_of_unknown_labels(y, classes, n_unknown):
    X = np.array([[0.0], [5.0], [0.5], [4.5]])
    model = HMMClassifier(pseudo_count=1.0).fit(X, y)
    assert model.classes_.tolist() == classes
    assert (encode_labels(join_labels(y)[0])[1] == -1).sum() == n_unknown
    assert set(model.predict(X).tolist()) <= set(classes)


def test_missing_values_of_pandas_are_unknown_labels():
    pandas = pytest.importorskip("pandas")
    X = np.array([[0.0], [5.0], [0.5], [4.5]])
    for values, dtype in (([1, 2, None, 2], "Int64"), (["a", "b", None, "b"], "string"), (list("ab?b"), "category")):
        y = pandas.Series(values, dtype=dtype)
        model = HMMClassifier(pseudo_count=1.0, unknown="?" if dtype == "category" else "auto").fit(X, y)
        assert model.classes_.tolist() == values[:2]
        assert model.score(X, y) == 1.0


def test_any_label_can_be_the_mark_or_none():
    X = np.array([[-9.0], [0.0], [9.0], [9.1], [-9.1]])
    y = np.array([-1, 0, 1, 1, -1])
    assert HMMClassifier(pseudo_count=1.0).fit(X, y).classes_.tolist() == [0, 1]
    assert HMMClassifier(pseudo_count=1.0, unknown=None).fit(X, y).classes_.tolist() == [-1, 0, 1]
    assert HMMClassifier(pseudo_count=1.0, unknown=0).fit(X, y).classes_.tolist() == [-1, 1]


def test_accuracy_counts_known_labels_only():
    X = np.array([[0.0], [5.0], [0.1], [5.1]])
    model = HMMClassifier(pseudo_count=1.0).fit(X, ["a", "b", "a", "b"])
    assert model.score(X, ["a", None, "b", "b"]) == pytest.approx(2 / 3)
    assert model.score(X, ["a", "new", "a", "b"]) == pytest.approx(3 / 4)


# Other families and settings ----------------------------------------------------------------------------------------


def test_components_of_a_class_are_found_inside_the_class():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 0, 1], 60)
    centers = np.where(y == 0, rng.choice([-8.0, 4.0], 240), rng.choice([-4.0, 8.0], 240))
    X = rng.normal(centers, 0.5)[:, None]
    model = HMMClassifier(GMMHMM(n_mix=2, random_state=0)).fit(X, y, [120, 120])
    found = np.sort(model.hmm_.means_[:, :, 0], axis=1)
    np.testing.assert_allclose(found, [[-8, 4], [-4, 8]], atol=0.3)
    assert model.score(X, y, [120, 120]) == 1.0


def test_what_is_set_by_hand_is_kept():
    X, y, lengths = labelled_chain()
    transition = np.full((4, 4), 0.25)
    hmm = GaussianHMM(4, params="smc", init_params="smc")
    hmm.transmat_ = transition
    model = HMMClassifier(hmm).fit(X, y, lengths)
    np.testing.assert_array_equal(model.hmm_.transmat_, transition)
    np.testing.assert_allclose(model.hmm_.means_, HMMClassifier().fit(X, y, lengths).hmm_.means_, **TIGHT)
    partial = np.where(np.arange(len(y)) % 2, y, -1)
    counted_only = HMMClassifier(GaussianHMM(params="st")).fit(X, partial, lengths)
    labelled = partial >= 0
    assert np.abs(counted_only.hmm_.means_[0] - X[labelled & (y == 0)].mean(axis=0)).max() < 0.2


def test_the_model_given_is_not_touched():
    X, y, lengths = labelled_chain()
    hmm = GaussianHMM(n_components=2, n_init=7, covariance_type="full")
    before = hmm.get_params()
    model = HMMClassifier(hmm).fit(X, y, lengths)
    assert hmm.get_params() == before
    assert not hasattr(hmm, "transmat_")
    assert model.hmm_.n_components == 4
    assert model.hmm_.covariance_type == "full"


def test_best_path_or_best_labels():
    X, y, lengths = labelled_chain(spread=4.0)
    path = HMMClassifier(GaussianHMM()).fit(X, y, lengths)
    labels = HMMClassifier(GaussianHMM(algorithm="map")).fit(X, y, lengths)
    best = labels.classes_[labels.predict_proba(X, lengths).argmax(axis=1)]
    np.testing.assert_array_equal(labels.predict(X, lengths), best)
    np.testing.assert_array_equal(path.predict(X, lengths), path.decode(X, lengths)[1])
    assert (path.predict(X, lengths) != best).any()
    np.testing.assert_array_equal(path.decode(X, lengths, algorithm="map")[1], best)


def test_more_states_in_the_template_than_samples_is_no_error():
    model = HMMClassifier(PoissonHMM(n_components=50), pseudo_count=1.0).fit([[1], [9], [2]], [0, 1, 0])
    assert model.hmm_.n_components == 2


# In scikit-learn ----------------------------------------------------------------------------------------------------


def test_pipeline_and_clone():
    toy = make_toy_hmm(n_sequences=30, random_state=0)
    model = HMMClassifier(GaussianHMM(diversity=1.0), pseudo_count=0.5, anchor=2.0)
    copy = clone(model)
    assert copy.hmm is not model.hmm
    assert copy.get_params()["hmm__diversity"] == 1.0
    assert copy.set_params(hmm__diversity=3.0).hmm.diversity == 3.0
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(toy.X, toy.y, hmmclassifier__lengths=toy.lengths)
    alone = clone(model).fit(StandardScaler().fit_transform(toy.X), toy.y, toy.lengths)
    np.testing.assert_array_equal(pipeline.predict(toy.X), alone.predict(StandardScaler().fit_transform(toy.X)))


def test_grid_search_over_lists_of_sequences():
    X, y, lengths = labelled_chain()
    ends = np.cumsum(lengths)[:-1]
    sequences, labels = np.split(X, ends), np.split(y, ends)
    search = GridSearchCV(
        HMMClassifier(GaussianHMM(), pseudo_count=1.0), {"hmm__diversity": [0.0, 20.0]}, cv=KFold(3)
    ).fit(sequences, labels)
    train, test = next(KFold(3).split(sequences))
    alone = HMMClassifier(GaussianHMM(diversity=20.0), pseudo_count=1.0)
    alone.fit([sequences[n] for n in train], [labels[n] for n in train])
    expected = alone.score([sequences[n] for n in test], [labels[n] for n in test])
    assert search.cv_results_["split0_test_score"][1] == pytest.approx(expected)
    assert search.predict(sequences).shape == y.shape


# Bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "y", "error", "message"),
    [
        ({}, None, ValueError, "requires y to be passed"),
        ({}, [0, 1, 0], ValueError, "y must have one label for each of 4 samples, got 3"),
        ({}, [[0, 1, 0], [1]], ValueError, r"y\[0\] must have as many labels as X\[0\] has samples \(2\), got 3"),
        ({}, [0.0, np.nan, 1.0, 1.0], ValueError, "Input y contains NaN"),
        ({}, [None] * 4, ValueError, "at least one known label"),
        ({}, ["a", 1, None, 2], ValueError, "all numbers or all strings"),
        ({"unknown": None}, ["a", "b", None, "a"], ValueError, "no None and no NaN"),
        ({"anchor": -1.0}, [0, 1, 0, 1], ValueError, "anchor must be a number of at least 0, got -1.0"),
        ({"anchor": "much"}, [0, 1, 0, 1], ValueError, "anchor must be a number of at least 0, got 'much'"),
        ({"pseudo_count": np.nan}, [0, 1, 0, 1], ValueError, "pseudo_count must be a number of at least 0, got nan"),
        ({"hmm": StandardScaler()}, [0, 1, 0, 1], TypeError, "hmm must be a hidden Markov model"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(settings, y, error, message):
    X = [np.array([[0.0], [1.0]]), np.array([[0.5], [1.5]])]
    with pytest.raises(error, match=message):
        HMMClassifier(**settings).fit(X, y)


def test_a_source_must_hold_all_labels():
    X = np.arange(4.0)[:, None]
    with pytest.raises(ValueError, match=r"labels 0 \.\. n_classes - 1 that all occur"):
        HMMClassifier().fit(ArraySource(X, [4], labels=np.array([0, 2, -1, 0])))
    with pytest.raises(ValueError, match="y must be None"):
        HMMClassifier().fit(ArraySource(X, [4], labels=np.array([0, 1, -1, 0])), [0, 1, 0, 1])


def test_labels_of_sequences_of_one_length_may_be_a_matrix():
    rng = np.random.default_rng(0)
    y = np.repeat([[0, 1, 2]], 6, axis=0).repeat(8, axis=1)
    X = rng.normal(3.0 * y[:, :, None], 1.0)
    expected = HMMClassifier().fit(list(X), [row.tolist() for row in y])
    model = HMMClassifier().fit(list(X), y)
    np.testing.assert_array_equal(model.hmm_.transmat_, expected.hmm_.transmat_)
    assert model.score(list(X), y) == expected.score(list(X), list(y))
    with pytest.raises(ValueError, match=r"Found array with dim 3.* pass list\(X\) for 6 sequences"):
        HMMClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"must sum to the number of samples \(24\), got the sum 144"):
        HMMClassifier().fit(X[0], y)
