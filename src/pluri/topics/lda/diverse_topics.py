r"""Topics pushed apart by a determinantal prior, one after another: the M-step of topic models with diversity.

The prior adds :math:`s \log\det K` with :math:`K = U U^\top` and :math:`u_k = \sqrt{\beta_k}`, unit rows. As a
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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from pluri.priors import Diversity, log_density_rows, maximize_rows

Array = NDArray[np.float64]
#: Eigenvalue of the kernel below which topics count as linearly dependent.
DEPENDENT = 1e-9
#: Shares of a step that variational Bayes tries, and its least parameter.
SHARES, LEAST = (1.0, 0.5, 0.25, 0.125), 1e-8


def pushed_apart(evidence: Array, start: Array, diversity: Diversity) -> Array:
    """Topics that are more probable than those before, by one update of each.

    Parameters
    ----------
    evidence : array of shape (n_topics, n_words)
        Expected counts plus pseudo-counts.
    start : array of shape (n_topics, n_words)
        Topics before this pass; rows sum to one.
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
    kernel = TopicKernel.of(start, diversity)
    if kernel is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # topics that coincide are told apart there
            return maximize_rows(evidence, start, diversity=diversity)
    for k in range(len(start)):
        kernel.replace(k, kernel.proposal(k, evidence[k], diversity.strength))
    topics: Array = kernel.roots**2
    return topics


def posterior_pushed_apart(target: Array, before: Array, diversity: Diversity) -> Array:
    """Dirichlet parameters of the topics with a higher bound than those before, by one update of each.

    The bound in lambda is that of conjugate topics, for which `target` would be best, plus the prior at the mean
    topics. Words of few counts resist more than in the most probable topics: the curvature of the bound is psi'(lambda)
    instead of 1 / lambda, about (lambda + 1) / lambda times as much. So the way to the most probable topic is gone that
    much less far, and from there, or from where the topic was if that is better, a Newton step in log lambda with a
    diagonal Hessian is taken. Both only if they raise the bound.

    Parameters
    ----------
    target, before : arrays of shape (n_topics, n_words)
        Prior plus expected counts, and lambda before this pass.
    diversity : Diversity

    Returns
    -------
    array of shape (n_topics, n_words)
    """
    from pluri.topics.lda._diverse_kernels import newton_step

    strength = diversity.strength
    kernel = TopicKernel.of(before / before.sum(axis=1, keepdims=True), diversity)
    if kernel is None:
        return _all_at_once(target, before, diversity)
    found = np.array(before, order="C")
    step = np.empty(found.shape[1])
    for k, aim in enumerate(np.ascontiguousarray(target)):
        value = row_bound(aim, found[k]) + strength * kernel.log_distance(k, kernel.roots[k])
        way = aim.sum() * kernel.proposal(k, aim, strength) ** 2 - aim
        value, _ = _accepted(found, kernel, k, aim + way * aim / (aim + 1.0), aim, strength, value)
        newton_step(aim, found[k], kernel.roots[k], kernel.dual(k), strength, step)
        for share in SHARES:
            value, better = _accepted(found, kernel, k, found[k] * np.exp(share * step), aim, strength, value)
            if better:
                break
    return found


def _accepted(
    found: Array, kernel: TopicKernel, k: int, row: Array, aim: Array, strength: float, value: float
) -> tuple[float, bool]:
    """Put lambda of topic k in its place if that raises the bound."""
    row = np.maximum(row, LEAST)
    root = np.sqrt(row / row.sum())
    new = row_bound(aim, row) + strength * kernel.log_distance(k, root)
    if not new > value:
        return value, False
    found[k] = row
    kernel.replace(k, root)
    return new, True


def log_diversity(topics: Array, diversity: Diversity) -> float:
    """Log density of topics under the prior, up to a constant."""
    kernel = TopicKernel.of(topics, diversity)
    if kernel is None:
        return log_density_rows(topics, diversity=diversity)
    return -diversity.strength * float(np.linalg.slogdet(kernel.inverse)[1])


@dataclass(eq=False)
class TopicKernel:
    """Square roots of the topics (n_topics, n_words) and the inverse of their kernel, while topics are replaced."""

    roots: Array
    inverse: Array

    @classmethod
    def of(cls, topics: Array, diversity: Diversity) -> TopicKernel | None:
        """Of topics; None if they are linearly dependent, or the prior has another kernel."""
        if diversity.rho != 0.5 or len(topics) > topics.shape[1]:
            return None
        roots = np.sqrt(topics)
        spectrum, vectors = np.linalg.eigh(roots @ roots.T)
        return cls(roots, (vectors / spectrum) @ vectors.T) if spectrum[0] > DEPENDENT else None

    def proposal(self, k: int, evidence: Array, strength: float) -> Array:
        """Square root of the topic that is best by the lower bound."""
        from pluri.topics.lda._diverse_kernels import diverse_root

        root = np.empty(evidence.size)
        diverse_root(np.ascontiguousarray(evidence), self.dual(k), strength, root)
        return root

    def dual(self, k: int) -> Array:
        """The p of row k: its product with row k is 1, with the others 0."""
        row: Array = self.inverse[k] @ self.roots
        return row

    def log_distance(self, k: int, root: Array) -> float:
        """Log u'Mu: how far a row in place of row k would be from the others; differs from log det K by a constant."""
        products = self.roots @ root
        distance = 1.0 - float(products @ self._without(k) @ products)
        return math.log(distance) if distance > 0.0 else -math.inf

    def replace(self, k: int, root: Array) -> None:
        """Put a row in place of row k."""
        others = self._without(k)
        step = others @ (self.roots @ root)
        distance = 1.0 - float((self.roots @ root) @ step)
        step[k] = -1.0
        self.inverse = others + np.outer(step, step) / distance
        self.roots[k] = root

    def _without(self, k: int) -> Array:
        """Inverse of the kernel without row k, with zeros in its place."""
        column = self.inverse[k]
        others: Array = self.inverse - np.outer(column, column) / column[k]
        others[k], others[:, k] = 0.0, 0.0
        return others


def row_bound(target: Array, row: Array) -> float:
    """What the bound has of one topic: sum_w (target - lambda) E[log beta] plus the log normaliser of lambda."""
    total = row.sum()
    return float((target - row) @ (psi(row) - psi(total)) + gammaln(row).sum() - gammaln(total))


def _all_at_once(target: Array, before: Array, diversity: Diversity) -> Array:
    """As `posterior_pushed_apart`, without the Newton step, for kernels and starts that `TopicKernel` does not take."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        means = maximize_rows(target, before / before.sum(axis=1, keepdims=True), diversity=diversity)
    way = (target.sum(axis=1, keepdims=True) * means - target) * target / (target + 1.0)

    def value(rows: Array) -> float:
        bound = sum(row_bound(aim, row) for aim, row in zip(target, rows))
        return bound + log_density_rows(rows / rows.sum(axis=1, keepdims=True), diversity=diversity)

    return max([before, target, *(np.maximum(target + share * way, LEAST) for share in SHARES)], key=value)
