r"""The cost of a map on which each object has several images, and its gradient.

Object i has B images, at y_ib with proportions pi_ib that sum to one. With sums over objects k other than i,

.. math:: q_{ij} = \sum_b \pi_{ib} \sum_c r_{ib,jc}, \qquad
   r_{ib,jc} = \pi_{jc}\, e^{-|y_{ib} - y_{jc}|^2} / \sum_{k \ne i} \sum_d \pi_{kd}\, e^{-|y_{ib} - y_{kd}|^2}.

Gradients go by the posterior t of which images have met, which divides by no proportion:

.. math:: t_{ib,jc} = p_{ij} \pi_{ib} r_{ib,jc} / q_{ij}, \quad T_{ib} = \sum_{jc} t_{ib,jc}, \quad
   M = t - T r, \quad dC/dy_{ib} = 2 \sum_{jc} (y_{ib} - y_{jc}) (M_{ib,jc} + M_{jc,ib}),

and with :math:`\pi_i = \text{softmax}(w_i)`, :math:`A_{ib} = -T_{ib} - \sum_{jc} M_{jc,ib}`,
:math:`dC/dw_{ib} = A_{ib} - \pi_{ib} \sum_c A_{ic}`. The published denominators include the object's own images; here
they do not, so that one image gives SNE.

References
----------
Hinton, G. and Roweis, S. (2002). Stochastic neighbor embedding. NIPS 15, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.neighbors.distributions import Neighbors
from pluri.embedding.neighbors.threads import Threads, total

Array = NDArray[np.float64]


class ImageCost(NamedTuple):
    """Cost of images.

    Attributes
    ----------
    value : float: sum of the divergences of all rows, in nats
    points : (n, B, L): gradient by the places of the images
    logits : (n, B): gradient by the logits of the proportions
    per_row : (n,): divergence of each row
    posterior : (n, B): T, what each image explains of its object's neighbours; rows sum to one
    """

    value: float
    points: Array
    logits: Array
    per_row: Array
    posterior: Array


def log_softmax(logits: Array) -> Array:
    """Logarithms of the proportions of logits (n, B)."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def image_cost(images: Array, logits: Array, neighbors: Neighbors, threads: Threads) -> ImageCost:
    """Cost of images (n, B, L) whose proportions are the softmax of logits (n, B)."""
    from pluri.embedding.neighbors._mixture_kernels import image_rows

    n, n_images, n_dimensions = images.shape
    columns = np.ascontiguousarray(images.transpose(2, 1, 0).reshape(n_dimensions, -1), dtype=np.float64)
    log_shares = log_softmax(logits)
    flat = np.ascontiguousarray(log_shares.T).ravel()

    def piece(begin: int, end: int) -> Array:
        found = np.zeros((n_dimensions + 3, n * n_images))
        work, rows = np.empty((3, n_images, n * n_images)), np.empty((2, n))
        forces, weights = found[:n_dimensions], found[n_dimensions:]
        image_rows(columns, flat, neighbors.P, begin, end, work, rows, forces, weights)
        return found

    found = total(threads.over(n, (n * n_images) ** 2, piece)).reshape(n_dimensions + 3, n_images, n)
    posterior, received, cross = found[n_dimensions].T, found[n_dimensions + 1].T, found[n_dimensions + 2].T
    per_row = cross[:, 0] - neighbors.entropy
    A = -posterior - received
    slopes = A - np.exp(log_shares) * A.sum(axis=1, keepdims=True)
    gradient = 2.0 * found[:n_dimensions].transpose(2, 1, 0)
    return ImageCost(float(per_row.sum()), gradient, slopes, per_row, posterior)


@dataclass(frozen=True)
class Attraction:
    """A force between the images of an object: it grows with their distance up to a threshold, and is constant beyond.

    With distance d, threshold tau and force F the energy is ``F d^2 / (2 tau)`` up to tau, ``F (d - tau / 2)`` beyond.

    Attributes
    ----------
    force : float: nats per unit of length, at the threshold and beyond
    threshold : float
    """

    force: float = 0.025
    threshold: float = 0.05

    def __call__(self, images: Array) -> tuple[float, Array]:
        """Energy of all pairs of images (n, B, L) of the same object, and its gradient (n, B, L)."""
        gradient = np.zeros_like(images)
        energy = 0.0
        n_images = images.shape[1]
        for b in range(n_images):
            for c in range(b):
                difference = images[:, b] - images[:, c]
                d = np.sqrt((difference**2).sum(axis=1))
                near = d <= self.threshold
                energy += self.force * float(
                    np.where(near, d**2 / (2.0 * self.threshold), d - 0.5 * self.threshold).sum()
                )
                pull = self.force * difference / np.maximum(d, self.threshold)[:, None]
                gradient[:, b] += pull
                gradient[:, c] -= pull
        return energy, gradient


def proportion_entropy(logits: Array) -> tuple[float, Array]:
    """Sum of the entropies of the proportions of logits (n, B), and its gradient by the logits."""
    log_shares = log_softmax(logits)
    shares = np.exp(log_shares)
    entropies = -(shares * log_shares).sum(axis=1, keepdims=True)
    return float(entropies.sum()), -shares * (log_shares + entropies)
