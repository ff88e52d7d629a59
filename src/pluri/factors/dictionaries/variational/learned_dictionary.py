r"""A dictionary that is learned by coordinate ascent, with the usage and the weight of an entry in one factor.

    x_i = sum_k z_ik s_ik d_k + noise,   d_k ~ N(0, I / P),   s_ik ~ N(0, 1 / h),   noise ~ N(0, I / g)

    q = prod_k q(d_k)  prod_ik q(z_ik) q(s_ik | z_ik)  q(g) q(h) q(pi, c, V, alpha)

with ``q(d_k) = N(mean, variance)`` (one variance if nothing is missing, one for each value otherwise) and, of a pair
(z, s) that no other pair shares, the best joint distribution. A weight with z = 0 meets no data, so that it is
integrated out beforehand: only weights with z = 1 appear. Let ``q(z_ik = 1) = t``, ``q(s_ik | z_ik = 1) = N(m, v)``,
``b = E d_k' (x_i - sum_{l != k} t_il m_il d_l)`` and ``H = E |d_k|^2``. The terms of the bound with this pair are

    t [E log h + log v + 1 - E h (m^2 + v)] / 2 + t E g [m b - H (m^2 + v) / 2] + t E logit pi_k - t log t - ...

whose maximum is ``v = 1 / (E h + E g H)``, ``m = E g v b``, ``logit t = E logit pi_k + (E log h + log v) / 2
+ m^2 / (2 v)``. A fully factorised q(z) q(s) has one more approximation, between z and s, and two more local optima:
all of t near zero because s is near zero, and the other way round. Of the atoms,

    precision of q(d_k) = P + E g sum_i t (m^2 + v),
    (P I + A) D = B,   A_kl = E g sum_i E[w_ik w_il],  B_k = E g sum_i E[w_ik] x_i:

the means of all atoms that are best together are one linear system, in which only off-diagonal entries of A couple
atoms. Where values are missing each value of an atom has its own sums, and atoms are updated one after the other. As
before, ``q(h) = Gamma(shape + sum t / 2, rate + sum t (m^2 + v) / 2)`` and q(g) is that of the expected squared error.
Atoms c d_k and weights s / c, h c^2 fit the data as well; the best c is
``c^2 = (K P + 2 shape_0) / (P sum_k E |d_k|^2 + 2 shape rate_0 / rate)``, with the prior Gamma(shape_0, rate_0) of h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from pluri.factors.dictionaries.records import Array, Floats, Rows
from pluri.factors.dictionaries.variational import precisions
from pluri.factors.dictionaries.variational._atom_kernels import sweep_atoms
from pluri.factors.dictionaries.variational._entry_kernels import (
    EntryBeliefs,
    EntryPrior,
    Incomplete,
    add_totals,
    sweep_with_gram,
    sweep_with_residuals,
)
from pluri.factors.dictionaries.variational.clustered_usage import ClusteredUsage, UsageBeliefs
from pluri.factors.dictionaries.variational.precisions import PRECISION_PRIOR
from pluri.priors.hyperpriors import Hyperparameter

#: Log odds below which an entry is left at zero: a probability of 1 %.
CUT = math.log(1e-2)
#: What passes for noise in the beginning, for rows of unit size, and the atoms that a row is expected to use.
FIRST_NOISE, FIRST_NUMBER = 0.3, 5.0
#: A beta process without clusters.
USAGE = ClusteredUsage()
#: The variance of the noise is kept above this, for rows of unit size.
SMALLEST_NOISE = 1e-8


@dataclass(frozen=True, eq=False)
class DictionaryBeliefs:
    """Parameters of q.

    Attributes
    ----------
    components : (n_components, n_features) means of the atoms
    component_variances : (n_components, 1), or (n_components, n_features) if values are missing
    entries : EntryBeliefs
        t, m and v, (n_samples, n_components).
    usage : UsageBeliefs
    noise_precision : (n_groups, 2): shapes and rates; the number and zero if it is fixed
    weight_precision : (1, 2)
    totals : (4,) sums over entries, of `add_totals`
    misfit : (n_samples,) expected squared errors, or None if atoms or codes have changed since they were computed
    """

    components: Floats
    component_variances: Array
    entries: EntryBeliefs
    usage: UsageBeliefs
    noise_precision: Array
    weight_precision: Array
    totals: Array
    misfit: Array | None = None

    @property
    def codes(self) -> Floats:
        """(n_samples, n_components) expected codes."""
        return np.asarray(self.entries.used * self.entries.mean)

    @property
    def squares(self) -> Floats:
        """(n_samples, n_components) expected squares of the codes."""
        return np.asarray(self.entries.used * (self.entries.mean**2 + self.entries.variance))


@dataclass(frozen=True)
class LearnedDictionary:
    """The model that `pluri.inference.variational.coordinate_ascent` runs on `Rows`.

    Parameters
    ----------
    usage : ClusteredUsage
    noise_precision, weight_precision : Hyperparameter
        Fixed, or learned under a gamma prior.
    cut : float
        Log odds below which an entry may be exactly zero; minus infinity: never.
    n_sweeps : int
        Sweeps over the codes in an iteration.
    """

    usage: ClusteredUsage = USAGE
    noise_precision: Hyperparameter = Hyperparameter(1.0, PRECISION_PRIOR)
    weight_precision: Hyperparameter = Hyperparameter(1.0, PRECISION_PRIOR)
    cut: float = CUT
    n_sweeps: int = 2

    @property
    def blocks(self) -> Mapping[str, Callable[[DictionaryBeliefs, Rows], DictionaryBeliefs]]:
        """The updates by name, in the order of a sweep."""
        return {
            "codes": self.update_codes,
            "atoms": self.update_atoms,
            "precisions": self.update_precisions,
            "scale": self.update_scale,
            "usage": self.update_usage,
        }

    def start(self, rows: Rows, components: Array) -> DictionaryBeliefs:
        """Beliefs in which no row uses any atom yet."""
        n, P = rows.values.shape
        K, dtype = len(components), rows.values.dtype
        variances = np.full((K, 1 if rows.observed is None else P), 1e-6 / P)
        share = np.full((n, K), min(FIRST_NUMBER / K, 0.5))
        length = max(float(np.mean(np.sum(components**2, axis=1))), 1e-12)
        return DictionaryBeliefs(
            np.ascontiguousarray(components, dtype=dtype),
            variances,
            EntryBeliefs.zeros(n, K, dtype),
            self.usage.start(share),
            precisions.first_beliefs(self.noise_precision, 1 / FIRST_NOISE, rows.n_noise_groups),
            precisions.first_beliefs(self.weight_precision, FIRST_NUMBER * length / P),
            np.zeros(4),
        )

    def initialize(self, rows: Rows, rng: np.random.Generator) -> DictionaryBeliefs:
        """As many atoms as a row has values, drawn from the prior."""
        P = rows.values.shape[1]
        return self.start(rows, rng.standard_normal((P, P)) / math.sqrt(P))

    def update_codes(self, q: DictionaryBeliefs, rows: Rows) -> DictionaryBeliefs:
        """Usage and weights of all rows."""
        entries = EntryBeliefs(*(part.copy() for part in q.entries))
        sweep_entries(self.entry_prior(q, rows), q, rows, entries, self.n_sweeps)
        totals = np.zeros(4)
        add_totals(entries, totals)
        return replace(q, entries=entries, totals=totals, misfit=None)

    def entry_prior(self, q: DictionaryBeliefs, rows: Rows) -> EntryPrior:
        """What is expected of entries before their rows are seen."""
        odds = q.usage.expected_log_odds if self.usage.n_clusters == 1 else q.usage.log_odds
        noise = precisions.mean(q.noise_precision)[rows.noise_group]
        h = q.weight_precision
        return EntryPrior(odds, noise, float(precisions.mean(h)[0]), float(precisions.mean_log(h)[0]), self.cut)

    def update_atoms(self, q: DictionaryBeliefs, rows: Rows) -> DictionaryBeliefs:
        """Means and variances of the atoms."""
        noise = precisions.mean(q.noise_precision)[rows.noise_group]
        if rows.observed is not None:
            P = q.components.shape[1]
            components, variances = q.components.copy(), q.component_variances.copy()
            incomplete = without_codes(q, rows)
            sweep_atoms(incomplete, noise, q.entries, components, variances, np.empty((2, P)))
            return replace(q, components=components, component_variances=variances, misfit=None)
        atoms, spread = solve_atoms(*moments(q.codes, q.squares, rows.values, noise))
        return replace(q, components=atoms.astype(q.components.dtype), component_variances=spread[:, None], misfit=None)

    def update_precisions(self, q: DictionaryBeliefs, rows: Rows) -> DictionaryBeliefs:
        """Precisions of noise and weights."""
        misfit = expected_misfit(q, rows)
        errors = np.bincount(rows.noise_group, misfit, rows.n_noise_groups)
        noise = precisions.updated(self.noise_precision, q.noise_precision, counts(rows), errors, SMALLEST_NOISE)
        weight = precisions.updated(self.weight_precision, q.weight_precision, q.totals[0], q.totals[1])
        return replace(q, noise_precision=noise, weight_precision=weight, misfit=misfit)

    def update_scale(self, q: DictionaryBeliefs, rows: Rows) -> DictionaryBeliefs:
        """Atoms times c and weights over c, which only the priors notice; block by block they would creep there."""
        prior, (shape, rate) = self.weight_precision.prior, q.weight_precision[0]
        if prior is None:
            return q
        P = rows.values.shape[1]
        D, e = q.components.astype(np.float64), np.broadcast_to(q.component_variances, q.components.shape)
        c = math.sqrt((D.size + 2 * prior.shape) / (P * float((D**2 + e).sum()) + 2 * shape * prior.rate / rate))
        number, squares, log_spread, entropy = q.totals
        t, m, v = q.entries
        return replace(
            q,
            components=(c * D).astype(m.dtype),
            component_variances=c**2 * q.component_variances,
            entries=EntryBeliefs(t, m * m.dtype.type(1 / c), v * v.dtype.type(1 / c**2)),
            weight_precision=np.array([[shape, rate / c**2]]),
            totals=np.array([number, squares / c**2, log_spread - 2 * math.log(c) * number, entropy]),
        )

    def update_usage(self, q: DictionaryBeliefs, rows: Rows) -> DictionaryBeliefs:
        """Probabilities of atoms, clusters, sticks and concentration."""
        return replace(q, usage=self.usage.update(q.usage, q.entries.used))

    def elbo(self, q: DictionaryBeliefs, rows: Rows) -> float:
        """Evidence lower bound."""
        misfit = expected_misfit(q, rows) if q.misfit is None else q.misfit
        errors = np.bincount(rows.noise_group, misfit, rows.n_noise_groups)
        g, h, P = q.noise_precision, q.weight_precision, rows.values.shape[1]
        total = 0.5 * float(
            counts(rows) @ (precisions.mean_log(g) - math.log(2 * math.pi)) - precisions.mean(g) @ errors
        )
        total += entry_bound(q.totals, float(precisions.mean(h)[0]), float(precisions.mean_log(h)[0]))
        total += self.usage.bound(q.usage, q.entries.used)
        total -= atom_divergence(q.components, np.broadcast_to(q.component_variances, q.components.shape), P)
        total -= precisions.divergence(self.noise_precision, g) + precisions.divergence(self.weight_precision, h)
        return total


def sweep_entries(prior: EntryPrior, q: Any, rows: Rows, entries: EntryBeliefs, n_sweeps: int) -> None:
    """Change `entries`, given the atoms of q."""
    values, D, amount = rows.values, q.components, np.empty(1, dtype=q.components.dtype)
    K = len(D)
    if rows.observed is None:
        gram = D @ D.T
        norms = gram.diagonal() + D.shape[1] * q.component_variances[:, 0]
        sweep_with_gram(
            values @ D.T, gram, norms.astype(np.float64), prior, entries, n_sweeps, (np.empty((2, K)), amount)
        )
        return
    incomplete = without_codes(replace(q, entries=entries), rows)
    lengths = incomplete.seen @ (D**2).T
    norms = lengths + incomplete.seen @ q.component_variances.astype(D.dtype).T
    sweep_with_residuals(incomplete, D, lengths, norms, prior, entries, n_sweeps, amount)


def without_codes(q: DictionaryBeliefs, rows: Rows) -> Incomplete:
    """What the codes leave of the rows, and which values are there."""
    seen = np.asarray(rows.observed, dtype=rows.values.dtype)
    return Incomplete((rows.values - q.codes @ q.components) * seen, seen)


def moments(codes: Floats, squares: Floats, values: Floats, noise: Array) -> tuple[Array, Array]:
    """Sums over rows, weighted by their precisions: ``E[w w']`` (K, K) and ``E[w] x'`` (K, P)."""
    weighted = codes * noise[:, None].astype(codes.dtype)
    second, cross = (weighted.T @ codes).astype(np.float64), (weighted.T @ values).astype(np.float64)
    second.flat[:: len(second) + 1] = noise @ squares
    return second, cross


def solve_atoms(second: Array, cross: Array) -> tuple[Array, Array]:
    """Means (K, P) and variances (K,) of the atoms from the sums of `moments`."""
    precision = second.copy()
    precision.flat[:: len(second) + 1] += cross.shape[1]
    atoms = cho_solve(cho_factor(precision, lower=True), cross)
    return np.asarray(atoms), np.asarray(1 / precision.diagonal())


def counts(rows: Rows) -> Array:
    """(n_groups,) numbers of values that are there."""
    return np.bincount(rows.noise_group, rows.n_observed, rows.n_noise_groups).astype(np.float64)


def expected_misfit(q: DictionaryBeliefs, rows: Rows) -> Array:
    """(n_samples,) ``E |x_i - sum_k w_ik d_k|^2`` over the values that are there."""
    codes, squares, D, e = q.codes, q.squares, q.components, q.component_variances
    left = rows.values - codes @ D
    if rows.observed is None:
        lengths = np.einsum("kp,kp->k", D, D)
        spread = (squares - codes**2) @ lengths + squares @ (D.shape[1] * e[:, 0]).astype(D.dtype)
        return np.asarray(np.einsum("np,np->n", left, left) + spread, dtype=np.float64)
    seen = np.asarray(rows.observed, dtype=D.dtype)
    each = (squares - codes**2) @ (D**2) + squares @ e.astype(D.dtype)
    return np.asarray(((left**2 + each) * seen).sum(axis=1), dtype=np.float64)


def entry_bound(totals: Array, weight: float, log_weight: float) -> float:
    """Terms of the bound that only usage and weights enter, but for the prior of usage."""
    number, squares, log_spread, entropy = totals
    return float(0.5 * ((log_weight + 1.0) * number + log_spread - weight * squares) + entropy)


def atom_divergence(means: NDArray[Any], variances: Array, P: int) -> float:
    """KL of q from the prior N(0, I / P), summed over atoms."""
    total = P * (variances + means.astype(np.float64) ** 2) - 1 - np.log(P * variances)
    return float(0.5 * total.sum())
