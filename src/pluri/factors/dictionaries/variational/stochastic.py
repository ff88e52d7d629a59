r"""A dictionary learned from minibatches: sums over all rows are followed by noisy steps, and give all factors.

The factors of q(atoms), q(pi), q(g) and q(h) (`learned_dictionary`) depend on the rows through sums only:
``sum_i E[w_i w_i']``, ``sum_i E[w_i] x_i'``, ``sum_i t_i``, ``sum_ik t (m^2 + v)``, the expected squared error, and how
many rows and values there are. They are the natural parameters that
`pluri.inference.variational.stochastic_variational_inference` moves by a share rho_t towards what a minibatch, scaled
to all rows, says. Codes are local: those of a minibatch start at zero and are forgotten after it, so that memory does
not grow with the number of rows.

Where values are missing, rows are completed by what is expected of them before ``E[w_i] x_i'`` is added: where that
comes to rest, atoms are those of the values that are there, and only their variances are a little off, as if every
value were missing equally often.

References
----------
Hoffman, Blei, Wang and Paisley (2013), Stochastic variational inference, JMLR 14.
Mairal, Bach, Ponce and Sapiro (2010), Online learning for matrix factorization and sparse coding, JMLR 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, Source
from pluri.factors.dictionaries.records import Array, Rows
from pluri.factors.dictionaries.variational import precisions
from pluri.factors.dictionaries.variational._entry_kernels import EntryBeliefs, EntryPrior, add_totals
from pluri.factors.dictionaries.variational.clustered_usage import UsageBeliefs
from pluri.factors.dictionaries.variational.learned_dictionary import (
    FIRST_NOISE,
    FIRST_NUMBER,
    SMALLEST_NOISE,
    DictionaryBeliefs,
    LearnedDictionary,
    atom_divergence,
    entry_bound,
    expected_misfit,
    moments,
    solve_atoms,
    sweep_entries,
)
from pluri.inference.variational.conjugate import Natural
from pluri.metrics.distribution_information import beta_kl

#: Sweeps over the codes of a minibatch, which start at zero.
N_SWEEPS = 6


@dataclass(frozen=True)
class StochasticDictionary:
    """The model that `pluri.inference.variational.stochastic_variational_inference` runs.

    Parameters
    ----------
    learned : LearnedDictionary
        Priors, with one cluster and one noise; its `n_sweeps` are those of a minibatch.
    atoms : array of shape (n_components, n_features)
        To start from.
    n_total : float
        Rows that the first parameters stand for.
    dtype : data-type
        Of codes and atoms in the compiled loops.
    """

    learned: LearnedDictionary
    atoms: Array
    n_total: float
    dtype: Any = np.float64

    def initialize(self, source: Source, rng: np.random.Generator) -> Natural:
        """Sums as if each atom had been used equally often."""
        return sums_of(self.atoms, self.n_total)

    def global_prior(self) -> Natural:
        """Zero: priors are added when factors are made of the sums."""
        K, P = self.atoms.shape
        return {"second": np.zeros((K, K)), "cross": np.zeros((K, P)), "used": np.zeros(K), "numbers": np.zeros(4)}

    def local_step(self, batch: Batch, params: Natural) -> tuple[Natural, float]:
        """Codes of a minibatch at their best, the sums over them, and their part of the bound."""
        rows = Rows.of(batch.X, self.dtype)
        q = self.coded(rows, params)
        misfit = expected_misfit(q, rows)
        values, number = rows.values, float(rows.n_observed.sum())
        codes, squares, used = q.codes, q.squares, q.entries.used.sum(axis=0, dtype=np.float64)
        if rows.observed is not None:
            values = np.where(rows.observed, values, codes @ q.components)
        second, cross = moments(codes, squares, values, np.ones(len(values)))
        numbers = np.array([q.totals[1], float(misfit.sum()), float(len(values)), number])
        g, h = q.noise_precision, q.weight_precision
        log_g, mean_g = float(precisions.mean_log(g)[0]), float(precisions.mean(g)[0])
        bound = 0.5 * (number * (log_g - math.log(2 * math.pi)) - mean_g * numbers[1])
        bound += entry_bound(q.totals, float(precisions.mean(h)[0]), float(precisions.mean_log(h)[0]))
        log_on, log_off = q.usage.expected_logs
        bound += float(used @ (log_on[0] - log_off[0]) + len(values) * log_off[0].sum())
        return {"second": second, "cross": cross, "used": used, "numbers": numbers}, bound

    def coded(self, rows: Rows, params: Natural) -> DictionaryBeliefs:
        """Factors that the sums give, and codes of rows."""
        q = self.beliefs(params, rows.observed is not None)
        n, K = len(rows.values), len(self.atoms)
        entries, totals, h = EntryBeliefs.zeros(n, K, self.dtype), np.zeros(4), q.weight_precision
        prior = EntryPrior(
            q.usage.expected_log_odds, np.full(n, float(precisions.mean(q.noise_precision)[0])),
            float(precisions.mean(h)[0]), float(precisions.mean_log(h)[0]), self.learned.cut,
        )  # fmt: skip
        sweep_entries(prior, q, rows, entries, self.learned.n_sweeps)
        add_totals(entries, totals)
        return DictionaryBeliefs(q.components, q.component_variances, entries, q.usage, q.noise_precision, h, totals)

    def beliefs(self, params: Natural, incomplete: bool = False) -> DictionaryBeliefs:
        """Factors that the sums give, without codes."""
        K, P = self.atoms.shape
        used, (squares, misfit, n_rows, n_values) = params["used"], params["numbers"]
        learned, usage = self.learned, self.learned.usage
        one = np.ones((1, 2))
        noise = precisions.updated(learned.noise_precision, one, n_values, misfit, SMALLEST_NOISE)
        weight = precisions.updated(learned.weight_precision, one, used.sum(), squares)
        g = float(precisions.mean(noise)[0])
        atoms, _ = solve_atoms(g * params["second"], g * params["cross"])
        share = n_values / (n_rows * P)
        variances = 1 / (P + share * g * params["second"].diagonal())
        tau = np.stack([usage.a / K + used, usage.prior_off(K) + np.maximum(n_rows - used, 0.0)], axis=-1)[None]
        believed = UsageBeliefs(np.ones((1, 1)), tau, np.ones((0, 2)), np.array([1.0, 0.0]))
        empty = EntryBeliefs.zeros(0, K, self.dtype)
        spread = np.repeat(variances[:, None], P if incomplete else 1, axis=1)
        return DictionaryBeliefs(atoms.astype(self.dtype), spread, empty, believed, noise, weight, np.zeros(4))

    def global_elbo(self, params: Natural) -> float:
        """Minus the divergences of the factors from their priors."""
        q, learned = self.beliefs(params), self.learned
        K, P = q.components.shape
        tau = q.usage.probabilities
        total = float(np.sum(beta_kl(tau[..., 0], tau[..., 1], learned.usage.a / K, learned.usage.prior_off(K))))
        total += precisions.divergence(learned.noise_precision, q.noise_precision)
        total += precisions.divergence(learned.weight_precision, q.weight_precision)
        return -total - atom_divergence(q.components, np.broadcast_to(q.component_variances, (K, P)), P)


def sums_of(
    atoms: Array, n_rows: float, *, usage: Array | None = None, noise: float = FIRST_NOISE, weight: float | None = None
) -> dict[str, NDArray[Any]]:
    """Sums that give these atoms back, and these probabilities and variances: what is known of a dictionary.

    Parameters
    ----------
    atoms : array of shape (n_components, n_features)
    n_rows : float
        Rows that the dictionary was learned from.
    usage : array of shape (n_components,), optional
        Share of the rows that use each atom; five atoms a row if not given.
    noise, weight : float, optional
        Variances of noise and weights.
    """
    K, P = atoms.shape
    share = np.full(K, min(FIRST_NUMBER / K, 0.5)) if usage is None else usage
    weight = P / (share.sum() * max(float(np.mean(np.sum(atoms**2, axis=1))), 1e-12)) if weight is None else weight
    used = n_rows * share
    second = np.diag(np.maximum(used * weight, 1e-12))
    cross = second @ atoms + noise * P * atoms
    numbers = np.array([used.sum() * weight, noise * n_rows * P, n_rows, n_rows * P])
    return {"second": second, "cross": cross, "used": used, "numbers": numbers}


def sums_over(q: DictionaryBeliefs, rows: Rows) -> dict[str, NDArray[Any]]:
    """Sums over the rows of a fit, to go on from."""
    codes = q.codes
    values = rows.values if rows.observed is None else np.where(rows.observed, rows.values, codes @ q.components)
    second, cross = moments(codes, q.squares, values, np.ones(len(values)))
    misfit = float(expected_misfit(q, rows).sum())
    numbers = np.array([q.totals[1], misfit, float(len(values)), float(rows.n_observed.sum())])
    return {"second": second, "cross": cross, "used": q.entries.used.sum(axis=0, dtype=np.float64), "numbers": numbers}
