"""Codes in a known dictionary: updates against inverted matrices, the bound against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from published_updates import Published, expected_error, sweep
from scipy.special import betaln, logsumexp
from scipy.stats import multivariate_normal

from pluri.factors.dictionaries.variational import recover_codes
from pluri.factors.dictionaries.variational._measured_kernels import Room, sweep_codes
from pluri.factors.dictionaries.variational.clustered_usage import ClusteredUsage
from pluri.factors.dictionaries.variational.known_dictionary import KnownDictionary
from pluri.factors.dictionaries.variational.recovery import checked_measurements, first_usage
from pluri.inference.variational import coordinate_ascent
from pluri.priors.hyperpriors import Hyperparameter

FIXED = {"noise_precision": Hyperparameter(4.0), "weight_precision": Hyperparameter(0.7)}


def problem(seed, n_rows=20, n=6, K=9, own=False, noise=0.1):
    """Measurements of sparse rows."""
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(n_rows, K)) * (rng.random((n_rows, K)) < 0.25)
    atoms = rng.normal(size=(n_rows if own else 1, n, K))
    seen = np.einsum("ink,ik->in", np.broadcast_to(atoms, (n_rows, n, K)), codes)
    return checked_measurements(seen + noise * rng.normal(size=seen.shape), atoms if own else atoms[0], None)


@pytest.mark.parametrize("own", [False, True])
def test_the_compiled_update_equals_inverted_matrices_and_errors_equal_enumeration(own):
    data = problem(1, n_rows=5, n=3, K=5, own=own)
    model = KnownDictionary(ClusteredUsage(2.0), **FIXED)
    q = model.initialize(data, np.random.default_rng(2))
    codes = type(q.codes)(*(part.copy() for part in q.codes))
    odds = np.random.default_rng(3).normal(size=(5, 5))
    sweep_codes(data.measured, odds, np.full(5, 4.0), 0.7, codes, Room.of(3, 5))
    for i, y in enumerate(data.measured.values):
        atoms = data.measured.atoms[i if own else 0]
        t, mean, S = sweep(y, atoms, q.codes.used[i], odds[i], 4.0, 0.7)
        np.testing.assert_allclose(codes.used[i], t, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(codes.mean[i], mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(codes.variance[i], S.diagonal(), rtol=1e-9)
        np.testing.assert_allclose(codes.log_det[i], np.linalg.slogdet(S)[1], rtol=1e-9)
        np.testing.assert_allclose(codes.misfit[i], expected_error(y, atoms, t, mean, S), rtol=1e-9)


@pytest.mark.parametrize("n_clusters", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_no_block_lowers_the_bound(seed, n_clusters):
    data = problem(seed, own=seed % 2 == 1)
    model = KnownDictionary(ClusteredUsage(3.0, 1.0, n_clusters))
    rng = np.random.default_rng(100 + seed)
    start = model.start(data, rng.uniform(0.05, 0.95, (20, 9)), rng.dirichlet(np.ones(n_clusters), size=20))
    result = coordinate_ascent(model, data, rng=rng, start=start, max_iter=60, tol=-1.0, strict=True)
    assert (np.diff(result.trace) >= -1e-8 * np.abs(result.trace[1:])).all()
    assert result.elbo > result.trace[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_published_update_of_usage_lowers_the_bound_at_its_maximum(seed):
    """Without the covariance of the weights the update is no ascent: one sweep from the maximum loses many nats.

    On eight seeds it lost 13 to 113. Where it ends from elsewhere depends on the start, and may be higher or lower.
    """
    _, values, projection, _ = clustered_problem(seed, n_rows=60, n=12, P=32, K=24)
    data = checked_measurements(values, projection, None)
    right, wrong = (Published(ClusteredUsage(12.0), with_covariance=covariance) for covariance in (True, False))
    start = right.start(data, first_usage(data))
    best = coordinate_ascent(right, data, rng=np.random.default_rng(0), start=start, max_iter=40, tol=1e-6)
    assert wrong.elbo(wrong.update_codes(best.params, data), data) < best.elbo - 1.0
    assert right.elbo(right.update_codes(best.params, data), data) >= best.elbo - 1e-8 * abs(best.elbo)


@pytest.mark.thorough  # test_the_published_update_of_usage_lowers_the_bound_at_its_maximum guards the same term
def test_the_published_update_of_usage_recovers_rows_less_well():
    """Errors on three seeds were 0.130, 0.064 and 0.123 with it, and 0.100, 0.051 and 0.101 with the right one."""
    errors = {True: [], False: []}
    for seed in range(2):
        X, values, projection, atoms = clustered_problem(seed)
        data = checked_measurements(values, projection, None)
        for covariance, found in errors.items():
            model = Published(ClusteredUsage(25.0), with_covariance=covariance)
            start = model.start(data, first_usage(data))
            rng = np.random.default_rng(0)
            q = coordinate_ascent(model, data, rng=rng, start=start, max_iter=25, tol=-1.0, may_fall=True).params
            found.append(np.linalg.norm((q.codes.used * q.codes.mean) @ atoms - X) / np.linalg.norm(X))
    assert np.mean(errors[False]) > np.mean(errors[True])


def log_evidence(y, atoms, usage, g, h):
    """log p(y) by the sum over all z and clusters of the rows, with fixed precisions and concentration."""
    n_rows, K = len(y), atoms.shape[1]
    densities = {}
    for z in itertools.product((0, 1), repeat=K):
        seen = atoms * np.array(z)
        covariance = seen @ seen.T / h + np.eye(len(atoms)) / g
        densities[z] = [multivariate_normal(np.zeros(len(atoms)), covariance).logpdf(row) for row in y]
    first, second, alpha = usage.a / K, usage.b * (K - 1) / K, usage.concentration.value
    terms = []
    for labels in itertools.product(range(usage.n_clusters), repeat=n_rows):
        sizes = np.bincount(labels, minlength=usage.n_clusters)
        beyond = sizes[::-1].cumsum()[::-1][1:]
        of_labels = sum(betaln(1 + m, alpha + b) - betaln(1, alpha) for m, b in zip(sizes, beyond, strict=False))
        for codes in itertools.product(densities, repeat=n_rows):
            total = of_labels + sum(densities[z][i] for i, z in enumerate(codes))
            for cluster in range(usage.n_clusters):
                on = np.sum([z for z, label in zip(codes, labels, strict=True) if label == cluster], axis=0) * np.ones(
                    K
                )
                total += (betaln(first + on, second + sizes[cluster] - on) - betaln(first, second)).sum()
            terms.append(total)
    return float(logsumexp(terms))


@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_below_the_log_evidence(seed, n_clusters):
    data = problem(seed, n_rows=2, n=2, K=3)
    usage = ClusteredUsage(2.0, 1.0, n_clusters, Hyperparameter(1.3))
    model = KnownDictionary(usage, **FIXED)
    exact = log_evidence(data.measured.values, data.measured.atoms[0], usage, 4.0, 0.7)
    result = coordinate_ascent(model, data, rng=np.random.default_rng(seed), n_init=5, tol=1e-10)
    assert result.elbo < exact
    assert result.elbo > exact - 4.0  # a constant that was forgotten would be seen


def test_probabilities_are_near_enumeration_where_one_combination_dominates():
    """One row, three atoms, two measurements; cases whose best combination has a probability above 0.9.

    Among 100 draws there were 25 such cases, and in 24 of them all atoms were within 0.1. Of the 15 or so cases looked
    at 80 % are asked for: four failures or more have a probability below 0.3 % at that rate.
    """
    near = []
    for seed in range(60):
        data = problem(seed, n_rows=1, n=2, K=3, noise=0.05)
        y, atoms = data.measured.values[0], data.measured.atoms[0]
        usage, g, h = ClusteredUsage(1.0), 400.0, 1.0
        model = KnownDictionary(usage, Hyperparameter(g), Hyperparameter(h))
        combinations = list(itertools.product((0, 1), repeat=3))
        odds = math.log(usage.a / (usage.b * 2))
        logs = []
        for z in combinations:
            seen = atoms * np.array(z)
            density = multivariate_normal(np.zeros(2), seen @ seen.T / h + np.eye(2) / g).logpdf(y)
            logs.append(density + odds * sum(z))
        p = np.exp(np.array(logs) - logsumexp(logs))
        if p.max() < 0.9:
            continue
        exact = p @ np.array(combinations)
        result = coordinate_ascent(model, data, rng=np.random.default_rng(seed), n_init=4, tol=1e-7, max_iter=100)
        near.append(np.abs(result.params.codes.used[0] - exact).max() < 0.1)
    assert len(near) >= 5
    assert np.mean(near) >= 0.8


def test_standard_deviations_equal_moments_by_enumeration():
    data = problem(5, n_rows=3, n=3, K=4)
    found = recover_codes(
        data.measured.values, data.measured.atoms[0], a=2.0, noise_prior=5.0, weight_prior=1.0, max_iter=500, tol=1e-15
    )
    components = np.random.default_rng(6).normal(size=(4, 5))
    signals, std = found.reconstruct(components, return_std=True)
    g, h = 1 / found.noise_variance[0], 1 / found.weight_variance
    for i, y in enumerate(data.measured.values):
        t = found.used[i]
        _, mean, S = sweep(y, data.measured.atoms[0], t, np.zeros(4), g, h)
        first, second = np.zeros(5), np.zeros(5)
        for z in itertools.product((0, 1), repeat=4):
            p = np.prod(np.where(z, t, 1 - t))
            use = np.array(z)[:, None] * components
            first += p * (mean @ use)
            second += p * ((mean @ use) ** 2 + np.einsum("kp,kl,lp->p", use, S, use))
        np.testing.assert_allclose(signals[i], first, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(std[i], np.sqrt(second - first**2), rtol=1e-4, atol=1e-7)


def clustered_problem(seed, n_rows=200, n=25, P=64, K=40):
    """Three clusters of rows, each with six atoms of its own."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(K, P)) / math.sqrt(P)
    p = np.full((3, K), 0.005)
    for row in p:
        row[rng.choice(K, 6, replace=False)] = 0.7
    codes = rng.normal(size=(n_rows, K)) * (rng.random((n_rows, K)) < p[rng.integers(3, size=n_rows)])
    projection = rng.normal(size=(n, P))
    X = codes @ atoms
    return X, X @ projection.T + rng.normal(size=(n_rows, n)) / 20, projection @ atoms.T, atoms


