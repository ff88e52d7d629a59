r"""How uncertain a prediction is, from draws of the posterior: for choosing what to ask next.

With draws i = 1..M of a mean m_i and a noise s_i for a document, p(y) = (1/M) sum_i N(y; m_i, s_i^2). Its entropy has
no closed form but lies between the mean entropy of its parts and the entropy of one normal distribution with the same
variance:

    mean_i 0.5 log(2 pi e s_i^2)  <=  H(y)  <=  0.5 log(2 pi e Var(y)).

It is integrated here part by part by Gauss-Hermite quadrature, which is deterministic. H(y) minus the lower limit is
the mutual information of the answer and the parameters: what asking would teach.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp

Array = NDArray[np.float64]
#: Points of the quadrature for each part.
NODES = 32
#: Numbers held at a time.
CHUNK = 4_000_000


def normal_entropy(variance: Array) -> Array:
    """Entropy of normal distributions."""
    entropy: Array = 0.5 * np.log(2 * math.pi * math.e * variance)
    return entropy


def mixture_entropy(means: Array, variances: Array) -> Array:
    """Entropy of mixtures of normal distributions with equal weights.

    Parameters
    ----------
    means : array of shape (n_draws, n_documents)
    variances : array of shape (n_draws,)
        Noise of each draw.

    Returns
    -------
    array of shape (n_documents,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.supervised.predictive import mixture_entropy, normal_entropy
    >>> float((mixture_entropy(np.zeros((5, 1)), np.full(5, 4.0)) - normal_entropy(np.array([4.0])))[0].round(9))
    0.0
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    n_draws, n_documents = means.shape
    log_scale = -0.5 * np.log(2 * math.pi * variances) - math.log(n_draws)
    entropy = np.empty(n_documents)
    step = max(1, CHUNK // (n_draws * n_draws * NODES))
    for begin in range(0, n_documents, step):
        center = means[:, begin : begin + step]
        points = center[None] + np.sqrt(variances)[None, :, None] * nodes[:, None, None]
        gaps = points[:, :, None, :] - center[None, None]
        terms = log_scale[:, None] - 0.5 * gaps**2 / variances[:, None]
        log_density = logsumexp(terms, axis=2)
        entropy[begin : begin + step] = -np.einsum("q,qid->d", weights, log_density) / n_draws
    # Quadrature errs by little; the limits hold exactly.
    total = variances.mean() + means.var(axis=0)
    clipped: Array = np.clip(entropy, normal_entropy(variances).mean(), normal_entropy(total))
    return clipped


def class_entropy(probabilities: Array) -> Array:
    """Entropy of distributions over classes, one in each last axis."""
    entropy: Array = entr(probabilities).sum(axis=-1)
    return entropy
