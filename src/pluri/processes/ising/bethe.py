r"""Marginals of labels on a grid by belief propagation: stationary points of the Bethe free energy.

A message from pixel j to its neighbour i says what j, without i, makes of each label x_i:

    m_{j -> i}(x_i) = sum_{x_j} exp(J 1[x_i = x_j]) c_{j -> i}(x_j),
    c_{j -> i}(x_j) proportional to p(y_j | x_j) prod_{k ~ j, k != i} m_{k -> j}(x_j),

and a marginal is proportional to p(y_i | x_i) times all messages to i. On a line this is exact; on a grid it counts the
correlations of neighbours, which mean field does not, and neglects what comes back around loops. Strong couplings have
several fixed points, one for each order that the image may have: messages start from the observations and from each
such order, and the solutions found are mixed in proportion to exp(Bethe estimate of the log sum), image by image.

References
----------
Yedidia, Freeman and Weiss (2005), Constructing free-energy approximations and generalized belief propagation
algorithms, IEEE Transactions on Information Theory 51.
Jaakkola and Jordan (1998), Improving the mean field approximation via the use of mixture distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.processes.ising.grid import LabelField

Array = NDArray[np.float64]
Cut = tuple[slice, ...]

#: Solutions whose marginals differ by less are one solution.
SAME_SOLUTION = 0.01
#: Share of the new message, once messages that are not damped have not settled.
DAMPED = 0.5
#: Probability of the other labels, all together, in the start from an ordered image.
DISORDER = 0.02


@dataclass(frozen=True)
class Beliefs:
    """A fixed point of belief propagation, or a mixture of several.

    Attributes
    ----------
    proba : (n_images, depth, height, width, K)
    log_sum : (n_images,): Bethe estimate of log p(y) + log Z(J); no bound
    n_iter : sweeps
    converged : whether the marginals had settled
    messages : (n_solutions, 6, n_images, depth, height, width, K): log messages of each fixed point, by direction, at
        the pixel that receives them
    shares : (n_solutions, n_images): what each fixed point counts in `proba`
    """

    proba: Array
    log_sum: Array
    n_iter: int
    converged: bool
    messages: Array
    shares: Array


def bethe_marginals(field: LabelField, max_iter: int = 200, tol: float = 1e-4) -> Beliefs:
    """Mix what belief propagation finds from the observations and from each ordered image.

    Parameters
    ----------
    field : LabelField
    max_iter : int, default=200
        Largest number of sweeps of each start.
    tol : float, default=1e-4
        Change of a marginal at which a run stops.

    Examples
    --------
    On a line the marginals are exact.

    >>> import numpy as np
    >>> from pluri.processes.ising.bethe import bethe_marginals
    >>> from pluri.processes.ising.exact import exact_marginals
    >>> from pluri.processes.ising.grid import LabelField
    >>> field = LabelField(np.random.default_rng(0).normal(size=(1, 1, 1, 20, 2)), agreement=1.5)
    >>> bool(np.allclose(bethe_marginals(field, tol=1e-12).proba, exact_marginals(field)[0], atol=1e-10))
    True
    """
    runs = [propagate(field, start, max_iter, tol) for start in (None, *ordered_images(field))]
    log_sums = np.array([run.log_sum for run in runs])  # (n_starts, n_images)
    for late in range(1, len(runs)):
        for early in range(late):
            gap = np.abs(runs[late].proba - runs[early].proba).max(axis=(1, 2, 3, 4))
            log_sums[late][(gap < SAME_SOLUTION) & np.isfinite(log_sums[early])] = -np.inf
    highest = log_sums.max(axis=0)
    weights = np.exp(log_sums - highest)
    total = weights.sum(axis=0)
    shares = weights / total
    mixed = sum(share[:, None, None, None, None] * run.proba for share, run in zip(shares, runs))
    return Beliefs(
        np.asarray(mixed),
        highest + np.log(total),
        max(run.n_iter for run in runs),
        all(run.converged for run in runs),
        np.concatenate([run.messages for run in runs]),
        shares,
    )


def ordered_images(field: LabelField) -> Iterator[Array]:
    """Marginals of images with one label each; with a negative coupling, of checkerboards of two labels."""
    k = field.n_labels
    parity = np.indices(field.shape)[1:].sum(axis=0) % 2
    for label in range(k):
        labels = (label + parity) % k if field.agreement < 0 else np.full(field.shape, label)
        yield np.eye(k)[labels] * (1.0 - DISORDER) + DISORDER / k


def propagate(field: LabelField, start: Array | None = None, max_iter: int = 200, tol: float = 1e-4) -> Beliefs:
    """Belief propagation from one start: the first messages are those of pixels with the marginals `start`.

    Messages of the black fields of the checkerboard are sent first, then those of the white ones.
    """
    messages = np.zeros((6, *field.log_likelihood.shape))  # by direction, at the pixel that receives them
    black = (np.indices(field.shape)[1:].sum(axis=0) % 2 == 0)[..., None]
    if start is not None:
        with np.errstate(divide="ignore"):  # a label may be ruled out
            _send(messages, np.log(start), field.agreement, first=True)
    proba = _normalized(field.log_likelihood + messages.sum(axis=0))
    change, n_iter = np.inf, 0
    while n_iter < max_iter and change > tol:
        n_iter += 1
        share = DAMPED if n_iter > max_iter // 2 else 1.0
        for receivers in (~black, black):
            _send(messages, field.log_likelihood + messages.sum(axis=0), field.agreement, receivers, share)
        old, proba = proba, _normalized(field.log_likelihood + messages.sum(axis=0))
        change = float(np.abs(proba - old).max())
    log_sum = bethe_log_sum(field, messages)
    return Beliefs(proba, log_sum, n_iter, change <= tol, messages[None], np.ones((1, len(log_sum))))


def bethe_log_sum(field: LabelField, messages: Array) -> Array:
    """Bethe estimate of the log of the sum over all labellings of each image: exact on a line, else no bound."""
    total = field.log_likelihood + messages.sum(axis=0)
    here = np.logaddexp.reduce(total, axis=-1)
    log_sum = here.sum(axis=(1, 2, 3))
    for up, down, low, high in _directions():
        one, other = total[low] - messages[down][low], total[high] - messages[up][high]
        agree = (_normalized(one) * _normalized(other)).sum(axis=-1)
        edge = np.logaddexp.reduce(one, axis=-1) + np.logaddexp.reduce(other, axis=-1)
        edge += np.log(1.0 - agree + np.exp(field.agreement) * agree)
        log_sum += (edge - here[low] - here[high]).sum(axis=(1, 2, 3))
    return np.asarray(log_sum + field.constant / len(log_sum))


def _directions() -> Iterator[tuple[int, int, Cut, Cut]]:
    """For each axis: numbers of the messages upwards and downwards, and the lower and upper ends of its edges."""
    for axis in range(3):
        before = (slice(None),) * (axis + 1)
        yield 2 * axis, 2 * axis + 1, (*before, slice(None, -1)), (*before, slice(1, None))


def _send(
    messages: Array,
    total: Array,
    agreement: float,
    receivers: NDArray[np.bool_] | None = None,
    share: float = 1.0,
    first: bool = False,
) -> None:
    """Change `messages` to what pixels with the log weights `total` send, where the receivers are."""
    for up, down, low, high in _directions():
        for way, back, sender, receiver in ((up, down, low, high), (down, up, high, low)):
            without = total[sender] if first else total[sender] - messages[back][sender]
            agreeing = _normalized(without)
            with np.errstate(divide="ignore"):
                new = np.logaddexp(np.log1p(-agreeing), agreement + np.log(agreeing))
            new -= new.mean(axis=-1, keepdims=True)
            old = messages[way][receiver]
            step = share * (new - old)
            old += step if receivers is None else np.where(receivers[receiver], step, 0.0)


def _normalized(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
