"""InfiniteHMM(inference="vb"): what a fit keeps, where its data may be, and what it says."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import pluri
from pluri.engine import ArraySource, Batch
from pluri.sequences import InfiniteHMM, SequenceClassifier

CENTERS = np.array([[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
SMALL = {"inference": "vb", "n_init": 1, "max_components": 6, "random_state": 0}


def segments(seed=0, n_steps=240):
    """Rows of three states far apart, the states, and lengths of three sequences."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(n_steps) < 0.1) % 3
    return CENTERS[states] + rng.normal(size=(n_steps, 2)), states, np.array([60, 100, n_steps - 160])


class Pieces:
    """A source with one sequence a batch."""

    def __init__(self, X, lengths):
        self.X, self.ends = X, np.cumsum([0, *lengths])

    def batches(self):
        for begin, end in itertools.pairwise(self.ends):
            yield Piece(self.X[begin:end])


class Piece:
    def __init__(self, X):
        self.X = X

    def load(self):
        return Batch(self.X, [len(self.X)])


def same_partition(one, other):
    return len(set(zip(one.tolist(), other.tolist()))) == len(set(one.tolist())) == len(set(other.tolist()))


@pytest.mark.parametrize("family", ["gaussian", "diag"])
def test_the_states_are_found_and_their_means_are_those_of_the_rows(family):
    X, states, lengths = segments()
    model = InfiniteHMM(family, **SMALL).fit(X, lengths=lengths)
    assert model.n_states_ == 3
    assert same_partition(model.labels_, states)
    for k in range(3):
        assert_allclose(model.state_parameters_["means"][k], X[model.labels_ == k].mean(axis=0), atol=0.05)
    assert_allclose(model.transmat_.sum(axis=1), 1.0)
    assert_allclose(model.startprob_.sum(), 1.0)
    # Expected transitions are counts, for states so far apart, plus what the prior is worth.
    counts = np.zeros((3, 3))
    for begin, end in itertools.pairwise(np.cumsum([0, *lengths])):
        np.add.at(counts, tuple(np.stack([model.labels_[begin : end - 1], model.labels_[begin + 1 : end]])), 1)
    prior = model.concentration_ * (1 - model.stickiness_) * np.tile(model.common_weights_[:3], (3, 1))
    expected = counts + prior + model.concentration_ * model.stickiness_ * np.eye(3)
    assert_allclose(model.transmat_, expected / expected.sum(axis=1, keepdims=True), atol=1e-3)
    assert_allclose(model.state_occupancy_, np.bincount(model.labels_), atol=1e-2)
    assert (np.diff(model.history_.run(0).objective) > -1e-6).all()
    assert_array_equal(model.predict(X, lengths), model.labels_)
    assert not hasattr(model, "trace_")
    with pytest.raises(AttributeError, match="a variational fit has no draws"):
        model.n_components_posterior()


@pytest.mark.parametrize("family", ["gaussian", "diag"])
def test_data_in_batches_give_what_data_in_memory_give(family):
    X, _, lengths = segments()
    model = InfiniteHMM(family, **SMALL).fit(X, lengths=lengths)
    streamed = InfiniteHMM(family, **SMALL).fit(Pieces(X, lengths))
    assert_allclose(streamed.lower_bound_, model.lower_bound_, rtol=1e-7)
    assert_array_equal(streamed.labels_, model.labels_)
    for one, other in zip(streamed.state_sums_, model.state_sums_):
        assert_allclose(one, other, atol=1e-5)
    assert_allclose(streamed.score(X, lengths=lengths), model.score(X, lengths=lengths), rtol=1e-7)
    together = InfiniteHMM(family, **SMALL, n_jobs=2).fit(Pieces(X, lengths))
    assert_allclose(together.lower_bound_, model.lower_bound_, rtol=1e-7)


