"""The exact posterior of an infinite hidden Markov model on a few steps, by every partition of them.

``p(z | beta)`` is a polynomial in the weights beta of the states: ``Gamma(w + n) / Gamma(w) = sum_m s(n, m) w^m`` with
``w = c ((1 - rho) beta_k + rho 1[j = k])``. The mean of a monomial over beta is known, for a Dirichlet process and for
a finite Dirichlet, so that nothing is simulated.
"""

from itertools import pairwise, product
from math import comb, factorial

import numpy as np
from scipy.special import gammaln, logsumexp

from pluri.processes import log_stirling
from pluri.testing import enumerate_posterior, set_partitions


def transitions(labels, offsets):
    K = max(labels) + 1
    counts = np.zeros((K + 1, K), dtype=int)
    for begin, end in pairwise(offsets):
        for t in range(begin, end):
            counts[labels[t - 1] if t > begin else K, labels[t]] += 1
    return counts


def polynomials(counts, hyper):
    """Of each state: coefficients of the powers of its weight."""
    c, _, rho = hyper
    K = counts.shape[1]
    out = []
    for k in range(K):
        whole = np.ones(1)
        for j in range(K + 1):
            stirling = np.exp(log_stirling(int(counts[j, k])))
            own = np.zeros(len(stirling))
            for m, number in enumerate(stirling):
                if j == k:
                    for w in range(m + 1):
                        own[m - w] += number * c**m * comb(m, w) * rho**w * (1 - rho) ** (m - w)
                else:
                    own[m] += number * c**m * (1.0 if j == K else (1 - rho) ** m)
            whole = np.convolve(whole, own)
        out.append(whole)
    return out


def monomials(labels, offsets, hyper, n_states=None):
    """Powers of the weights, (n, K), and their logs: probability of the path with these powers, beta integrated out."""
    counts, (c, gamma, _) = transitions(labels, offsets), hyper
    K = counts.shape[1]
    fixed = (gammaln(c) - gammaln(c + counts.sum(axis=1))).sum()
    powers, logs = [], []
    coefficients = polynomials(counts, hyper)
    for chosen in product(*(range(1, len(own)) for own in coefficients)):
        value = np.prod([own[power] for own, power in zip(coefficients, chosen)])
        if value == 0:
            continue
        M = np.array(chosen, dtype=float)
        log = fixed + np.log(value) + gammaln(gamma) - gammaln(gamma + M.sum())
        if n_states is None:
            log += K * np.log(gamma) + gammaln(M).sum()
        elif n_states < K:
            continue
        else:
            ways = factorial(n_states) / factorial(n_states - K)
            log += np.log(ways) + (gammaln(gamma / n_states + M) - gammaln(gamma / n_states)).sum()
        powers.append(M)
        logs.append(log)
    return np.array(powers), np.array(logs)


def log_prior(labels, offsets, hyper, n_states=None):
    logs = monomials(labels, offsets, hyper, n_states)[1]
    return float(logsumexp(logs)) if len(logs) else -np.inf


def exact_posterior(kernel, n_states=None):
    """Of the partition of all steps, with the hyper-parameters of the kernel."""
    n = int(kernel.offsets[-1])
    observations = kernel.model.prepare(kernel.data, kernel.offsets)

    def log_joint(labels):
        data = observations.log_marginal(observations.sums(labels, labels.max() + 1))
        return log_prior(labels, kernel.offsets, kernel.hyper, n_states) + data

    return enumerate_posterior(log_joint, configurations=list(set_partitions(n, n_states)))


def draw_exact_weights(rng, labels, offsets, hyper, n_states=None):
    """Weights given the states of all steps: of the process with its rest last, or of `n_states` states."""
    powers, logs = monomials(labels, offsets, hyper, n_states)
    chosen = powers[rng.choice(len(logs), p=np.exp(logs - logsumexp(logs)))]
    gamma = hyper.weight_concentration
    if n_states is None:
        return rng.dirichlet(np.append(chosen, gamma))
    full = np.full(n_states, gamma / n_states)
    full[: len(chosen)] += chosen
    return rng.dirichlet(full)
