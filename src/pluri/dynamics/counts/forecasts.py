"""What comes after sequences of counts, and what is missing in them: expected counts, and intervals of counts.

Beyond the last step the states have the distribution of the system, x_T+h ~ N(A x_T+h-1 + b, Q), and theta = c'x is
Gaussian. Intervals are between quantiles of the counts, of which the probabilities are averages over theta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, pdtr

from pluri.dynamics.counts.poisson_model import HIGHEST
from pluri.dynamics.counts.prediction import ThetaDistribution, expected_counts
from pluri.dynamics.counts.queries import CountQueries
from pluri.dynamics.counts.records import PoissonObservation, StateModel
from pluri.validation import Number, check_count, check_value

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Places of theta, in standard deviations, and their probabilities. They lie close together, unlike those of a
#: quadrature: the probability that a large count is not exceeded is nearly a step of theta.
PLACES = np.linspace(-6.0, 6.0, 201)
SHARES = np.exp(-0.5 * PLACES**2) / np.exp(-0.5 * PLACES**2).sum()
#: Numbers that are worked on at a time.
BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class CountForecast:
    """Counts that come after each of S sequences, h steps ahead, of N neurons.

    Parameters
    ----------
    mean, std : ndarray (S, h, N)
        Of the counts.
    lower, upper : ndarray (S, h, N)
        Counts between which, both included, each one lies with probability `level` at least, the parameters being
        taken as known.
    level : float
    states, state_covariance : ndarray (S, h, p), (S, h, p, p)
        Mean and covariance of the states.
    """

    mean: Array
    std: Array
    lower: Array
    upper: Array
    level: float
    states: Array
    state_covariance: Array

    def __repr__(self) -> str:
        sequences, horizon, n = self.mean.shape
        return f"<CountForecast: {sequences} sequences, {horizon} steps, {n} neurons, intervals of {self.level:g}>"


def states_after(
    states: StateModel, mean: Array, covariance: Array, lengths: Integers, horizon: int
) -> tuple[Array, Array]:
    """Means (S, h, p) and covariances (S, h, p, p) of the states after the last ones, of sequences of these lengths.

    Of an empty sequence the first state is still to come.
    """
    n, p = mean.shape
    means, covariances = np.empty((n, horizon, p)), np.empty((n, horizon, p, p))
    drift = np.concatenate([states.drift, np.zeros((1, p))])
    for step in range(horizon):
        # b of the step from row `before` to the next, 0 where the mean does not vary in time.
        before = np.minimum(lengths + step - 1, len(drift) - 1)
        mean = mean @ states.transition.T + drift[before]
        covariance = states.transition @ covariance @ states.transition.T + states.noise
        if step == 0:
            mean[lengths == 0], covariance[lengths == 0] = states.initial_mean, states.initial_covariance
        means[:, step], covariances[:, step] = mean, covariance
    return means, covariances


def count_quantiles(observation: Any, theta: ThetaDistribution, probability: float) -> Array:
    """Smallest counts (n, N) that are not exceeded with this probability at least."""
    found = np.empty(theta.mean.shape)
    deviation = np.sqrt(theta.variance)
    poisson = isinstance(observation, PoissonObservation)
    width = 1 if poisson else observation.g.shape[1]
    rows = max(1, BLOCK // (len(PLACES) * width))
    for i in range(theta.mean.shape[1]):
        for begin in range(0, len(found), rows):
            part = slice(begin, begin + rows)
            at = theta.mean[part, i, None] + deviation[part, i, None] * PLACES
            if poisson:
                rate = np.exp(np.minimum(at + observation.intercept[i], HIGHEST))
                found[part, i] = _poisson_quantile(rate, probability)
            else:
                found[part, i] = _shaped_quantile(at, observation.g[i], probability)
    return found


def _poisson_quantile(rates: Array, probability: float) -> Array:
    """Of mixtures (n,) over Poisson rates (n, places), by bisection between whole numbers."""
    highest = rates.max(axis=1)
    low, high = np.full(len(rates), -1.0), np.ceil(highest + 12.0 * np.sqrt(highest) + 30.0)
    # Above 2^53 neighbours are more than 1 apart, and halving ends where nothing lies between.
    while True:
        middle = np.floor(0.5 * (low + high))
        between = (low < middle) & (middle < high)
        if not between.any():
            return np.asarray(high)
        reached = pdtr(np.maximum(middle, 0.0)[:, None], rates) @ SHARES >= probability
        low, high = np.where(between & ~reached, middle, low), np.where(between & reached, middle, high)


def _shaped_quantile(theta: Array, g: Array, probability: float) -> Array:
    """Of mixtures (n,) over natural parameters (n, places) of a generalized count."""
    k = np.arange(len(g), dtype=np.float64)
    scores = theta[..., None] * k + (g - gammaln(k + 1.0))
    P = np.exp(scores - scores.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    reached = np.einsum("npk,p->nk", P, SHARES).cumsum(axis=1)
    return np.minimum((reached < probability).sum(axis=1), len(g) - 1).astype(np.float64)


class CountForecasts(CountQueries):
    """Methods of a fitted system that tell of counts which were not seen."""

    def forecast(
        self,
        X: Any,
        horizon: int,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        level: float = 0.9,
    ) -> CountForecast:
        """Counts that come after each sequence, with intervals.

        Parameters
        ----------
        X, lengths, groups
            As in `posterior`.
        horizon : int
            Number of steps. With ``time_varying_mean`` nothing is known beyond the steps that were fitted.
        level : float, default=0.9
            Probability that a count lies in its interval. The uncertainty of the parameters is not in it.

        Returns
        -------
        forecast : `CountForecast`
        """
        check_count(horizon, "horizon")
        check_value(level, "level", Number(above=0, below=1))
        params, found, _, offsets = self._paths(X, lengths, groups)
        counts = np.diff(offsets)
        states, p = params.states, params.states.n_states
        longest = int(counts.max()) + int(horizon)
        if self._fitted()[1].n_times and longest > len(states.drift) + 1:
            raise ValueError(
                f"horizon must not lead beyond the {len(states.drift) + 1} steps for which there is a mean that varies "
                f"in time, got {horizon} after {int(counts.max())}"
            )
        last = np.maximum(offsets[1:] - 1, 0)
        means, spreads = states_after(states, found.mean[last], found.covariance[last], counts, int(horizon))
        loadings = params.observation.loadings
        theta = ThetaDistribution.of(loadings, means.reshape(-1, p), spreads.reshape(-1, p, p))
        moments, (lower, upper) = self._described(params.observation, theta, level)
        shape = (len(counts), int(horizon), len(loadings))
        mean, std, lower, upper = (a.reshape(shape) for a in (*moments, lower, upper))
        return CountForecast(mean, std, lower, upper, float(level), means, spreads)

    def impute(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        return_std: bool = False,
    ) -> Any:
        """X with each missing count replaced by its expected value given all that was seen of its sequence.

        Expected counts are not whole numbers; `predict_interval` tells between which counts a missing one lies.

        Parameters
        ----------
        X, lengths, groups
            As in `posterior`.
        return_std : bool, default=False
            Whether to give the standard deviations too, 0 where a count was seen.

        Returns
        -------
        filled : array of shape (n_samples, n_features)
        std : array of shape (n_samples, n_features)
            If `return_std`.
        """
        params, found, counts, _ = self._paths(X, lengths, groups)
        theta = ThetaDistribution.of(params.observation.loadings, found.mean, found.covariance)
        expected = expected_counts(params.observation, theta)
        missing = np.isnan(counts)
        filled = np.where(missing, self._silenced(expected.mean), counts)
        if not return_std:
            return filled
        return filled, np.where(missing, self._silenced(np.sqrt(expected.variance)), 0.0)

    def predict_interval(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        coverage: float = 0.9,
    ) -> Integers:
        """Counts between which the count of each step and neuron lies, given the whole sequence.

        For a missing count it is where it must be looked for; for one that was seen, where another draw of it would
        lie, its own value being among what is known.

        Parameters
        ----------
        X, lengths, groups
            As in `posterior`.
        coverage : float, default=0.9
            Probability at least, the parameters being taken as known.

        Returns
        -------
        interval : array of shape (n_samples, n_features, 2)
            Smallest and largest count, both included.
        """
        check_value(coverage, "coverage", Number(above=0, below=1))
        params, found, _, _ = self._paths(X, lengths, groups)
        theta = ThetaDistribution.of(params.observation.loadings, found.mean, found.covariance)
        _, bounds = self._described(params.observation, theta, coverage)
        return np.stack(bounds, axis=-1).astype(np.int64)

    def _described(self, observation: Any, theta: ThetaDistribution, level: float) -> tuple[list[Array], list[Array]]:
        """Mean and standard deviation (n, N), and the bounds of intervals (n, N)."""
        expected = expected_counts(observation, theta)
        moments = [self._silenced(expected.mean), self._silenced(np.sqrt(expected.variance))]
        tails = (0.5 * (1.0 - level), 0.5 * (1.0 + level))
        return moments, [self._silenced(count_quantiles(observation, theta, tail)) for tail in tails]