def test_rows_missing_in_part_or_as_a_whole_do_not_hide_the_states():
    X, states, lengths = segments()
    X[::5, 0], X[3::7] = np.nan, np.nan
    model = InfiniteHMM("diag", **SMALL).fit(X, lengths=lengths)
    seen = ~np.isnan(X).any(axis=1)
    assert same_partition(model.labels_[seen], states[seen])
    streamed = InfiniteHMM("diag", **SMALL).fit(Pieces(X, lengths))
    assert_allclose(streamed.lower_bound_, model.lower_bound_, rtol=1e-7)


def test_states_that_differ_in_their_dynamics_are_told_apart():
    """x_t = +-0.9 x_{t-1} + noise: the same distribution of rows, and another sign of what follows."""
    rng = np.random.default_rng(1)
    states = np.arange(600) // 100 % 2
    x = np.zeros(600)
    for t in range(1, 600):
        x[t] = (0.95, -0.95)[states[t]] * x[t - 1] + rng.normal()
    model = InfiniteHMM("autoregressive", **SMALL).fit(x[:, None])
    assert model.n_states_ == 2
    right = (model.labels_ == states).mean()
    assert max(right, 1 - right) > 0.95
    slopes = np.sort(model.state_parameters_["coefficients"][:, 0, 1])
    assert_allclose(slopes, [-0.95, 0.95], atol=0.1)


def test_a_fit_comes_back_from_its_file_and_forgets_chains(tmp_path):
    X, _, lengths = segments()
    model = InfiniteHMM(n_draws=4, n_warmup=4, n_chains=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains this short need not agree
        model.fit(X, lengths=lengths)
    assert hasattr(model, "trace_")
    model.set_params(**SMALL).fit(X, lengths=lengths)
    assert not {"trace_", "best_chain_", "best_labels_", "expected_loss_"} & set(vars(model))
    pluri.save(model, tmp_path / "model.skops")
    loaded = pluri.load(tmp_path / "model.skops")
    assert_allclose(loaded.score_sequences(X, lengths), model.score_sequences(X, lengths))
    assert loaded.lower_bound_ == model.lower_bound_
    assert "vb: converged" in loaded.summary()


def test_what_did_not_end_and_what_was_cut_is_said():
    X, _, lengths = segments()
    with pytest.warns(ConvergenceWarning, match="the bound still rises after max_iter=1 sweeps"):
        InfiniteHMM(**SMALL, max_iter=1).fit(X, lengths=lengths)
    with pytest.warns(UserWarning, match="reached max_components=2"):
        InfiniteHMM(**SMALL | {"max_components": 2}).fit(X, lengths=lengths)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_iter": 0}, "max_iter must be"),
        ({"n_init": 0}, "n_init must be"),
        ({"tol": "small"}, "tol must be"),
        ({"inference": "em"}, "inference must be"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given, message):
    X, _, lengths = segments()
    with pytest.raises(ValueError, match=message):
        InfiniteHMM(**SMALL | given).fit(X, lengths=lengths)


def test_sources_that_cannot_be_read_are_refused():
    X, _, lengths = segments()
    with pytest.raises(ValueError, match="must give the lengths of its sequences"):
        InfiniteHMM(**SMALL).fit(ArraySource(X))
    with pytest.raises(ValueError, match="all symbols must be known"):
        InfiniteHMM("categorical", **SMALL).fit(Pieces(np.ones((240, 1)), lengths))
    with pytest.raises(ValueError, match="lengths and groups must be None when X is a source"):
        InfiniteHMM(**SMALL).fit(Pieces(X, lengths), lengths=lengths)
    with pytest.raises(TypeError, match="got a source: use inference='vb'"):
        InfiniteHMM(inference="beam").fit(ArraySource(X, lengths))


def test_classes_may_have_as_many_states_as_they_need():
    X, _, _ = segments(2)
    Y = np.random.default_rng(3).normal(size=(240, 2)) * [8.0, 4.0] + [0.0, 3.0]
    parts = [*np.split(X, 8), *np.split(Y, 8)]
    y = np.repeat(["states", "cloud"], 8)
    model = SequenceClassifier(InfiniteHMM(**SMALL)).fit(parts, y)
    assert [own.n_states_ for own in model.hmms_] == [1, 3]
    assert model.score(parts, y) == 1.0
