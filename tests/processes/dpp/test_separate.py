"""Fresh draws at every stamp: the two samplers agree, and are compared with following the process."""

import pickle

import numpy as np
import pytest

from pluri.processes.dpp.tracking import draws as tracking_draws
from pluri.processes.dpp.tracking.comparison import compare_streams, inner_similarity, jaccard_overlap
from pluri.processes.dpp.tracking.draws import draw_by_moves
from pluri.processes.dpp.tracking.separate import SeparateDPP
from pluri.processes.dpp.tracking.time_varying import TimeVaryingDPP


def topic_stream(n_stamps, random_state=0, n_items=20):
    rng = np.random.default_rng(random_state)
    yield list(range(n_items)), rng.gamma(0.3, size=(n_items, 30))
    for _ in range(n_stamps - 1):
        yield rng.choice(n_items, 3, replace=False).tolist(), rng.gamma(0.3, size=(3, 30))


@pytest.mark.parametrize("move", ["heat_bath", "metropolis"])
def test_exact_and_chain_draws_have_the_exact_inclusion_probabilities(move):
    exact = SeparateDPP("exact", n_draws=3000, kernel="exponential_cosine", random_state=0)
    chain = SeparateDPP("mcmc", n_draws=3000, kernel="exponential_cosine", random_state=0, move=move)
    for changed, features in topic_stream(3):
        for model in (exact, chain):
            model.update(changed, features)
            # Standard deviation 0.009, and up to 0.013 for subsets that are 80 moves apart: five of them.
            np.testing.assert_allclose(
                model.inclusion_probabilities(), model.inclusion_probabilities(exact=True), atol=0.07
            )
    np.testing.assert_allclose(
        exact.inclusion_probabilities(exact=True), chain.inclusion_probabilities(exact=True), atol=1e-12
    )
    assert np.isnan(exact.history_[-1].acceptance)
    assert 0.1 < chain.history_[-1].acceptance < 0.7


def test_one_long_chain_has_the_enumerated_law():
    features = np.random.default_rng(1).normal(size=(4, 4))
    kernel = 0.5 * features @ features.T
    subsets, _ = draw_by_moves(kernel, 20_000, np.random.default_rng(0), n_warmup=1000, thin=40)
    masks = np.array([sum(1 << int(i) for i in subset) for subset in subsets])
    counts = np.bincount(masks, minlength=16)
    weights = np.array(
        [np.linalg.det(kernel[np.ix_(x, x)]) for x in ([i for i in range(4) if m >> i & 1] for m in range(16))]
    )
    expected = 20_000 * weights / weights.sum()
    # Chi-square with 15 degrees of freedom: above 60 once in 5 million.
    assert (np.square(counts - expected) / expected)[expected > 5].sum() < 60


def test_subsets_follow_the_items_that_come_and_go():
    rng = np.random.default_rng(2)
    model = SeparateDPP(n_draws=50, random_state=0)
    model.update(list("abcd"), rng.normal(size=(4, 3)))
    for t in range(12):
        cloud = model.update([t], rng.normal(size=(1, 3)), leaving=["a"] if t == 3 else ())
    assert set(model.item_ids_) == {"b", "c", "d", *range(12)}
    assert all(set(subset) <= set(model.item_ids_) for subset in cloud.subsets)
    assert len(model.history_) == 13
    np.testing.assert_allclose(model.inclusion_probabilities(exact=True).sum(), model.expected_size_)
    twin = pickle.loads(pickle.dumps(model))
    new = rng.normal(size=(1, 3))
    assert model.update([0], new).subsets == twin.update([0], new).subsets


def test_an_interrupted_stamp_leaves_everything_as_it_was(monkeypatch):
    model = SeparateDPP(n_draws=20, random_state=0).partial_fit(np.eye(4))
    before, kernel = model.particles_, model._follower.kernel.copy()

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(tracking_draws.loops(), "settle", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(np.diag([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(model._follower.kernel, kernel)
    assert model.particles_ == before
    assert len(model.history_) == 1


def test_following_is_as_good_as_fresh_draws():
    models = [
        TimeVaryingDPP(100, kernel="exponential_cosine", random_state=0),
        SeparateDPP(n_draws=100, kernel="exponential_cosine", random_state=0),
    ]
    result = compare_streams(models, topic_stream(150))
    gap = result.log_probability[0] - result.log_probability[1]
    # The best of 100 varies by about 0.3 from stamp to stamp, with some memory: six standard errors are below 0.3.
    assert abs(gap.mean()) < 0.3
    assert result.inclusion_error[0].mean() < 1.4 * result.inclusion_error[1].mean()
    assert abs(np.nanmean(result.similarity[0]) - np.nanmean(result.similarity[1])) < 0.05
    assert (np.diff(result.seconds) > 0).all()
    assert np.isnan(result.overlap[:, 0]).all()
    assert ((result.overlap[:, 1:] >= 0) & (result.overlap[:, 1:] <= 1)).all()


def test_overlap_and_similarity_by_hand():
    assert jaccard_overlap([], []) == 1.0
    assert jaccard_overlap([1], [2]) == 0.0
    model = SeparateDPP(n_draws=5, random_state=0).partial_fit([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert inner_similarity(model, [0, 1]) == pytest.approx(0.5)
    assert inner_similarity(model, [0, 1, 2]) == pytest.approx(0.5 / 3)
    assert np.isnan(inner_similarity(model, [0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "method must be one of 'exact', 'mcmc', got 'magic'"),
        ({"move": "swap"}, "move must be one of 'heat_bath', 'metropolis', got 'swap'"),
        ({"n_warmup": -1}, "n_warmup must be an integer of at least 0, got -1"),
        ({"thin": 0}, "thin must be an integer of at least 1, got 0"),
        ({"n_draws": 0}, "n_draws must be an integer of at least 1, got 0"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        SeparateDPP(random_state=0, **settings).partial_fit(np.eye(3))
    with pytest.raises(ValueError, match="stream must have at least one time step"):
        compare_streams([SeparateDPP()], [])


def test_chains_leave_a_trace_and_exact_draws_none():
    features = np.random.default_rng(0).normal(size=(6, 4))
    model = SeparateDPP("mcmc", n_warmup=50, thin=5, n_draws=12, n_chains=2, random_state=0)
    model.update(range(6), features)
    assert {name: values.shape for name, values in model.trace_.draws.items()} == dict.fromkeys(
        ("log_det", "size", "items"), (2, 12)
    )
    assert model.trace_["size"].ravel().tolist() == [len(subset) for subset in model.particles_]
    assert len(model.weights_) == 24
    assert model.converged_
    exact = SeparateDPP(random_state=0)
    exact.update(range(6), features)
    assert not hasattr(exact, "trace_")
    with pytest.raises(AttributeError, match="has no draws"):
        exact.to_arviz()
