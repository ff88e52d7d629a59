"""A fitted count dynamical system without counts: what it draws, the moments of that, and itself on a page."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pluri.dynamics.counts import moments
from pluri.dynamics.counts.distribution import draw_counts
from pluri.dynamics.counts.forecasts import CountForecasts
from pluri.dynamics.counts.paths import PathPrior
from pluri.dynamics.counts.records import PoissonObservation
from pluri.validation import Only, RandomState, as_generator, check_count, check_value
from pluri.validation.sequences import offsets_of

Array = NDArray[np.float64]


class SystemDescription(CountForecasts):
    """Further methods of a fitted system."""

    n_features_in_: int
    converged_: bool
    n_iter_: int
    objective_: float

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, lengths: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Draw counts and the states behind them.

        Parameters
        ----------
        n_samples : int, default=1
            Steps of one sequence.
        random_state : optional
            The model's own if None.
        lengths : array of shape (n_sequences,), optional
            Lengths of several sequences, in place of `n_samples`.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        states : array of shape (n_samples, n_components)
        """
        params, problem = self._fitted()
        check_count(n_samples, "n_samples")
        given = np.array([n_samples]) if lengths is None else np.asarray(lengths)
        if given.ndim != 1 or given.dtype.kind not in "iu" or (given < 1).any():
            raise ValueError(f"lengths must be a list of positive integers, got {lengths!r}")
        if problem.n_times and given.max() > problem.n_times:
            raise ValueError(f"n_samples must be at most {problem.n_times}, the steps of the mean, got {given.max()}")
        rng = as_generator(self.random_state if random_state is None else random_state)
        offsets = offsets_of(given.astype(np.int64))
        prior = PathPrior.of(params.states, offsets)
        p = params.states.n_states
        states = prior.mean + prior.with_sites(np.zeros((offsets[-1], p, p))).sample(rng)
        return self._silenced(_draw(params.observation, states, rng)), states

    def moments(
        self,
        kind: str = "prior",
        X: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        n_steps: int | None = None,
    ) -> moments.CountMoments:
        """Mean and variance of the counts at each step, and of each neuron.

        Parameters
        ----------
        kind : {"prior", "posterior"}, default="prior"
            Of sequences that the system draws, or of those in X given their counts.
        X, lengths, groups
            For the posterior; see `posterior`.
        n_steps : int, optional
            Steps of a sequence of the prior; the typical length of those fitted by default.

        Returns
        -------
        moments : `CountMoments`
        """
        check_value(kind, "kind", Only(*moments.KINDS))
        if kind == "prior":
            params, _ = self._fitted()
            return moments.prior_moments(params.states, params.observation, self._n_steps(n_steps))
        params, found, _, offsets = self._paths(X, lengths, groups)
        return moments.posterior_moments(found, params.observation, offsets)

    def cross_covariance(
        self,
        max_lag: int = 10,
        kind: str = "prior",
        X: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        n_steps: int | None = None,
    ) -> Array:
        """Covariances of the counts of neurons i and j, the latter `lag` steps later: (max_lag + 1, N, N).

        Averages over steps; at lag 0 and i = j it is the variance. Arguments as in `moments`.
        """
        check_count(max_lag, "max_lag", 0)
        check_value(kind, "kind", Only(*moments.KINDS))
        if kind == "prior":
            params, _ = self._fitted()
            n = self._n_steps(n_steps)
            if max_lag >= n:
                raise ValueError(f"max_lag must be less than the number of steps ({n}), got {max_lag}")
            return moments.prior_cross_covariance(params.states, params.observation, n, max_lag)
        params, found, _, offsets = self._paths(X, lengths, groups)
        longest = int(np.diff(offsets).max())
        if max_lag >= longest:
            raise ValueError(f"max_lag must be less than the longest sequence ({longest}), got {max_lag}")
        return moments.posterior_cross_covariance(found, params.observation, offsets, max_lag)

    def _n_steps(self, n_steps: int | None) -> int:
        if n_steps is None:
            return int(self.typical_length_)
        check_count(n_steps, "n_steps")
        _, problem = self._fitted()
        if problem.n_times and n_steps > problem.n_times:
            raise ValueError(f"n_steps must be at most {problem.n_times}, the steps of the mean, got {n_steps}")
        return int(n_steps)

    def summary(self) -> str:
        """The system on a page: sizes, how the fit ended, time scales and loadings."""
        params, problem = self._fitted()
        p = params.states.n_states
        eigenvalues = np.linalg.eigvals(params.states.transition)
        order = np.argsort(-np.abs(eigenvalues))
        lines = [
            f"{type(self).__name__}: {p} hidden dimension{'s' * (p > 1)}, {self.n_features_in_} neurons"
            + (f", {int(problem.silent.sum())} of them silent" if problem.silent.any() else ""),
            f"{'converged' if self.converged_ else 'not converged'} after {self.n_iter_} iterations, "
            f"objective {self.objective_:.6g}",
            "",
            "eigenvalue of the transition   steps to 1/e   steps per turn",
        ]
        for value in eigenvalues[order]:
            decay = -1.0 / np.log(min(abs(value), 1 - 1e-12)) if abs(value) > 0 else 0.0
            turn = abs(2 * np.pi / np.angle(value)) if abs(np.angle(value)) > 1e-9 else np.inf
            lines.append(f"{value:>28.4g}   {decay:12.4g}   {turn:14.4g}")
        sizes = np.sqrt((params.observation.loadings**2).sum(axis=0))
        lines += ["", "size of the loadings: " + ", ".join(f"{size:.3g}" for size in sizes)]
        return "\n".join(lines)


def _draw(observation: Any, states: Array, rng: np.random.Generator) -> Array:
    """Counts given states: (n, N)."""
    theta = states @ observation.loadings.T
    if isinstance(observation, PoissonObservation):
        return rng.poisson(np.exp(np.minimum(theta + observation.intercept, 30.0))).astype(np.float64)
    k = np.arange(observation.g.shape[1])
    counts = np.empty(theta.shape)
    for i, g in enumerate(observation.g):
        scores = theta[:, i, None] * k + (g - gammaln(k + 1.0))
        P = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
        sums = P / P[:, -1:]
        sums[:, int(np.flatnonzero(np.isfinite(g))[-1]) :] = 1.0
        counts[:, i] = draw_counts(sums, rng.random(len(theta)))
    return counts
