"""What comes next: states and observations after the end of a sequence, exactly.

Given the observations so far, the state h steps later has the probabilities p A^h, where p are those of the last state;
an observation there has the mixture of the states' distributions with these weights. Means and standard deviations of a
mixture have closed forms; its quantiles are found by bisection between those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.bernoulli import BernoulliParameters
from pluri.components.gaussian import GaussianParameters
from pluri.components.multinomial import MultinomialParameters
from pluri.components.poisson import PoissonParameters
from pluri.sequences.emissions.categorical import CategoricalParameters
from pluri.sequences.emissions.gaussian_mixture import MixtureParameters
from pluri.validation import Number, check_count, check_value

Array = NDArray[np.float64]

#: Numbers that one step of the bisection holds at a time.
AT_A_TIME = 1_000_000


@dataclass(frozen=True)
class StateForecast:
    """What comes after each sequence, given parameters that are taken as known, or averaged over draws of them.

    Attributes
    ----------
    states : array of shape (n_sequences, horizon, n_components)
        Probability of each state. `InfiniteHMM`, whose draws have states of their own, tells those of its consensus.
    mean, std : arrays of shape (n_sequences, horizon, n_features), or None
        Of each feature; None where observations are symbols.
    lower, upper : arrays of shape (n_sequences, horizon, n_features), or None
        Bounds between which each feature lies with probability `level` (at least that, where it is a count).
    probabilities : array of shape (n_sequences, horizon, n_symbols), list of them, or None
        Of each symbol; a list, one for each column, if there are several; None where observations are numbers.
    level : float
    """

    states: Array
    level: float
    mean: Array | None = None
    std: Array | None = None
    lower: Array | None = None
    upper: Array | None = None
    probabilities: Any = None

    def __repr__(self) -> str:
        sequences, horizon, k = self.states.shape
        return f"<StateForecast: {sequences} sequences, {horizon} steps, {k} states, intervals of {self.level:g}>"


class ForecastsObservations:
    """The method `forecast` of hidden Markov models whose observations depend on the state alone."""

    _open: Callable[..., Any]
    _model: Callable[[], Any]

    def forecast(
        self,
        X: Any,
        horizon: int = 1,
        lengths: ArrayLike | None = None,
        *,
        level: float = 0.9,
        groups: ArrayLike | None = None,
    ) -> StateForecast:
        """Tell what comes after the end of each sequence: states, and observations with intervals.

        The parameters are taken as known: an interval does not say how well they were estimated.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            NaN marks a missing value.
        horizon : int, default=1
            Steps to look ahead.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.
        level : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        forecast : StateForecast

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.sequences import PoissonHMM
        >>> model = PoissonHMM(2)
        >>> model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> model.lambdas_ = np.array([[1.0], [20.0]])
        >>> coming = model.forecast([[0], [2], [1]], horizon=2)
        >>> coming.states.round(2)
        array([[[0.9 , 0.1 ],
                [0.83, 0.17]]])
        >>> coming.mean.round(1).ravel(), coming.upper.ravel()
        (array([2.9, 4.2]), array([20., 22.]))
        """
        check_count(horizon, "horizon")
        check_value(level, "level", Number(above=0, below=1))
        opened = self._open(X, lengths, groups)
        log_filtered, scores = opened.filter()
        if np.isneginf(scores).any():
            raise ValueError(f"sequence {int(np.argmin(scores))} has probability zero under the model: no forecast")
        emission, parameters = self._model()
        states = state_probabilities(np.exp(log_filtered), opened.offsets, parameters, horizon)
        return observations_of(emission, parameters.emission, states, level)


def observations_of(emission: Any, parameters: Any, states: Array, level: float) -> StateForecast:
    """What states of these probabilities, (n_sequences, horizon, k), emit."""
    if isinstance(parameters, CategoricalParameters):
        columns = np.split(states @ parameters.table.T, emission.symbols.offsets[1:-1], axis=-1)
        return StateForecast(states, level, probabilities=columns[0] if len(columns) == 1 else columns)
    if isinstance(parameters, MultinomialParameters):
        return StateForecast(states, level, probabilities=states @ parameters.probabilities)
    return mix_parts(_parts(parameters), states, level)


def state_probabilities(filtered: Array, offsets: NDArray[np.int64], parameters: Any, horizon: int) -> Array:
    """Probabilities of the states after each sequence: (n_sequences, horizon, k)."""
    counts = np.diff(offsets)
    states = np.empty((len(counts), horizon, len(parameters.start)))
    # An empty sequence has its first step still to come.
    states[:, 0] = parameters.start
    states[counts > 0, 0] = filtered[offsets[1:][counts > 0] - 1] @ parameters.transition
    for step in range(1, horizon):
        states[:, step] = states[:, step - 1] @ parameters.transition
    return states


class Parts(NamedTuple):
    """Distributions (parts, features) that observations are mixed from; the state of each part, and its share there."""

    distribution: Any
    state: NDArray[np.int64]
    share: Array
    whole: bool  # whether all values are whole numbers


def mix_parts(parts: Parts, states: Array, level: float) -> StateForecast:
    """Moments and intervals of the mixtures with these probabilities of the states."""
    weights = (states[..., parts.state] * parts.share).reshape(-1, len(parts.share))
    means, variances = np.asarray(parts.distribution.mean()), np.asarray(parts.distribution.var())
    mean = weights @ means
    # About the mean of the mixture: second moments about zero would cancel where means are large.
    spread = np.einsum("nc,ncd->nd", weights, variances + (means - mean[:, None]) ** 2)
    bounds = [_quantile(parts, weights, q) for q in ((1 - level) / 2, (1 + level) / 2)]
    arrays = [array.reshape(*states.shape[:2], -1) for array in (mean, np.sqrt(spread), *bounds)]
    return StateForecast(states, level, *arrays)


def _parts(emission: Any) -> Parts:
    """The distribution of each feature in each state, or component of a state."""
    from scipy import stats  # half a second to import

    if isinstance(emission, MixtureParameters):
        k, n_mix = emission.weights.shape
        gaussian, state = emission.gaussians, np.repeat(np.arange(k), n_mix)
        return Parts(stats.norm(gaussian.means, _deviations(gaussian)), state, emission.weights.ravel(), False)
    if isinstance(emission, GaussianParameters):
        distribution = stats.norm(emission.means, _deviations(emission))
    elif isinstance(emission, PoissonParameters):
        distribution = stats.poisson(emission.rates)
    else:
        assert isinstance(emission, BernoulliParameters)
        distribution = stats.bernoulli(emission.probs)
    k = len(np.asarray(distribution.mean()))
    return Parts(distribution, np.arange(k), np.ones(k), not isinstance(emission, GaussianParameters))


def _deviations(gaussians: GaussianParameters) -> Array:
    """Standard deviation of each feature of each component."""
    if gaussians.kind == "full":
        return np.sqrt(np.diagonal(gaussians.covariances, axis1=1, axis2=2)[gaussians.group])
    return np.sqrt(gaussians.variances)


def _quantile(parts: Parts, weights: Array, q: float) -> Array:
    """The smallest values at which the distribution functions of mixtures (n, parts) reach q: (n, features)."""
    of_parts = np.asarray(parts.distribution.ppf(q))
    found = np.empty((len(weights), of_parts.shape[1]))
    width = max(AT_A_TIME // of_parts.size, 1)
    for begin in range(0, len(weights), width):
        block = slice(begin, begin + width)
        found[block] = _bisect(parts, weights[block], q, of_parts)
    return found


def _bisect(parts: Parts, weights: Array, q: float, of_parts: Array) -> Array:
    """The quantile of a mixture lies between those of its parts; bisected to the last bit, or whole number."""
    possible = weights[..., None] > 0
    low = np.where(possible, of_parts, np.inf).min(1)
    high = np.where(possible, of_parts, -np.inf).max(1)
    while True:
        middle = np.floor((low + high) / 2) if parts.whole else low + (high - low) / 2
        open_yet = (low < high) if parts.whole else (low < middle) & (middle < high)
        if not open_yet.any():
            return high
        reached = np.einsum("nc,ncd->nd", weights, parts.distribution.cdf(middle[:, None])) >= q
        high = np.where(reached & open_yet, middle, high)
        low = np.where(reached | ~open_yet, low, middle + parts.whole)
