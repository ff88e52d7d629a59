"""Entropies of tables: the identities and bounds of information theory, on random tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy as scipy_entropy

from pluri.metrics import (
    bregman_divergence,
    conditional_entropy,
    conditional_mutual_information,
    cross_entropy,
    entropy,
    joint_entropy,
    js_divergence,
    kl_divergence,
    mutual_information,
    pointwise_mutual_information,
    varentropy,
)

seeds = st.integers(0, 2**32 - 1)


def table(seed, *shape):
    """A random table, with a few zeros."""
    rng = np.random.default_rng(seed)
    values = rng.gamma(0.7, size=shape) * (rng.random(shape) < 0.8)
    values.flat[rng.integers(values.size)] += 0.1
    return values / values.sum()


@given(seeds, st.integers(1, 8), st.sampled_from([np.e, 2, 10]))
def test_entropy_equals_scipy_and_keeps_its_bounds(seed, size, base):
    p = table(seed, size)
    assert entropy(p, base=base) == pytest.approx(scipy_entropy(p, base=base), abs=1e-12)
    assert -1e-15 <= entropy(p, base=base) <= np.log(size) / np.log(base) + 1e-12
    assert entropy(np.random.default_rng(seed).permutation(p)) == pytest.approx(entropy(p), abs=1e-12)


@given(seeds, st.floats(0, 1))
def test_entropy_is_concave_and_the_divergence_jointly_convex(seed, weight):
    p, q, r, s = (table(seed + i, 5) + 0.01 for i in range(4))
    p, q, r, s = (v / v.sum() for v in (p, q, r, s))
    mixed = weight * p + (1 - weight) * q
    assert entropy(mixed) >= weight * entropy(p) + (1 - weight) * entropy(q) - 1e-12
    bound = weight * kl_divergence(p, r) + (1 - weight) * kl_divergence(q, s)
    assert kl_divergence(mixed, weight * r + (1 - weight) * s) <= bound + 1e-12


def test_a_fair_coin_has_one_bit_and_no_coin_has_more():
    shares = np.linspace(0, 1, 101)
    bits = entropy(np.column_stack([shares, 1 - shares]), base=2)
    assert bits.argmax() == 50
    assert bits[50] == 1.0
    assert bits[0] == bits[-1] == 0.0


@given(seeds)
def test_the_chain_rules_hold(seed):
    p = table(seed, 3, 4, 2)
    xy, x, y, z = p.sum(axis=2), p.sum(axis=(1, 2)), p.sum(axis=(0, 2)), p.sum(axis=(0, 1))
    assert joint_entropy(xy) == pytest.approx(entropy(x) + conditional_entropy(xy, given=0), abs=1e-12)
    assert conditional_entropy(xy) == pytest.approx(joint_entropy(xy) - entropy(y), abs=1e-12)
    assert conditional_entropy(xy) <= entropy(x) + 1e-12
    assert conditional_entropy(p, given=(1, 2)) <= conditional_entropy(p.sum(axis=2), given=1) + 1e-12
    assert joint_entropy(p) <= entropy(x) + entropy(y) + entropy(z) + 1e-12
    # I(X; Y, Z) = I(X; Z) + I(X; Y | Z), and more variables never tell less.
    whole = mutual_information(p.reshape(3, 8))
    assert whole == pytest.approx(mutual_information(p.sum(axis=1)) + conditional_mutual_information(p), abs=1e-12)
    assert whole >= mutual_information(xy) - 1e-12


@given(seeds)
def test_mutual_information_agrees_with_each_of_its_definitions(seed):
    p = table(seed, 4, 3)
    x, y = p.sum(axis=1), p.sum(axis=0)
    information = mutual_information(p)
    assert information == pytest.approx(entropy(x) + entropy(y) - joint_entropy(p), abs=1e-12)
    assert information == pytest.approx(mutual_information(p.T), abs=1e-12)
    seen = x > 0
    per_row = kl_divergence(p[seen] / x[seen, None], np.broadcast_to(y, (seen.sum(), 3)))
    assert information == pytest.approx(x[seen] @ per_row, abs=1e-12)
    points = pointwise_mutual_information(p)
    assert information == pytest.approx((p[p > 0] * points[p > 0]).sum(), abs=1e-12)
    assert mutual_information(np.diag(x)) == pytest.approx(entropy(x), abs=1e-12)
    assert mutual_information(np.outer(x, y)) == pytest.approx(0, abs=1e-12)
    rng = np.random.default_rng(seed)
    assert mutual_information(p[rng.permutation(4)][:, rng.permutation(3)]) == pytest.approx(information, abs=1e-12)


@given(seeds)
def test_what_is_processed_tells_no_more(seed):
    rng = np.random.default_rng(seed)
    xy = table(seed, 4, 5)
    channel = rng.dirichlet(np.ones(3), size=5)
    assert mutual_information(xy @ channel) <= mutual_information(xy) + 1e-12
    # X - Y - Z is a chain: nothing is left of I(X; Z) once Y is known.
    xzy = (xy[:, :, None] * channel).transpose(0, 2, 1)
    assert conditional_mutual_information(xzy) == pytest.approx(0, abs=1e-12)


def test_a_sufficient_statistic_keeps_all_information():
    prior, n = np.array([0.3, 0.7]), 3
    bits = (np.arange(8)[:, None] >> np.arange(n)) & 1
    heads = np.array([[0.2], [0.6]])
    joint = prior[:, None] * np.prod(np.where(bits[None], heads[..., None], 1 - heads[..., None]), axis=2)
    sums = np.zeros((2, n + 1))
    for column, row in zip(joint.T, bits):
        sums[:, row.sum()] += column
    assert mutual_information(sums) == pytest.approx(mutual_information(joint), abs=1e-12)


@given(seeds)
def test_divergence_is_cross_entropy_minus_entropy(seed):
    p, q = table(seed, 6), np.random.default_rng(seed).dirichlet(np.ones(6))
    assert kl_divergence(p, q) == pytest.approx(cross_entropy(p, q) - entropy(p), abs=1e-12)
    assert kl_divergence(p, q) >= 0
    assert kl_divergence(p, p) == 0
    assert kl_divergence(p, np.full(6, 1 / 6)) == pytest.approx(np.log(6) - entropy(p), abs=1e-12)
    assert js_divergence(p, q) == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-12)
    assert js_divergence(p, q) <= np.log(2) + 1e-12
    positive = (p + 0.01) / (p + 0.01).sum()
    bregman = bregman_divergence(positive, q, lambda v: (v * np.log(v)).sum(), lambda v: np.log(v) + 1)
    assert bregman == pytest.approx(kl_divergence(positive, q), abs=1e-10)


def test_an_excluded_outcome_makes_the_divergence_infinite():
    assert kl_divergence([0.5, 0.5], [1, 0]) == np.inf
    assert cross_entropy([0.5, 0.5], [1, 0]) == np.inf
    assert kl_divergence([1, 0], [0.5, 0.5]) == pytest.approx(np.log(2))


def test_sequences_have_the_entropy_rate_and_spread_of_the_equipartition_property():
    # 4000 means of 50 symbols; each check is within 5.5 standard errors (false alarm 1e-7 altogether).
    p, n, runs = np.array([0.6, 0.3, 0.1]), 50, 4000
    symbols = np.random.default_rng(0).choice(3, p=p, size=(runs, n))
    rates = -np.log(p)[symbols].mean(axis=1)
    spread = np.sqrt(varentropy(p) / n)
    assert abs(rates.mean() - entropy(p)) < 5.5 * spread / np.sqrt(runs)
    assert abs(rates.std() - spread) < 5.5 * spread / np.sqrt(2 * runs) * 1.1
    assert varentropy(p, base=2) == pytest.approx(varentropy(p) / np.log(2) ** 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entropy([0.5, 0.6]), "p must sum to 1, got 1.1"),
        (lambda: entropy([]), "p must hold at least one probability"),
        (lambda: entropy([1.5, -0.5]), "p must hold finite probabilities of at least 0"),
        (lambda: entropy([np.nan, 1.0]), "p must hold finite probabilities"),
        (lambda: entropy([0.5, 0.5], base=1), "base must be a positive number other than 1"),
        (lambda: kl_divergence([0.5, 0.5], [0.2, 0.3, 0.5]), "p and q must have equal last axes"),
        (lambda: mutual_information([0.5, 0.5]), "p_xy must have 2 axes"),
        (lambda: conditional_entropy([[0.5, 0.5]], given=2), "given must name axes of p"),
        (lambda: bregman_divergence([1.0], [1.0, 2.0], np.sum, np.ones_like), "x and y must have equal shapes"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
