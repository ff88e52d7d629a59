r"""How unsure a classifier is of each item, from its probabilities: the larger the score, the sooner to be labelled.

Of one model, with :math:`p_1 \ge p_2 \ge \dots` the sorted probabilities of the classes of an item:

- least confident: :math:`1 - p_1`;
- margin: :math:`-(p_1 - p_2)`;
- entropy: :math:`-\sum_y p(y) \log p(y)`.

Of M models, or M draws of one model, with the mean :math:`\bar p = \frac1M \sum_m p_m`:

- vote entropy: the entropy of the shares of votes [1]_;
- average Kullback-Leibler divergence [2]_, which is the Jensen-Shannon divergence of the members, and for draws of a
  posterior the mutual information of label and parameters (BALD [3]_):
  :math:`\frac1M \sum_m \mathrm{KL}(p_m \| \bar p) = H(\bar p) - \frac1M \sum_m H(p_m)`, so that
  :math:`0 \le` BALD :math:`\le H(\bar p) \le \log C`, and BALD :math:`\le \log M`.

References
----------
.. [1] Dagan, I. & Engelson, S. (1995). Committee-based sampling for training probabilistic classifiers. ICML.
.. [2] McCallum, A. & Nigam, K. (1998). Employing EM and pool-based active learning for text classification. ICML.
.. [3] Houlsby, N., Huszar, F., Ghahramani, Z. & Lengyel, M. (2011). Bayesian active learning for classification and
   preference learning. arXiv:1112.5745.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from pluri.validation import Only, check_value

Array = NDArray[np.float64]

UNCERTAINTY = ("least_confident", "margin", "entropy")
DISAGREEMENT = ("vote_entropy", "kl", "consensus_entropy")
#: Sums of probabilities may be off by so much: networks compute in single precision.
TOLERANCE = 1e-4


def check_probabilities(P: ArrayLike, name: str, n_axes: int) -> Array:
    """Probabilities whose last axis is the classes, scaled to sum to one exactly; or an error."""
    array = np.asarray(P, dtype=np.float64)
    axes = ("n_members", "n_samples", "n_classes")[-n_axes:]
    if array.ndim != n_axes or array.shape[-1] == 0 or (n_axes == 3 and array.shape[0] == 0):
        raise ValueError(f"{name} must have shape ({', '.join(axes)}), got {array.shape}")
    sums = array.sum(axis=-1)
    if not (array >= 0).all() or not (np.abs(sums - 1) <= TOLERANCE).all():
        raise ValueError(f"{name} must be probabilities that sum to 1 over the classes, got others")
    return array / sums[..., None]


def uncertainty_scores(P: ArrayLike, kind: str = "margin") -> Array:
    """How unsure one model is of each item.

    Parameters
    ----------
    P : array-like of shape (n_samples, n_classes)
        Probabilities of the classes.
    kind : {"least_confident", "margin", "entropy"}, default="margin"
        One minus the largest probability; minus the difference of the two largest, which is 0 for a tie; or entropy.
        For two classes all three rank items alike.

    Returns
    -------
    ndarray of shape (n_samples,)
        The larger, the sooner the item is to be labelled.

    Examples
    --------
    >>> from pluri.decisions import uncertainty_scores
    >>> P = [[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]]
    >>> uncertainty_scores(P, "margin").round(2).tolist()
    [0.0, -0.1]
    >>> uncertainty_scores(P, "entropy").round(2).tolist()
    [0.69, 1.09]
    """
    check_value(kind, "kind", Only(*UNCERTAINTY))
    P = check_probabilities(P, "P", 2)
    if kind == "entropy":
        return np.asarray(entr(P).sum(axis=1))
    if kind == "least_confident":
        return np.asarray(1.0 - P.max(axis=1))
    if P.shape[1] == 1:  # nothing comes second
        return -P[:, 0]
    largest = np.partition(P, -2, axis=1)[:, -2:]
    return np.asarray(largest[:, 0] - largest[:, 1])


def committee_scores(P_members: ArrayLike, kind: str = "kl") -> Array:
    """How much several models disagree about each item.

    Parameters
    ----------
    P_members : array-like of shape (n_members, n_samples, n_classes)
        Probabilities of the classes by each member: models of a committee, or draws of one (MC dropout).
    kind : {"vote_entropy", "kl", "consensus_entropy"}, default="kl"
        Entropy of the votes, where a member votes for its most probable class (one vote is shared by classes that tie);
        average divergence of the members from their mean (BALD); or entropy of that mean, which is large also where
        all members are unsure in the same way.

    Returns
    -------
    ndarray of shape (n_samples,)
        The larger, the sooner the item is to be labelled.

    Examples
    --------
    >>> from pluri.decisions import committee_scores
    >>> torn, unsure = [[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]
    >>> committee_scores([torn, unsure], "kl").round(2).tolist()
    [0.69, 0.0]
    >>> committee_scores([torn, unsure], "consensus_entropy").round(2).tolist()
    [0.69, 0.69]
    """
    check_value(kind, "kind", Only(*DISAGREEMENT))
    P = check_probabilities(P_members, "P_members", 3)
    if kind == "vote_entropy":
        votes = P.max(axis=2, keepdims=True) <= P
        shares = (votes / votes.sum(axis=2, keepdims=True)).mean(axis=0)
        return np.asarray(entr(shares).sum(axis=1))
    consensus = entr(P.mean(axis=0)).sum(axis=1)
    if kind == "consensus_entropy":
        return np.asarray(consensus)
    information = consensus - entr(P).sum(axis=2).mean(axis=0)
    return np.asarray(np.clip(information, 0.0, consensus))
