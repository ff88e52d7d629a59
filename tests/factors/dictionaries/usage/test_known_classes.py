"""Classes of codes: found again, their densities and covariances, and which measured rows are likely to be of them."""

import numpy as np
from scipy.stats import bernoulli, multivariate_normal, norm

from pluri.factors.dictionaries.sensing.likely_classes import likely_classes, log_densities
from pluri.factors.dictionaries.sensing.measurements import Measurements, prepare_measurements
from pluri.factors.dictionaries.usage.code_classes import CodeClasses, find_classes, log_density
from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage
from pluri.factors.dictionaries.usage.known_classes import KnownDirichlet

USAGE = np.array([[0.9, 0.8, 0.1, 0.1, 0.3], [0.9, 0.7, 0.2, 0.1, 0.3], [0.1, 0.1, 0.8, 0.9, 0.5]])
VARIANCES = np.array([[4.0, 9.0, 4.0, 4.0, 4.0], [0.04, 0.09, 0.04, 0.04, 0.04], [1.0, 1.0, 2.0, 3.0, 1.0]])
CLASSES = CodeClasses(np.array([0.5, 0.3, 0.2]), USAGE, VARIANCES, 0.01)


def codes_of(rng, n_rows):
    labels = rng.choice(3, size=n_rows, p=CLASSES.shares)
    used = (rng.random((n_rows, 5)) < USAGE[labels]).astype(np.int8)
    return labels, used, used * rng.normal(size=used.shape) * np.sqrt(VARIANCES[labels])


def test_densities_of_codes_are_those_of_their_parts():
    _, used, weights = codes_of(np.random.default_rng(0), 20)
    found = log_density(used.astype(float), weights**2, USAGE, VARIANCES)
    for l in range(3):
        exact = bernoulli.logpmf(used, USAGE[l]).sum(axis=1)
        exact += np.where(used == 1, norm.logpdf(weights, scale=np.sqrt(VARIANCES[l])), 0.0).sum(axis=1)
        # The constant of normal densities is left out, once for each atom in use.
        np.testing.assert_allclose(found[:, l] - 0.5 * np.log(2 * np.pi) * used.sum(axis=1), exact, rtol=1e-10)


def test_classes_are_found_though_two_of_them_differ_in_the_sizes_of_weights_alone():
    """Of 4,000 rows; probabilities of 800 have a standard error of .018, and a row in fifty has no atom to tell by."""
    _, used, weights = codes_of(np.random.default_rng(1), 4000)
    found = find_classes(np.random.default_rng(0), used, weights, np.ones(5), 3, 0.01)
    np.testing.assert_allclose(found.shares, CLASSES.shares, atol=0.05)
    np.testing.assert_allclose(found.usage, USAGE, atol=0.12)
    frequent = USAGE > 0.5
    assert np.abs(np.log(found.variances[frequent] / VARIANCES[frequent])).max() < 0.4


def test_one_class_and_codes_without_any_atom_are_no_special_cases():
    _, used, weights = codes_of(np.random.default_rng(2), 500)
    found = find_classes(np.random.default_rng(0), used, weights, np.ones(5), 1, 0.01)
    assert found.shares.tolist() == [1.0]
    np.testing.assert_allclose(found.usage[0], used.mean(axis=0), atol=0.01)
    nothing = find_classes(np.random.default_rng(0), np.zeros_like(used), np.zeros(used.shape), np.ones(5), 3, 0.01)
    assert nothing.usage.shape == (1, 5)
    assert np.isfinite(nothing.variances).all()
    assert 0 < nothing.usage.min() <= nothing.usage.max() < 0.01
    few = find_classes(np.random.default_rng(0), used[:2], weights[:2], np.ones(5), 20, 0.01)
    assert len(few.shares) <= 2


def test_covariances_are_those_of_drawn_rows_and_pooling_keeps_their_mean():
    rng = np.random.default_rng(3)
    atoms = rng.normal(size=(5, 3))
    covariances = CLASSES.covariances(atoms)
    for l in range(3):
        used = rng.random((200_000, 5)) < USAGE[l]
        rows = (used * rng.normal(size=used.shape) * np.sqrt(VARIANCES[l])) @ atoms
        # Standard errors are below 0.6 % of the largest entry (kurtosis of a sum of spikes included): eight of these.
        np.testing.assert_allclose(np.cov(rows.T), covariances[l], atol=0.05 * covariances[l].max())
    pooled = CLASSES.pooled().covariances(atoms)[0]
    np.testing.assert_allclose(pooled, np.tensordot(CLASSES.shares, covariances, 1))


def test_densities_of_measurements_are_those_of_normal_distributions():
    rng = np.random.default_rng(4)
    covariances = CLASSES.covariances(rng.normal(size=(5, 4)))
    for projections in (rng.normal(size=(2, 4)), rng.normal(size=(6, 2, 4))):
        data = Measurements(rng.normal(size=(6, 2)), projections)
        found = log_densities(data, covariances, 0.3)
        for i in range(6):
            S = projections if projections.ndim == 2 else projections[i]
            for l in range(3):
                exact = multivariate_normal.logpdf(data.values[i], cov=S @ covariances[l] @ S.T + 0.3 * np.eye(2))
                np.testing.assert_allclose(found[i, l] - np.log(2 * np.pi), exact)


def test_rows_of_another_unit_begin_in_their_classes():
    rng = np.random.default_rng(5)
    atoms = rng.normal(size=(5, 8))
    labels, _, weights = codes_of(rng, 400)
    S = rng.normal(size=(400, 6, 8))
    Y = 1000 * np.einsum("inp,ip->in", S, weights @ atoms)
    data = prepare_measurements(Y, S, n_features=8, noise_model="measurement", center=None)
    found, noise, precision = likely_classes(rng, data, atoms, CLASSES)
    assert (found == labels).mean() > 0.75  # the largest class alone has half of the rows
    # Variances are 1e6 times those of the classes in the units of the rows; their power is a mean over 400 rows.
    assert 0.7 < 1e6 / data.scale**2 * precision < 1.4
    np.testing.assert_allclose(noise * CLASSES.noise_variance, precision)


def test_a_state_of_known_classes_has_the_density_of_its_parts():
    rng = np.random.default_rng(6)
    prior = KnownDirichlet(CLASSES, DirichletProcessUsage(30, 5, n_clusters=3))
    state, used = prior.sample(30, rng)
    sticks = DirichletProcessUsage(30, 5, n_clusters=3)
    clusters = sticks.log_density_of_clusters(state.labels, state.log_weights, state.log_rest, state.concentration)
    exact = bernoulli.logpmf(used, USAGE[state.labels]).sum() + clusters
    np.testing.assert_allclose(prior.log_joint(state, used), exact)
    log_odds, group = prior.log_odds(prior.resample(state, used, rng, used * 1.0))
    np.testing.assert_allclose(log_odds, np.log(USAGE / (1 - USAGE)))
    assert group.shape == (30,)
