"""Rows of which some columns are missing, for states whose columns depend on each other.

Of a Gaussian row ``x ~ N(mu_k, Sigma_k)``, or of one that regresses on a past that is there, the columns that are there
have the marginal density ``N(mu_o, Sigma_oo)``: missing values are integrated out when the states are drawn. Given the
state, its parameters and what is there, they are Gaussian again, and are drawn, because the parameters of the next
sweep need whole rows. Rows that look alike, with the same columns missing, are treated together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.processes.conjugate_clusters.records import safe_cholesky
from pluri.sequences.infinite.parts import Array, Integers, Part

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PartWithHoles(Part):
    """Rows of `NormalInverseWishart` or `MatrixNormalInverseWishart`, some of whose targets are missing.

    Attributes
    ----------
    holes : (n_present, n_targets): what is missing; the entries of `rows` there are guesses or draws
    """

    holes: Mask

    @property
    def _n_predictors(self) -> int:
        return int(self.likelihood.n_predictors) if self._regresses else 0

    @property
    def filled(self) -> Array:
        """What stands in place of the missing values: (n_missing,)."""
        return np.asarray(self.rows[:, self._n_predictors :][self.holes])

    def with_filled(self, values: Array) -> PartWithHoles:
        """The same rows with other values in place of the missing ones."""
        rows = self.rows.copy()
        rows[:, self._n_predictors :][self.holes] = values
        return replace(self, rows=rows)

    def _patterns(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Rows with the same columns missing, and the columns that are there and that are not."""
        kinds, place = np.unique(self.holes, axis=0, return_inverse=True)
        for number, kind in enumerate(kinds):
            if kind.any():
                yield np.flatnonzero(place.ravel() == number), np.flatnonzero(~kind), np.flatnonzero(kind)

    def _whole(self) -> Part:
        """The rows without holes."""
        return Part(self.likelihood, self.rows[~self.holes.any(axis=1)], None, int((~self.holes.any(axis=1)).sum()))

    def _targets(self) -> Array:
        return np.asarray(self.rows[:, self._n_predictors :])

    def log_density(self, parameters: Any) -> Array:
        """Log density of what is there of each step given the parameters of each state: (n_steps, n_states)."""
        location, root = parameters
        covariance = root @ np.swapaxes(root, 1, 2)
        out = np.empty((len(self.rows), len(root)))
        whole = ~self.holes.any(axis=1)
        out[whole] = self._whole().log_density(parameters)
        for rows, there, _ in self._patterns():
            away = self._targets()[rows][:, None, :] - self._means(location, rows)
            squares, log_det = _squares(away[:, :, there], covariance[:, there[:, None], there])
            out[rows] = -0.5 * (squares + log_det + len(there) * np.log(2 * np.pi))
        return self._everywhere(out)

    def _means(self, location: Array, rows: Integers) -> Array:
        """Means of the targets of some rows in each state: (n_rows, n_states, n_targets)."""
        if not self._regresses:
            return np.broadcast_to(location, (len(rows), *location.shape))
        return np.einsum("kdp,np->nkd", location, self.rows[rows, : self._n_predictors])

    def draw_filled(self, rng: np.random.Generator, parameters: Any, labels: Integers) -> Array:
        """Missing values given the state of each step, the parameters of each state and what is there."""
        location, root = parameters
        covariance = root @ np.swapaxes(root, 1, 2)
        own, targets = self._there(labels), self._targets().copy()
        for rows, there, missing in self._patterns():
            between = covariance[:, missing[:, None], there]
            slope = np.swapaxes(np.linalg.solve(covariance[:, there[:, None], there], np.swapaxes(between, 1, 2)), 1, 2)
            rest = covariance[:, missing[:, None], missing] - slope @ np.swapaxes(between, 1, 2)
            spread = safe_cholesky((rest + np.swapaxes(rest, 1, 2)) / 2)
            state = own[rows]
            means = self._means(location, rows)[np.arange(len(rows)), state]
            away = targets[rows[:, None], there] - means[:, there]
            noise = np.einsum("nij,nj->ni", spread[state], rng.standard_normal((len(rows), len(missing))))
            targets[rows[:, None], missing] = means[:, missing] + np.einsum("nij,nj->ni", slope[state], away) + noise
        return np.asarray(targets[self.holes])

    def log_predictive(self, sums: Array, sizes: Array) -> Array:
        """Log density of what is there of each step after the rows of each state: a Student t of fewer columns."""
        location, scatter, spread, freedom = self._student(sums)
        out = np.empty((len(self.rows), len(sums)))
        whole = ~self.holes.any(axis=1)
        out[whole] = self._whole().log_predictive(sums, sizes)
        for rows, there, _ in self._patterns():
            away = self._targets()[rows][:, None, :] - self._means(location, rows)
            squares, log_det = _squares(away[:, :, there], scatter[:, there[:, None], there])
            power, width = (freedom + len(there)) / 2, np.broadcast_to(spread, (len(self.rows), len(sums)))[rows]
            constant = gammaln(power) - gammaln(freedom / 2) - 0.5 * (len(there) * np.log(np.pi) + log_det)
            out[rows] = constant - len(there) / 2 * np.log(width) - power * np.log1p(squares / width)
        return self._everywhere(out)

    def _student(self, sums: Array) -> tuple[Array, Array, Array, Array]:
        """Of the next row in each state: location, scatter, what multiplies it in each row, degrees of freedom."""
        if not self._regresses:
            k, df, center, scatter = self.likelihood._posterior(sums)
            return self.likelihood.mean + center, scatter, (k + 1) / k, df - self.likelihood.n_features + 1
        p = self._n_predictors
        df, factor, _, _ = self.likelihood._posterior(sums)
        corner = factor[:, p:, p:]
        whitened = np.einsum("kij,nj->nki", np.linalg.inv(factor[:, :p, :p]), self.rows[:, :p])
        spread = 1.0 + (whitened**2).sum(axis=2)
        scatter = corner @ np.swapaxes(corner, 1, 2)
        return self.likelihood.posterior_mean(sums), scatter, spread, df - self.likelihood.n_targets + 1


def part_with_holes(likelihood: Any, table: Array, n_predictors: int) -> PartWithHoles:
    """Rows with some targets: those whose predictors are all there; column means stand where a target is missing."""
    holes = np.isnan(table[:, n_predictors:])
    there = ~np.isnan(table[:, :n_predictors]).any(axis=1) & ~holes.all(axis=1)
    where = np.flatnonzero(there)
    rows, holes = np.array(table[where], dtype=np.float64), holes[where]
    targets = rows[:, n_predictors:]
    means = np.where(holes, 0.0, targets).sum(axis=0) / np.maximum((~holes).sum(axis=0), 1)
    targets[holes] = np.broadcast_to(means, targets.shape)[holes]
    return PartWithHoles(likelihood, rows, None if there.all() else where, len(table), holes)


def _squares(away: Array, matrices: Array) -> tuple[Array, Array]:
    """``away' matrix^-1 away``, (n_rows, n_states), and the log determinants, (n_states,)."""
    factor = safe_cholesky(matrices)
    whitened = np.einsum("kij,nkj->nki", np.linalg.inv(factor), away)
    log_det = 2 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    return (whitened**2).sum(axis=2), log_det
