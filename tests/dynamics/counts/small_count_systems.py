"""Small systems and their counts, for the tests beside this file."""

from itertools import pairwise

import numpy as np
from scipy.special import gammaln

from pluri.dynamics.counts.count_model import CountModel, hermite_nodes
from pluri.dynamics.counts.poisson_model import PoissonModel
from pluri.dynamics.counts.records import CountObservation, PoissonObservation, StateModel, SystemParameters


def state_model(p=2, seed=0, drift=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(p, p))
    A *= 0.8 / np.abs(np.linalg.eigvals(A)).max()
    Q, Q1 = (np.eye(p) * 0.3 + 0.1 * (one @ one.T) for one in rng.normal(size=(2, p, p)))
    return StateModel(A, Q, 0.3 * rng.normal(size=p), Q1, 0.2 * rng.normal(size=(max(drift - 1, 0), p)))


def count_system(n_neurons=4, K=5, p=2, seed=0, bend=-0.2, kind="full", nodes=15):
    """Parameters and model of generalized counts; `nodes` None is Jensen's bound."""
    rng = np.random.default_rng(seed + 100)
    k = np.arange(K + 1)
    g = rng.uniform(-0.3, 0.6, n_neurons)[:, None] * k + bend * k * (k - 1) / 2
    observation = CountObservation(0.6 * rng.normal(size=(n_neurons, p)), g)
    model = CountModel(
        kind, None if nodes is None else hermite_nodes(nodes), np.ones(g.shape, dtype=bool), np.full(n_neurons, 0.05)
    )
    return SystemParameters(state_model(p, seed), observation, 10), model


def poisson_system(n_neurons=4, p=2, seed=0):
    rng = np.random.default_rng(seed + 200)
    observation = PoissonObservation(0.4 * rng.normal(size=(n_neurons, p)), rng.uniform(-0.5, 0.5, n_neurons))
    return SystemParameters(state_model(p, seed), observation, 10), PoissonModel()


def draw(params, lengths, seed=0, missing=0.0):
    """Counts (n, N) of sequences that the system draws, and where these begin and end."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    states, observation = params.states, params.observation
    x = np.empty((offsets[-1], states.n_states))
    for first, last in pairwise(offsets):
        for t in range(first, last):
            mean = states.initial_mean if t == first else states.transition @ x[t - 1]
            cov = states.initial_covariance if t == first else states.noise
            x[t] = rng.multivariate_normal(mean, cov)
    theta = x @ observation.loadings.T
    if isinstance(observation, PoissonObservation):
        counts = rng.poisson(np.exp(theta + observation.intercept)).astype(float)
    else:
        k = np.arange(observation.g.shape[1])
        scores = theta[..., None] * k + observation.g - gammaln(k + 1)
        P = np.exp(scores - scores.max(axis=-1, keepdims=True)).cumsum(axis=-1)
        counts = (rng.random(theta.shape)[..., None] > P / P[..., -1:]).sum(axis=-1).astype(float)
    counts[rng.random(counts.shape) < missing] = np.nan
    return counts, offsets


def dense_prior(states, n_steps):
    """Mean (T p,) and covariance (T p, T p) of a whole path, by running the recursion on matrices."""
    p = states.n_states
    maps = [np.zeros((p, n_steps * p)) for _ in range(n_steps)]  # of independent noise to states
    noise = np.zeros((n_steps * p, n_steps * p))
    mean = states.means(n_steps)
    for t in range(n_steps):
        if t:
            maps[t] = states.transition @ maps[t - 1]
        maps[t][:, t * p : (t + 1) * p] += np.eye(p)
        noise[t * p : (t + 1) * p, t * p : (t + 1) * p] = states.noise if t else states.initial_covariance
    M = np.concatenate(maps)
    return mean.ravel(), M @ noise @ M.T


def log_density_of_counts(params, counts, x):
    """log p(counts | states) of one sequence for many paths x (m, T, p): (m,)."""
    observation = params.observation
    theta = x @ observation.loadings.T
    seen = ~np.isnan(counts)
    y = np.where(seen, counts, 0.0)
    if isinstance(observation, PoissonObservation):
        theta = theta + observation.intercept
        values = y * theta - np.exp(theta) - gammaln(y + 1)
    else:
        k = np.arange(observation.g.shape[1])
        table = observation.g - gammaln(k + 1)
        scores = theta[..., None] * k + table
        top = scores.max(axis=-1)
        own = np.take_along_axis(np.broadcast_to(table, (*y.shape, len(k))), y.astype(int)[..., None], -1)[..., 0]
        values = y * theta + own - top - np.log(np.exp(scores - top[..., None]).sum(axis=-1))
    return np.where(seen, values, 0.0).sum(axis=(-2, -1))
