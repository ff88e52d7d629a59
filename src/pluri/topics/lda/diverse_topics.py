r"""Topics pushed apart by a determinantal prior, one after another: the M-step of topic models with diversity.

The prior adds :math:`s \log\det K` with :math:`K = U U^\top` and :math:`u_k = \sqrt{\beta_k}`, rows of unit length. As a
function of one row, the others being fixed, the determinant is :math:`u^\top M u` with M the projection on what is
orthogonal to the others, and by the inequality of Cauchy and Schwarz

.. math:: s \log u^\top M u \ge 2 s \log p^\top u + \mathrm{const}, \qquad p = (K^{-1} U)_k,

with equality at the present row. Hence a row that maximises :math:`\sum_w E_w \log u_w^2 + 2 s \log p^\top u`, E being
the counts expected in the topic, never lowers the objective. It solves :math:`(E_\cdot + s) u^2 = E + c \, p \, u`, so

.. math:: u_w = \frac{c p_w + \sqrt{c^2 p_w^2 + 4 (E_\cdot + s) E_w}}{2 (E_\cdot + s)}, \qquad c \, p^\top u = s,

with one number c to be found. The prior thus weighs as much as s tokens of the topic: s is to be compared with the
number of tokens of a topic. A sweep over the topics costs about as much as two products of K x V x K numbers, where the
general solver of :mod:`pluri.priors`, which climbs to the top for each pass over the documents, needs hundreds.

References
----------
.. [1] Zou, J. Y. and Adams, R. P. (2012). Priors for diversity in generative latent variable models. NIPS 25.
.. [2] Hunter, D. R. and Lange, K. (2004). A tutorial on MM algorithms. The American Statistician 58.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from pluri.priors import Diversity, log_density_rows, maximize_rows

Array = NDArray[np.float64]
#: Eigenvalue of the kernel below which topics count as linearly dependent.
DEPENDENT = 1e-9
#: Shares of the way to the diverse topic that variational Bayes tries.
SHARES = (1.0, 0.5, 0.25, 0.0)


def pushed_apart(evidence: Array, start: Array, diversity: Diversity) -> Array:
    """Topics that are better than `start`, by one update of each: the most probable ones.

    Parameters
    ----------
    evidence : array of shape (n_topics, n_words)
        Expected counts plus pseudo-counts.
    start : array of shape (n_topics, n_words)
        Topics before this pass, rows sum to one.
    diversity : Diversity

    Returns
    -------
    array of shape (n_topics, n_words)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors import Diversity
    >>> from pluri.topics.lda.diverse_topics import pushed_apart
    >>> topics = np.array([[0.6, 0.4], [0.3, 0.7]])
    >>> for _ in range(100):
    ...     topics = pushed_apart(np.array([[6.0, 4.0], [4.0, 6.0]]), topics, Diversity(5.0))
    >>> topics.round(4)
    array([[0.8239, 0.1761],
           [0.1761, 0.8239]])
    """
    roots = np.sqrt(start)
    inverse = _inverse_kernel(roots, diversity)
    if inverse is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # topics that coincide are told apart there
            return maximize_rows(evidence, start, diversity=diversity)

    def update(k: int, proposed: Array, log_gain: Callable[[Array], float]) -> Array:
        return proposed

    return _sweep(evidence, roots, inverse, diversity.strength, update) ** 2


def pushed_apart_posterior(target: Array, before: Array, diversity: Diversity) -> Array:
    """Dirichlet parameters of the topics that are better than those before, by one update of each.

    The bound in lambda is that of conjugate topics, for which `target` is best, plus the prior at the mean topics. A
    word of few counts resists more than a maximum of probability would: the curvature of the bound is psi'(lambda)
    instead of 1 / lambda, their ratio about (lambda + 1) / lambda, and so much less is it moved.

    Parameters
    ----------
    target, before : arrays of shape (n_topics, n_words)
        Prior plus expected counts, and lambda before this pass.
    diversity : Diversity

    Returns
    -------
    array of shape (n_topics, n_words)
    """
    found = np.array(before)
    roots = np.sqrt(before / before.sum(axis=1, keepdims=True))
    inverse = _inverse_kernel(roots, diversity)
    if inverse is None:
        return np.array(target)
    strength = diversity.strength

    def update(k: int, proposed: Array, log_gain: Callable[[Array], float]) -> Array:
        aim, total = target[k], target[k].sum()
        way = (total * proposed**2 - aim) * aim / (aim + 1.0)
        best, best_root, best_value = found[k], roots[k], _row_bound(aim, found[k])
        for share in SHARES:
            row = np.maximum(aim + share * way, 1e-8)
            root = np.sqrt(row / row.sum())
            value = _row_bound(aim, row) + strength * log_gain(root)
            if value > best_value:
                best, best_root, best_value = row, root, value
            elif share < 1.0:
                break
        found[k] = best
        return best_root

    _sweep(target, roots, inverse, strength, update)
    return found


def log_diversity(topics: Array, diversity: Diversity) -> float:
    """Log density of topics (rows) under the prior, up to a constant."""
    if diversity.rho != 0.5 or len(topics) > topics.shape[1]:
        return log_density_rows(topics, diversity=diversity)
    roots = np.sqrt(topics)
    inverse = _inverse_kernel(roots, diversity)
    if inverse is None:
        return log_density_rows(topics, diversity=diversity)
    return -diversity.strength * float(np.linalg.slogdet(inverse)[1])


def _inverse_kernel(roots: Array, diversity: Diversity) -> Array | None:
    """Inverse of K; None if the rows are dependent, or the kernel is another one."""
    if diversity.rho != 0.5 or len(roots) > roots.shape[1]:
        return None
    spectrum, vectors = np.linalg.eigh(roots @ roots.T)
    if not spectrum[0] > DEPENDENT:
        return None
    return (vectors / spectrum) @ vectors.T


def _sweep(
    evidence: Array, roots: Array, inverse: Array, strength: float, update: Callable[..., Array]
) -> Array:
    """New square roots of the topics; `update` says what becomes of each proposal."""
    from pluri.topics.lda._diverse_kernels import diverse_root

    for k in range(len(roots)):
        proposed = np.empty(roots.shape[1])
        diverse_root(evidence[k], inverse[k] @ roots, strength, proposed)
        # Inverse of K without row k, from which u' M u of any row follows: 1 - g' B g, g its products with the others.
        others = inverse - np.outer(inverse[k], inverse[k]) / inverse[k, k]
        others[k], others[:, k] = 0.0, 0.0

        def apart(root: Array) -> float:
            products = roots @ root
            return 1.0 - float(products @ others @ products)
...