def test_rows_are_recovered_from_fewer_measurements_and_their_clusters_found():
    """Targets: an error of 0.085 to 0.094 and three or four clusters, of a prototype on three seeds.

    Ours over eight seeds: a mean of 0.077, and 3.9 clusters on average. The mean over three is asked to be below
    0.12, and the bound with clusters to be above that without for two of three.
    """
    errors, gains, numbers = [], [], []
    for seed in range(3):
        X, values, projection, atoms = clustered_problem(seed)
        found = recover_codes(values, projection, n_clusters=20, a=25.0, random_state=seed, max_iter=60)
        alone = recover_codes(values, projection, a=25.0, max_iter=60)
        errors.append(np.linalg.norm(found.reconstruct(atoms) - X) / np.linalg.norm(X))
        gains.append(found.trace[-1] - alone.trace[-1])
        numbers.append(len(np.unique(found.labels)))
    assert np.mean(errors) < 0.12
    assert np.sum(np.array(gains) > 0) >= 2
    assert all(2 <= number <= 8 for number in numbers)


def test_one_projection_for_each_row_may_be_the_same():
    data = problem(3)
    values, atoms = data.measured.values, data.measured.atoms[0]
    one = recover_codes(values, atoms, max_iter=20)
    each = recover_codes(values, np.repeat(atoms[None], len(values), axis=0), max_iter=20)
    np.testing.assert_allclose(one.codes, each.codes, rtol=1e-10, atol=1e-12)


