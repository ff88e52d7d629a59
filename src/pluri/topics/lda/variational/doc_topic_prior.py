r"""The best Dirichlet prior of topic shares given E[log theta] of the documents, by Newton's method in linear time.

.. math:: \max_\alpha \; \log\Gamma(\textstyle\sum_k \alpha_k) - \sum_k \log\Gamma(\alpha_k) + \sum_k \alpha_k m_k,

m being the mean over documents. The Hessian is diagonal plus a constant, so that its inverse costs nothing [1]_. Steps
are shortened to stay among the positive numbers; where one does not raise the objective, psi(alpha_k) = psi(sum alpha)
+ m_k takes its place, which always does [2]_.

References
----------
.. [1] Blei, D. M., Ng, A. Y. and Jordan, M. I. (2003). Latent Dirichlet allocation. JMLR 3, appendix A.
.. [2] Minka, T. P. (2000). Estimating a Dirichlet distribution. Technical report, MIT.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from pluri.optimize.fixed_point import iterate

Array = NDArray[np.float64]

#: Smallest and largest parameter: a topic without documents would have zero, documents that are all alike infinity.
SMALLEST, LARGEST = 1e-6, 1e6


def best_doc_topic_prior(mean_log_theta: Array, start: Array, *, max_iter: int = 100, tol: float = 1e-9) -> Array:
    """The maximum, from `start`; never below it.

    Parameters
    ----------
    mean_log_theta : array of shape (n_topics,)
        Mean over documents of E[log theta_k], negative.
    start : array of shape (n_topics,)
    max_iter : int, default=100
    tol : float, default=1e-9
        The steps end when no derivative by log alpha_k is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import digamma
    >>> from pluri.topics.lda.variational.doc_topic_prior import best_doc_topic_prior
    >>> alpha = np.array([0.1, 0.5, 2.0])
    >>> best_doc_topic_prior(digamma(alpha) - digamma(alpha.sum()), np.ones(3)).round(6)
    array([0.1, 0.5, 2. ])
    """

    def objective(alpha: Array) -> float:
        return float(gammaln(alpha.sum()) - gammaln(alpha).sum() + alpha @ mean_log_theta)

    alpha = np.clip(start, SMALLEST, LARGEST)
    if alpha.size < 2:
        return alpha  # theta is 1, and every prior is as good

    def step(alpha: Array) -> tuple[Array, float]:
        gradient = digamma(alpha.sum()) - digamma(alpha) + mean_log_theta
        free = ((alpha > SMALLEST) | (gradient > 0)) & ((alpha < LARGEST) | (gradient < 0))
        if np.abs(alpha * gradient)[free].max(initial=0.0) < tol:
            return alpha, 0.0
        diagonal, constant = -polygamma(1, alpha), polygamma(1, alpha.sum())
        shift = (gradient / diagonal).sum() / (1.0 / constant + (1.0 / diagonal).sum())
        newton = (shift - gradient) / diagonal
        room = 0.9 * (alpha[newton < 0] / -newton[newton < 0]).min(initial=np.inf)
        moved = np.clip(alpha + min(1.0, room) * newton, SMALLEST, LARGEST)
        if objective(moved) < objective(alpha):
            # Newton's step goes up, but too far. The fixed point never goes down, and crawls where the sum is far off;
            # half of the step is better there.
            fixed = np.clip(_inverse_digamma(digamma(alpha.sum()) + mean_log_theta), SMALLEST, LARGEST)
            halves = [alpha + min(1.0, room) * 0.5**power * newton for power in range(1, 12)]
            moved = max([fixed, *(np.clip(half, SMALLEST, LARGEST) for half in halves)], key=objective)
        return moved, np.inf

    return iterate(step, alpha, max_iter=max_iter).state


def _inverse_digamma(y: Array) -> Array:
    """Solve psi(x) = y, to ten digits."""
    x = np.where(y >= -2.22, np.exp(np.minimum(y, 50.0)) + 0.5, -1.0 / (y - digamma(1.0)))
    for _ in range(5):
        x = x - (digamma(x) - y) / polygamma(1, x)
    return np.asarray(x)
