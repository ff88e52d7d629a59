r"""The prior of steps between the nodes of a concept graph: broken sticks in an order of its own for each node.

Atoms y_1, y_2, ... (nodes that may follow, and the end of the path) have probabilities ``pi_j = v_j prod_{k<j} (1 -
v_k)``, v_j ~ Beta(alpha, beta). With N_j the number of documents that went to y_j, and ``N_{>j} = sum_{r>j} N_r``, the
sticks are integrated out:

.. math::
    p(N) = \prod_r \frac{B(\alpha + N_r, \beta + N_{>r})}{B(\alpha, \beta)}, \qquad
    p(y_i) = \frac{\alpha + N_i}{\alpha + \beta + N_{\geq i}}
             \prod_{r<i} \frac{\beta + N_{>r}}{\alpha + \beta + N_{\geq r}}.

Without an end the sticks after the last atom keep a tail. The graphs of :class:`ConceptGraph` have a finite number of
atoms and the last takes what is left (its stick is 1), so that the probabilities sum to one. Broken sticks are not
exchangeable: atoms early in the order are likelier, and the order is learned too, by swaps of two places [1]_.

References
----------
.. [1] Chambers, A., Smyth, P. and Steyvers, M. (2010). Learning concept graphs from text with stick-breaking priors.
   NIPS 23.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln

Array = NDArray[np.float64]


def edge_predictive(
    counts: ArrayLike, stick_alpha: float = 1.0, stick_beta: float = 1.0, *, last_takes_rest: bool = False
) -> tuple[Array, float]:
    """Predictive probabilities of atoms in the order of their sticks, and of what comes after them.

    Parameters
    ----------
    counts : array-like of shape (n_atoms,)
        How often each was chosen, in the order of the sticks.
    stick_alpha, stick_beta : float, default=1.0
    last_takes_rest : bool, default=False
        Whether the last stick is 1, so that nothing comes after it.

    Returns
    -------
    probability : array of shape (n_atoms,)
    tail : float

    Examples
    --------
    >>> from pluri.topics.concept_graph.edge_prior import edge_predictive
    >>> probability, tail = edge_predictive([5, 3, 8, 2, 0, 4], 1.0, 2.5)
    >>> probability.round(4)
    array([0.2353, 0.1492, 0.3165, 0.0944, 0.0273, 0.1182])
    >>> round(tail, 4)
    0.0591
    """
    counts = np.asarray(counts, dtype=np.float64)
    at_least = counts[::-1].cumsum()[::-1]
    stick = (stick_alpha + counts) / (stick_alpha + stick_beta + at_least)
    if last_takes_rest:
        stick[-1] = 1.0
    left = np.concatenate([[1.0], np.cumprod(1.0 - stick)])
    return stick * left[:-1], float(left[-1])


def log_marginal(
    counts: ArrayLike, stick_alpha: float = 1.0, stick_beta: float = 1.0, *, last_takes_rest: bool = False
) -> float:
    """Log probability of choices with these counts, in a given sequence, the sticks integrated out."""
    counts = np.asarray(counts, dtype=np.float64)
    after = counts[::-1].cumsum()[::-1] - counts
    terms = betaln(stick_alpha + counts, stick_beta + after) - betaln(stick_alpha, stick_beta)
    return float(terms[:-1].sum() if last_takes_rest else terms.sum())


def log_swap_ratio(
    counts: ArrayLike,
    i: int,
    j: int,
    stick_alpha: float = 1.0,
    stick_beta: float = 1.0,
    *,
    last_takes_rest: bool = False,
) -> float:
    """Log ratio of the marginal probability after two places (from 0) change their atoms, to that before.

    Only the sticks from i to j change; those between them do too, which the published formula leaves out.

    Examples
    --------
    >>> from pluri.topics.concept_graph.edge_prior import log_swap_ratio
    >>> round(log_swap_ratio([5, 3, 8, 2, 0, 4], 0, 5, 1.0, 2.5), 4)
    -0.5063
    """
    before = np.asarray(counts, dtype=np.float64)
    i, j = min(i, j), max(i, j)
    after = before.copy()
    after[[i, j]] = before[[j, i]]
    # Sticks behind j see the same counts: cut there, and add what lies behind to the last place of neither.
    rest = before[j + 1 :].sum()
    part = slice(i, j + 1)
    ratio = 0.0
    for sign, values in ((1.0, after[part]), (-1.0, before[part])):
        behind = values[::-1].cumsum()[::-1] - values + rest
        terms = betaln(stick_alpha + values, stick_beta + behind)
        if last_takes_rest and j == len(before) - 1:
            terms = terms[:-1]
        ratio += sign * float(terms.sum())
    return ratio
