"""Whether an approximation that found its optimum is any good: what importance weights say, and the warning.

Draws of q, weighted by p / q, are worth ``ESS = (sum w)^2 / sum w^2`` draws of p. Its share of the draws falls as
``KL(q || p)`` grows; the Pareto shape k of the largest weights tells whether that share can be trusted. Neither is
enough alone: k is above 0.7 for nearly perfect fits whose tails are thinner than those of p (above 2 with a divergence
of 0.005 nats for the logarithm of a gamma variable of shape 20), and below 0.7 for some funnels whose draws are worth a
tenth of their number (`python benchmarks/accuracy/black_box_verdicts.py`).
"""

from __future__ import annotations

from pluri.inference.variational.flows.importance import Evidence

#: Shape of the tail of importance weights above which their mean is not to be relied on (Yao et al., 2018).
PARETO_LIMIT = 0.7
#: Effective share of the draws below which q is poor: in any case, and if the tail is heavy as well.
POOR_SHARE, POOR_SHARE_HEAVY = 0.5, 0.75
#: Divergence in nats below which a heavy tail is no matter: one draw of thousands may halve the effective share.
HARMLESS = 0.1


class ApproximationWarning(UserWarning):
    """The best member of the family is a poor approximation: more iterations will not help, another family may."""


def is_poor(found: Evidence) -> bool:
    """Whether importance weights show that draws of q are no draws of p; what q never visits, they cannot show.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.approximation import is_poor
    >>> from pluri.inference.variational.flows import evidence
    >>> z = np.random.default_rng(0).normal(size=4000)
    >>> is_poor(evidence(0.02 * z)), is_poor(evidence(1.5 * z))
    (False, True)
    """
    share = found.effective_sample_size / found.n_samples
    if found.pareto_k > PARETO_LIMIT:
        return share < POOR_SHARE_HEAVY and found.log_z - found.elbo > HARMLESS
    return share < POOR_SHARE
