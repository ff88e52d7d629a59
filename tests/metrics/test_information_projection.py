"""Projections: optimal among random members, the Pythagorean law, and an answer when there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from pluri.metrics import i_projection, kl_divergence, m_projection

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_the_pythagorean_law_is_an_equality_for_linear_families(seed):
    rng = np.random.default_rng(seed)
    p, member = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(7))
    features = rng.normal(size=(7, 3))
    found = i_projection(p, features, member @ features)
    assert found.distribution @ features == pytest.approx(member @ features, abs=1e-9)
    assert found.distribution.sum() == pytest.approx(1, abs=1e-12)
    through = kl_divergence(member, found.distribution) + found.divergence
    assert kl_divergence(member, p) == pytest.approx(through, abs=1e-8, rel=1e-8)
    tilted = p * np.exp(features @ found.multipliers)
    assert found.distribution == pytest.approx(tilted / tilted.sum(), abs=1e-10)


@given(seeds)
def test_the_pythagorean_law_is_an_inequality_for_convex_sets(seed):
    # The projection on the half-space {q : q f >= c}, which lies on its face if p is outside.
    rng = np.random.default_rng(seed)
    p, member, f = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)), rng.normal(size=5)
    target = float(0.5 * (p @ f + member @ f)) if member @ f > p @ f else float(p @ f)
    if member @ f <= p @ f:
        return
    found = i_projection(p, f, target)
    assert kl_divergence(member, p) >= kl_divergence(member, found.distribution) + found.divergence - 1e-9


def test_a_general_optimiser_finds_the_same_projection():
    rng = np.random.default_rng(0)
    p, features = rng.dirichlet(np.ones(5)), rng.normal(size=(5, 2))
    targets = rng.dirichlet(np.ones(5)) @ features
    result = minimize(
        lambda q: np.sum(q * np.log(np.maximum(q, 1e-300) / p)),
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(1e-12, 1)] * 5,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "eq", "fun": lambda q: q @ features - targets},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert i_projection(p, features, targets).distribution == pytest.approx(result.x, abs=1e-5)


@given(seeds)
def test_the_m_projection_is_nearest_in_its_family_and_matches_the_means(seed):
    rng = np.random.default_rng(seed)
    p, reference, features = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6)), rng.normal(size=(6, 2))
    found = m_projection(p, features, reference=reference)
    assert found.distribution @ features == pytest.approx(p @ features, abs=1e-9)
    for _ in range(5):
        other = reference * np.exp(features @ (found.multipliers + rng.normal(size=2)))
        other /= other.sum()
        assert kl_divergence(p, other) >= found.divergence - 1e-12
        # The law of Pythagoras on the other side: KL(p || other) = KL(p || found) + KL(found || other).
        total = found.divergence + kl_divergence(found.distribution, other)
        assert kl_divergence(p, other) == pytest.approx(total, abs=1e-8, rel=1e-8)


def test_on_the_independent_family_the_m_projection_is_the_product_of_margins():
    table = np.random.default_rng(1).dirichlet(np.ones(6)).reshape(2, 3)
    features = np.array([[i == 1, j == 1, j == 2] for i in range(2) for j in range(3)], dtype=float)
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    assert m_projection(table.ravel(), features).distribution == pytest.approx(product.ravel(), abs=1e-10)


def test_means_on_the_edge_and_redundant_features_are_met():
    p = np.full(4, 0.25)
    edge = i_projection(p, [0.0, 1.0, 2.0, 3.0], 3.0)
    assert edge.distribution == pytest.approx([0, 0, 0, 1], abs=1e-9)
    assert edge.divergence == pytest.approx(np.log(4), abs=1e-8)
    f = np.arange(4.0)
    twice = i_projection(p, np.column_stack([f, 2 * f, np.ones(4)]), [2.0, 4.0, 1.0])
    assert twice.distribution == pytest.approx(i_projection(p, f, 2.0).distribution, abs=1e-9)
    kept = i_projection([0.5, 0.5, 0.0, 0.0], f, 0.25)
    assert kept.distribution == pytest.approx([0.75, 0.25, 0, 0], abs=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: i_projection([0.5, 0.5], [0.0, 1.0], 1.5), "targets must be means of the features"),
        (lambda: i_projection([0.5, 0.5, 0.0], [0.0, 1.0, 2.0], 1.5), "targets must be means of the features"),
        (lambda: i_projection([0.5, 0.5], [[0, 0], [1, 1]], [0.5, 0.6]), "targets must be means of the features"),
        (lambda: i_projection([0.5, 0.5], [0.0, 1.0, 2.0], 1.0), "features must have shape"),
        (lambda: i_projection([0.5, 0.5], [0.0, np.inf], 1.0), "features must be finite"),
        (lambda: i_projection([0.5, 0.5], [0.0, 1.0], [0.5, 0.5]), "targets must hold 1 finite"),
        (lambda: m_projection([0.5, 0.5], [0.0, 1.0], reference=[1.0, 0.0]), "reference must allow every outcome"),
        (lambda: m_projection([0.5, 0.5], [0.0, 1.0], reference=[1.0]), "reference must have the shape of p"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
