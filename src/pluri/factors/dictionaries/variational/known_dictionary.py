r"""Codes of rows in a dictionary that is known, by coordinate ascent: ``y_i = Phi_i (z_i * s_i) + noise``.

Phi_i is the dictionary as row i measures it: the atoms themselves, or their projections in compressive sensing. With
``s_ik ~ N(0, 1 / h)``, noise N(0, 1 / g), and the usage z_ik of `clustered_usage`,

    q = prod_i q(s_i) q(c_i) prod_k q(z_ik)  q(g) q(h) q(pi) q(V) q(alpha),       q(s_i) = N(mu_i, S_i),
    logit t_ik = E logit pi - (E g / 2) [E s_ik^2 G_kk - 2 mu_ik phi_k' y_i
                 + 2 sum_{l != k} G_kl t_il (mu_ik mu_il + S_i,kl)],              G = Phi_i' Phi_i,
    q(g) = Gamma(shape + n N / 2, rate + sum_i Q_i / 2),   Q_i = E |y_i - Phi_i (z_i * s_i)|^2.

The published update of t leaves out S_i,kl, and that of g the 1/2 of the rate: with them the bound does not reach its
maximum. How the clusters are started from is said in `pluri.factors.dictionaries.variational.recovery`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from pluri.factors.dictionaries.variational import precisions
from pluri.factors.dictionaries.variational._measured_kernels import Codes, Measured, Room, sweep_codes
from pluri.factors.dictionaries.variational.clustered_usage import ClusteredUsage, UsageBeliefs
from pluri.factors.dictionaries.variational.precisions import PRECISION_PRIOR, SMALLEST_VARIANCE
from pluri.priors.hyperpriors import Hyperparameter

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measurements:
    """Rows that were measured.

    Attributes
    ----------
    measured : Measured
        `values` (n_samples, n) and `atoms` (n_samples or 1, n, n_components).
    groups : (n_samples,) int
        Which noise precision each row has.
    """

    measured: Measured
    groups: NDArray[np.intp]

    @property
    def n_groups(self) -> int:
        """Number of noise precisions."""
        return int(self.groups.max()) + 1

    @property
    def counts(self) -> Array:
        """(n_groups,) numbers of values."""
        each = np.full(len(self.groups), float(self.measured.values.shape[1]))
        return np.asarray(np.bincount(self.groups, each, self.n_groups), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CodeBeliefs:
    """Parameters of q.

    Attributes
    ----------
    codes : Codes
        t, mu, diagonal of S, expected squared errors and log determinants of the rows.
    usage : UsageBeliefs
    noise_precision : (n_groups, 2): shapes and rates; the number and zero if it is fixed
    weight_precision : (1, 2)
    """

    codes: Codes
    usage: UsageBeliefs
    noise_precision: Array
    weight_precision: Array


#: A beta process without clusters.
USAGE = ClusteredUsage()


@dataclass(frozen=True)
class KnownDictionary:
    """The model that `pluri.inference.variational.coordinate_ascent` runs on `Measurements`.

    Parameters
    ----------
    usage : ClusteredUsage
    noise_precision, weight_precision : Hyperparameter
        Fixed, or learned under a gamma prior.
    """

    usage: ClusteredUsage = USAGE
    noise_precision: Hyperparameter = Hyperparameter(1.0, PRECISION_PRIOR)
    weight_precision: Hyperparameter = Hyperparameter(1.0, PRECISION_PRIOR)

    @property
    def blocks(self) -> Mapping[str, Callable[[CodeBeliefs, Measurements], CodeBeliefs]]:
        """The updates by name, in the order of a sweep."""
        return {"codes": self.update_codes, "precisions": self.update_precisions, "usage": self.update_usage}

    def initialize(self, data: Measurements, rng: np.random.Generator) -> CodeBeliefs:
        """Atoms are on or off at random."""
        n, K = len(data.measured.values), data.measured.atoms.shape[2]
        return self.start(data, rng.uniform(0.2, 0.8, size=(n, K)))

    def start(self, data: Measurements, used: Array, responsibilities: Array | None = None) -> CodeBeliefs:
        """Beliefs from probabilities of use, with the weights at their best.

        All of the data pass for noise at first: from a smaller noise the atoms that come first are taken for good.
        """
        values, atoms = data.measured
        power = max(float(np.mean(values**2)), SMALLEST_VARIANCE)
        norm = max(float(np.mean(np.sum(atoms**2, axis=1))), SMALLEST_VARIANCE)
        n_used = max(float(used.sum(axis=1).mean()), 1.0)
        codes = Codes(used.copy(), np.zeros_like(used), np.zeros_like(used), np.zeros(len(used)), np.zeros(len(used)))
        q = CodeBeliefs(
            codes,
            self.usage.start(used, responsibilities),
            precisions.first_beliefs(self.noise_precision, 1.0 / power, data.n_groups),
            precisions.first_beliefs(self.weight_precision, n_used * norm / (power * values.shape[1])),
        )
        return self.update_codes(q, data)

    def update_codes(self, q: CodeBeliefs, data: Measurements) -> CodeBeliefs:
        """Weights and usage of all rows."""
        codes = Codes(*(part.copy() for part in q.codes))
        _, n, K = data.measured.atoms.shape
        noise = precisions.mean(q.noise_precision)[data.groups]
        weight = float(precisions.mean(q.weight_precision)[0])
        sweep_codes(data.measured, q.usage.log_odds, noise, weight, codes, Room.of(n, K))
        return replace(q, codes=codes)

    def update_precisions(self, q: CodeBeliefs, data: Measurements) -> CodeBeliefs:
        """Precisions of weights and noise."""
        weight = precisions.updated(self.weight_precision, q.weight_precision, q.codes.mean.size, squares(q.codes))
        misfit = np.bincount(data.groups, q.codes.misfit, data.n_groups)
        floor = SMALLEST_VARIANCE * max(float(np.mean(data.measured.values**2)), SMALLEST_VARIANCE)
        noise = precisions.updated(self.noise_precision, q.noise_precision, data.counts, misfit, floor)
        return replace(q, weight_precision=weight, noise_precision=noise)

    def update_usage(self, q: CodeBeliefs, data: Measurements) -> CodeBeliefs:
        """Probabilities of atoms, clusters, sticks and concentration."""
        return replace(q, usage=self.usage.update(q.usage, q.codes.used))

    def elbo(self, q: CodeBeliefs, data: Measurements) -> float:
        """Evidence lower bound."""
        codes, g, h = q.codes, q.noise_precision, q.weight_precision
        misfit = np.bincount(data.groups, codes.misfit, data.n_groups)
        total = 0.5 * float(
            data.counts @ (precisions.mean_log(g) - math.log(2 * math.pi)) - precisions.mean(g) @ misfit
        )
        of_weights = codes.mean.size * (precisions.mean_log(h)[0] + 1.0) - precisions.mean(h)[0] * squares(codes)
        total += 0.5 * float(of_weights + codes.log_det.sum())
        total += float(entr(codes.used).sum() + entr(1 - codes.used).sum()) + self.usage.bound(q.usage, codes.used)
        total -= precisions.divergence(self.noise_precision, g) + precisions.divergence(self.weight_precision, h)
        return total


def squares(codes: Codes) -> float:
    """Sum of ``E s_ik^2``."""
    return float((codes.mean**2).sum() + codes.variance.sum())
