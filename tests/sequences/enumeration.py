"""Everything about a small chain by looking at every path, and densities from scipy.stats: the other way to compute.

Nothing here calls the library's numerical code; a model is only built and its parameters are set by hand.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from pluri.sequences import GMMHMM, BernoulliHMM, CategoricalHMM, GaussianHMM, MultinomialHMM, PoissonHMM

COVARIANCE_TYPES = ("spherical", "diag", "full", "tied")
FAMILIES = (
    *(f"gaussian-{kind}" for kind in COVARIANCE_TYPES),
    *(f"gmm-{kind}" for kind in COVARIANCE_TYPES),
    "categorical",
    "categorical-columns",
    "bernoulli",
    "poisson",
    "multinomial",
)


@dataclass(frozen=True)
class Enumerated:
    """What a chain says of one sequence.

    paths (k^T, T) and log_joint (k^T,), best first; posterior and filtered (T, k); pairs (T - 1, k, k).
    """

    log_likelihood: float
    paths: np.ndarray
    log_joint: np.ndarray
    posterior: np.ndarray
    filtered: np.ndarray
    pairs: np.ndarray


def all_paths(n_states, n_samples):
    return np.array(list(product(range(n_states), repeat=n_samples)), dtype=int).reshape(-1, n_samples)


def log_joint_of(start, transition, log_density, paths):
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(start), np.log(transition)
    total = log_start[paths[:, 0]] + log_density[0, paths[:, 0]]
    for t in range(1, paths.shape[1]):
        total = total + log_transition[paths[:, t - 1], paths[:, t]] + log_density[t, paths[:, t]]
    return total


def enumerate_paths(start, transition, log_density):
    """Sum, sort and count the paths of one sequence with log densities (T, k)."""
    n_samples, k = log_density.shape
    paths = all_paths(k, n_samples)
    log_joint = log_joint_of(start, transition, log_density, paths)
    log_likelihood = logsumexp(log_joint)
    probability = np.exp(log_joint - log_likelihood)
    posterior, filtered = np.zeros((n_samples, k)), np.zeros((n_samples, k))
    pairs = np.zeros((max(n_samples - 1, 0), k, k))
    for t in range(n_samples):
        np.add.at(posterior[t], paths[:, t], probability)
        prefixes = all_paths(k, t + 1)
        prefix_joint = log_joint_of(start, transition, log_density[: t + 1], prefixes)
        np.add.at(filtered[t], prefixes[:, -1], np.exp(prefix_joint - logsumexp(prefix_joint)))
        if t:
            np.add.at(pairs[t - 1], (paths[:, t - 1], paths[:, t]), probability)
    order = np.argsort(-log_joint, kind="stable")
    return Enumerated(float(log_likelihood), paths[order], log_joint[order], posterior, filtered, pairs)


@dataclass(frozen=True)
class Case:
    """A model with parameters set by hand, observations, and a density that scipy computes."""

    model: object
    X: np.ndarray
    log_density: object

    def enumerate(self, X=None, labels=None):
        X = self.X if X is None else X
        density = self.log_density(X)
        if labels is not None:
            for t, label in enumerate(labels):
                if label >= 0:
                    density[t, np.arange(density.shape[1]) != label] = -np.inf
        return enumerate_paths(self.model.startprob_, self.model.transmat_, density)


def random_chain(rng, k, zeros=False):
    start, transition = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    if zeros:
        start[0] = 0.0
        transition[np.arange(k), (np.arange(k) + 1) % k] = 0.0
        start, transition = start / start.sum(), transition / transition.sum(axis=1, keepdims=True)
    return start, transition


def random_covariance(rng, n_features):
    root = rng.normal(size=(n_features, n_features + 2))
    return root @ root.T / n_features + 0.2 * np.eye(n_features)


def make_case(family, *, k=3, n_samples=5, n_features=3, zeros=False, seed=0, missing=None, **options):
    """A `Case` of the family; `missing` is None, "features" (some values of some rows) or "rows" (whole rows)."""
    rng = np.random.default_rng(seed)
    kind, _, variant = family.partition("-")
    model, X, log_density = MAKERS[kind](rng, variant, k, n_samples, n_features, options)
    model.startprob_, model.transmat_ = random_chain(rng, k, zeros)
    if missing is not None:
        X = X.astype(float)
        if missing == "features":
            X[rng.random(X.shape) < 0.4] = np.nan
            X[0, 0] = np.nan
        X[rng.integers(n_samples)] = np.nan
    return Case(model, X, log_density)


def _gaussian_log_density(X, means, covariances):
    out = np.zeros((len(X), len(means)))
    for t, x in enumerate(X):
        seen = ~np.isnan(x)
        if seen.any():
            for i, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
                out[t, i] = stats.multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x[seen])
    return out


def _covariances(rng, variant, n, n_features):
    """In the shape of the type, and as full matrices."""
    if variant == "spherical":
        shaped = rng.uniform(0.3, 2.0, size=n)
        return shaped, shaped[:, None, None] * np.eye(n_features)
    if variant == "diag":
        shaped = rng.uniform(0.3, 2.0, size=(n, n_features))
        return shaped, np.array([np.diag(row) for row in shaped])
    if variant == "full":
        shaped = np.array([random_covariance(rng, n_features) for _ in range(n)])
        return shaped, shaped
    shaped = random_covariance(rng, n_features)
    return shaped, np.array([shaped] * n)


def _make_gaussian(rng, variant, k, n_samples, n_features, options):
    model = GaussianHMM(k, covariance_type=variant, **options)
    means = rng.normal(scale=1.5, size=(k, n_features))
    shaped, full = _covariances(rng, variant, k, n_features)
    model.means_, model.covars_ = means, shaped
    X = rng.normal(scale=1.5, size=(n_samples, n_features))
    return model, X, lambda X: _gaussian_log_density(X, means, full)


def _make_gmm(rng, variant, k, n_samples, n_features, options):
    n_mix = 2
    model = GMMHMM(k, n_mix, covariance_type=variant, **options)
    weights = rng.dirichlet(np.ones(n_mix), size=k)
    means = rng.normal(scale=1.5, size=(k, n_mix, n_features))
    if variant == "tied":
        shaped = np.array([random_covariance(rng, n_features) for _ in range(k)])
        full = np.repeat(shaped[:, None], n_mix, axis=1)
    else:
        flat, flat_full = _covariances(rng, variant, k * n_mix, n_features)
        shaped = flat.reshape(k, n_mix, *flat.shape[1:])
        full = flat_full.reshape(k, n_mix, n_features, n_features)
    model.weights_, model.means_, model.covars_ = weights, means, shaped
    X = rng.normal(scale=1.5, size=(n_samples, n_features))

    def log_density(X):
        parts = [np.log(weights[i]) + _gaussian_log_density(X, means[i], full[i]) for i in range(k)]
        return np.stack([logsumexp(part, axis=1) for part in parts], axis=1)

    return model, X, log_density


def _make_categorical(rng, variant, k, n_samples, n_features, options):
    sizes = [4, 3] if variant == "columns" else [4]
    tables = [rng.dirichlet(np.ones(size), size=k) for size in sizes]
    model = CategoricalHMM(k, **options)
    model.emissionprob_ = tables if variant == "columns" else tables[0]
    X = np.stack([rng.integers(size, size=n_samples) for size in sizes], axis=1)

    def log_density(X):
        out = np.zeros((len(X), k))
        for f, table in enumerate(tables):
            for t, x in enumerate(X[:, f]):
                if not np.isnan(x):
                    out[t] += np.log(table[:, int(x)])
        return out

    return model, X, log_density


def _make_bernoulli(rng, variant, k, n_samples, n_features, options):
    model = BernoulliHMM(k, **options)
    model.probs_ = probs = rng.uniform(0.05, 0.95, size=(k, n_features))
    X = rng.integers(2, size=(n_samples, n_features))
    return model, X, lambda X: _by_feature(X, lambda x, i, d: stats.bernoulli(probs[i, d]).logpmf(x), k)


def _make_poisson(rng, variant, k, n_samples, n_features, options):
    model = PoissonHMM(k, **options)
    model.lambdas_ = rates = rng.uniform(0.5, 6.0, size=(k, n_features))
    X = rng.poisson(3.0, size=(n_samples, n_features))
    return model, X, lambda X: _by_feature(X, lambda x, i, d: stats.poisson(rates[i, d]).logpmf(x), k)


def _by_feature(X, log_mass, k):
    out = np.zeros((len(X), k))
    for t, x in enumerate(X):
        for d, value in enumerate(x):
            if not np.isnan(value):
                out[t] += [log_mass(value, i, d) for i in range(k)]
    return out


def _make_multinomial(rng, variant, k, n_samples, n_features, options):
    model = MultinomialHMM(k, **options)
    model.emissionprob_ = table = rng.dirichlet(np.ones(n_features), size=k)
    X = np.array([rng.multinomial(trials, table[0]) for trials in rng.integers(1, 8, size=n_samples)])

    def log_density(X):
        out = np.zeros((len(X), k))
        for t, x in enumerate(X):
            if not np.isnan(x).any():
                out[t] = [stats.multinomial(int(x.sum()), row).logpmf(x) for row in table]
        return out

    return model, X, log_density


MAKERS = {
    "gaussian": _make_gaussian,
    "gmm": _make_gmm,
    "categorical": _make_categorical,
    "bernoulli": _make_bernoulli,
    "poisson": _make_poisson,
    "multinomial": _make_multinomial,
}