def test_groups_of_rows_have_their_own_noise():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(300, 12)) * (rng.random((300, 12)) < 0.2)
    atoms, groups = rng.normal(size=(20, 12)), np.repeat(["a", "b"], 150)
    sd = np.where(groups == "a", 0.1, 0.5)
    values = codes @ atoms.T + sd[:, None] * rng.normal(size=(300, 20))
    found = recover_codes(values, atoms, noise_groups=groups)
    # Twice 3,000 values: a standard error of 1.3 %.
    np.testing.assert_allclose(np.sqrt(found.noise_variance), [0.1, 0.5], rtol=0.2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"values": np.zeros(3)}, "values must have shape"),
        ({"projection": np.zeros((4, 5))}, r"projection must have shape \(3, n_components\)"),
        ({"projection": np.zeros((2, 3, 5))}, r"or \(4, 3, n_components\)"),
        ({"values": np.full((4, 3), np.nan)}, "values must be finite"),
        ({"a": 0.0}, "a must be"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"noise_groups": [0, 1]}, r"noise_groups must have shape \(4,\)"),
        ({"noise_prior": -1.0}, "noise_prior must be"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, sentence):
    arguments = {"values": np.ones((4, 3)), "projection": np.ones((3, 5))} | change
    with pytest.raises(ValueError, match=sentence):
        recover_codes(arguments.pop("values"), arguments.pop("projection"), **arguments)


def test_rows_of_zeros_are_left_alone():
    found = recover_codes(np.zeros((5, 3)), np.ones((3, 4)), max_iter=30)
    np.testing.assert_allclose(found.codes, 0.0, atol=1e-8)
