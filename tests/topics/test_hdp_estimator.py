"""HDPTopicModel: bars are found and counted, scikit-learn's contract, files, streams, interrupts and wrong input."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from pluri import on_interrupt
from pluri.datasets import make_bars
from pluri.io import load, save
from pluri.topics.hdp import HDPTopicModel

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def n_found(model, topic_word, within=0.15):
    """True topics that have a partner of their own within this total variation."""
    distance = 0.5 * np.abs(topic_word[:, None] - model.topic_word_[None]).sum(axis=2)
    return int((distance[linear_sum_assignment(distance)] < within).sum())


@pytest.fixture(scope="module")
def blocks():
    """Three topics of four words of their own."""
    rng = np.random.default_rng(0)
    laws = np.kron(np.eye(3), np.full(4, 0.25))
    return sparse.csr_matrix([rng.multinomial(30, rng.dirichlet([0.3] * 3) @ laws) for _ in range(80)]), laws


def quick(inference="gibbs", **settings):
    settings = {"topic_word_prior": 0.1, "max_topics": 8, "max_doc_topics": 4, "n_warmup": 40, "n_draws": 40} | settings
    return HDPTopicModel(inference, random_state=0, **settings)


def test_chains_find_the_ten_bars():
    """Each of five chains by itself; at least four of them must (here all five do)."""
    data = make_bars(n_documents=200, random_state=0)
    found = []
    for seed in range(5):
        settings = {"init": "sequential", "topic_word_prior": 0.1, "n_chains": 1, "n_warmup": 100, "n_draws": 30}
        model = HDPTopicModel(random_state=seed, **settings).fit(data.X)
        found.append(n_found(model, data.topic_word) == 10)
        assert 10 <= model.n_large_topics_ <= 14
        low, high = model.n_topics_interval_
        assert low <= model.n_topics_ <= high
        assert sum(model.n_topics_posterior_.values()) == 30
    assert sum(found) >= 4


@pytest.mark.parametrize("n_documents", [200])
def test_variational_bayes_finds_nine_bars_and_counts_them(n_documents):
    """The published start leaves five of ten within the same distance; mergers leave ten or eleven topics."""
    data = make_bars(n_documents=n_documents, random_state=np.random.default_rng(0))  # always this corpus
    model = HDPTopicModel("vb", max_topics=20, topic_word_prior=0.5, n_init=2, random_state=0).fit(data.X)
    assert n_found(model, data.topic_word) >= 9
    assert 10 <= model.n_topics_ <= 12
    assert np.diff(model.elbo_).min() > -1e-7 * abs(model.bound_)
    assert model.bound_ > -54419  # what one start reached without documents, learned concentrations and mergers


def test_minibatches_find_the_topics(blocks):
    X, laws = blocks
    model = quick("svi", batch_size=20, learning_offset=1.0, learning_decay=0.7, max_iter=20).fit(X)
    assert n_found(model, laws) == 3
    assert model.elbo_[-1] > model.elbo_[0]


# Both variational engines take documents in the same lines: the second is a second opinion.
@pytest.mark.parametrize("inference", ["gibbs", "vb", pytest.param("svi", marks=pytest.mark.thorough)])
def test_scikit_learn_accepts_it(inference, monkeypatch):
    monkeypatch.setattr("pluri.topics.hdp.chain_start.N_SWEEPS", 10)  # of 68 fits, whose topics nobody asks for
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(HDPTopicModel(inference, n_warmup=3, n_draws=3, n_chains=1, max_topics=4, max_doc_topics=2,
                                      max_iter=3))  # fmt: skip


@pytest.mark.parametrize("inference", ["gibbs", "vb", "svi"])
def test_result_is_in_order_and_the_same_again(blocks, inference, tmp_path):
    X = blocks[0]
    model = quick(inference, learning_offset=1.0).fit(X)
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1.0)
    assert model.topic_weight_.sum() == pytest.approx(1.0)
    assert (np.diff(model.topic_weight_) <= 1e-12).all()
    shares = model.transform(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.shape == (80, len(model.components_))
    empty = model.transform(np.zeros((1, 12)))
    np.testing.assert_allclose(empty[0], model.doc_topic_prior_ / model.doc_topic_prior_.sum())
    again = quick(inference, learning_offset=1.0).fit(X.toarray().astype(np.float32))
    np.testing.assert_array_equal(again.components_, model.components_)
    save(model, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(back.transform(X), shares)
    assert back.n_topics_ == model.n_topics_
    assert "topics" in model.summary()
    assert model.topic_graph().nodes[0].weight == model.topic_weight_[0]


def test_chains_in_threads_are_the_same(blocks):
    one, two = (quick(n_chains=2, n_jobs=n).fit(blocks[0]) for n in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.log_joint_, two.log_joint_)


def test_held_out_words_are_likelier_than_by_frequency(blocks):
    X = blocks[0]
    model = quick("vb").fit(X[:60])
    frequency = np.asarray(X[:60].sum(axis=0)).ravel() / X[:60].sum()
    score = model.held_out(X[60:], random_state=0)
    assert score.per_word > float((X[60:] @ np.log(frequency)).sum() / X[60:].sum()) + 0.3
    assert model.score(X[60:]) < 0 < model.perplexity(X[60:])


def test_partial_fit_learns_from_a_stream(blocks):
    X, laws = blocks
    model = quick("svi", learning_offset=1.0, learning_decay=0.7, total_samples=80)
    for seed in range(15):
        order = np.random.default_rng(seed).permutation(80)
        for part in np.split(order, 4):
            model.partial_fit(X[part])
    assert n_found(model, laws) == 3
    assert model.n_iter_ == 60
    assert len(model.elbo_) == 60
    twin = clone(model).fit(X)
    assert twin.n_iter_ != model.n_iter_
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(np.ones((3, 5)))


def test_one_topic_of_one_stick_is_a_smoothed_law_of_all_words(blocks):
    X, _ = blocks
    model = HDPTopicModel("vb", max_topics=1, max_doc_topics=1, topic_word_prior=0.3, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_[0], 0.3 + np.asarray(X.sum(axis=0)).ravel())


def test_fixed_and_learned_settings_are_told(blocks):
    model = quick(topic_concentration=0.7, doc_concentration=0.4, topic_word_prior="learn").fit(blocks[0])
    assert (model.topic_concentration_, model.doc_concentration_) == pytest.approx((0.7, 0.4))
    assert np.ptp(model.trace_["eta"]) > 0
    assert np.ptp(model.trace_["gamma"]) == 0
    assert set(model.trace_) == {"n_topics", "n_large_topics", "alpha", "gamma", "eta"}


def test_a_refit_by_another_way_leaves_nothing_behind(blocks):
    model = quick().fit(blocks[0])
    model.set_params(inference="vb").fit(blocks[0])
    assert not hasattr(model, "trace_")
    assert not hasattr(model, "n_topics_posterior_")
    assert hasattr(model, "elbo_")


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_truncation_and_haste_are_warned_of(blocks):
    with pytest.warns(ConvergenceWarning, match="max_topics"):
        quick("vb", max_topics=2).fit(blocks[0])
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        quick("vb", max_iter=2, tol=1e-12).fit(blocks[0])


def test_ctrl_c_keeps_what_is_there(blocks):
    def press(state):
        raise KeyboardInterrupt

    for inference in ("gibbs", "vb", "svi"):
        with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
            model = quick(inference, callback=press).fit(blocks[0])
        assert model.transform(blocks[0]).shape[0] == 80


def test_a_callback_ends_the_fit(blocks):
    model = quick("vb", callback=lambda state: state.iteration >= 3).fit(blocks[0])
    assert model.n_iter_ <= 4


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"inference": "mcmc"}, "inference must be one of 'gibbs', 'vb', 'svi', got 'mcmc'"),
        ({"init": "kmeans"}, "init must be one of"),
        ({"inference": "vb", "init": "sequential"}, "init must be"),
        ({"max_topics": 0}, "max_topics must be an integer of at least 1, got 0"),
        ({"topic_concentration": -1.0}, "topic_concentration must be a positive number"),
        ({"doc_concentration": "guess"}, "doc_concentration must be a positive number or 'learn' or a prior"),
        ({"inference": "svi", "topic_word_prior": "learn"}, "topic_word_prior must be a positive number"),
        ({"topic_concentration": (1.0, 1.0)}, r"topic_concentration must be .* a prior \(Gamma\), got \(1.0, 1.0\)"),
        ({"inference": "svi", "learning_decay": 0.4}, "decay must lie in"),
        ({"n_warmup": -1}, "n_warmup must be an integer of at least 0, got -1"),
    ],
)
def test_wrong_settings_are_named(settings, sentence):
    model = HDPTopicModel(**settings)
    with pytest.raises(ValueError, match=sentence):
        model.fit(np.ones((4, 3)))


def test_wrong_documents_are_named(blocks):
    with pytest.raises(ValueError, match="whole counts"):
        quick().fit(np.full((3, 4), 0.5))
    quick("vb").fit(np.full((3, 4), 0.5))
    with pytest.raises(ValueError, match="at least one word"):
        quick().fit(np.zeros((3, 4)))
    assert not hasattr(quick("vb"), "partial_fit")
    model = quick().fit(blocks[0])
    before = model.components_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 12), np.nan))
    np.testing.assert_array_equal(model.components_, before)


@pytest.mark.parametrize("inference", ["gibbs", "vb", "svi"])
def test_tiny_corpora_are_fitted(inference):
    for X in ([[1]], [[3, 0]], [[0, 2], [0, 2], [0, 2]]):
        model = quick(inference, max_iter=5).fit(np.array(X))
        assert model.transform(np.array(X)).sum() == pytest.approx(len(X))
