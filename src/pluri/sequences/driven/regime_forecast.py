"""What comes after a sequence whose observations regress on inputs or on the last observations: by simulation.

The distribution h steps ahead is a mixture with one part for each path of h states: exact for one step, too many parts
for more. So futures are drawn: the last state from its filtered probabilities, then states and observations in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.sequences.driven.columns import Layout
from pluri.sequences.forecasting import StateForecast, state_probabilities
from pluri.validation import Number, RandomState, as_generator, check_count, check_value
from pluri.validation.sequences import offsets_of, sequence_lengths

Array = NDArray[np.float64]


class ForecastsBySimulation:
    """The method `forecast` of hidden Markov models whose emissions are regressions."""

    _open: Callable[..., Any]
    _model: Callable[[], Any]
    _observations: Callable[..., Any]
    _layout: Callable[[], Layout]
    random_state: Any

    def forecast(
        self,
        X: Any,
        horizon: int = 1,
        lengths: ArrayLike | None = None,
        *,
        level: float = 0.9,
        groups: ArrayLike | None = None,
        future_inputs: ArrayLike | None = None,
        n_predictive: int = 5000,
        random_state: RandomState = None,
    ) -> StateForecast:
        """Tell what comes after the end of each sequence: states exactly, outputs by draws.

        The parameters are taken as known: an interval does not say how well they were estimated.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        horizon : int, default=1
            Steps to look ahead.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.
        level : float, default=0.9
            Probability of the intervals.
        future_inputs : array of shape (horizon, n_inputs) or (n_sequences, horizon, n_inputs)
            Inputs of the steps to come, if the model has inputs.
        n_predictive : int, default=5000
            Futures that are drawn of each sequence: a mean is off by about std / sqrt(n_predictive).
        random_state : int or Generator, optional
            That of the model by default.

        Returns
        -------
        forecast : StateForecast
            Its means, deviations and bounds are those of the outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.sequences import AutoregressiveHMM
        >>> rng = np.random.default_rng(0)
        >>> x = np.cumsum(rng.normal(size=200))[:, None]
        >>> model = AutoregressiveHMM(1, random_state=0).fit(x)
        >>> coming = model.forecast(x, horizon=3)
        >>> coming.mean.shape, bool((np.diff(coming.upper[0, :, 0] - coming.lower[0, :, 0]) > 0).all())
        ((1, 3, 1), True)
        """
        check_count(horizon, "horizon")
        check_count(n_predictive, "n_predictive")
        check_value(level, "level", Number(above=0, below=1))
        opened = self._open(X, lengths, groups)
        log_filtered, scores = opened.filter()
        if np.isneginf(scores).any():
            raise ValueError(f"sequence {int(np.argmin(scores))} has probability zero under the model: no forecast")
        _, parameters = self._model()
        states = state_probabilities(np.exp(log_filtered), opened.offsets, parameters, horizon)
        data, counts = self._observations(X, sequence_lengths(X, lengths, groups))
        rng = as_generator(self.random_state if random_state is None else random_state)
        moves = np.broadcast_to(parameters.transition, (len(counts), horizon, *parameters.transition.shape))
        return simulated(self, (states, moves), (data, offsets_of(counts)), future_inputs, level, n_predictive, rng)


def simulated(
    model: ForecastsBySimulation,
    chain: tuple[Array, Array],
    past: tuple[NDArray[Any], NDArray[np.int64]],
    future_inputs: ArrayLike | None,
    level: float,
    n_predictive: int,
    rng: np.random.Generator,
) -> StateForecast:
    """Futures of outputs.

    Parameters
    ----------
    chain : probabilities of the states to come, (n_sequences, horizon, k), and the matrices that lead to each step,
        (n_sequences, horizon, k, k), of which the first is not looked at
    past : columns of X that `model` describes, and where sequences begin and end
    """
    states, moves = chain
    data, offsets = past
    layout = model._layout()
    lags = _last_lags(layout, data, offsets)
    future = inputs_to_come(future_inputs, len(states), states.shape[1], len(layout.inputs))
    drawn = np.stack([
        _futures(model._model(), states[n, 0], moves[n], lags[n], future[n], n_predictive, rng)
        for n in range(len(states))
    ])  # fmt: skip
    lower, upper = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=1)
    return StateForecast(states, level, drawn.mean(1), drawn.std(1), lower, upper)


def _last_lags(layout: Layout, data: Array, offsets: NDArray[np.int64]) -> Array:
    """The last observations of each sequence, newest first, as the regressors of the step after it."""
    n_lags = layout.n_regressors - len(layout.inputs)
    lags = np.empty((len(offsets) - 1, n_lags))
    if not n_lags:
        return lags
    wide = data[:, layout.columns]
    for n, (begin, end) in enumerate(pairwise(offsets)):
        row = wide[end - 1] if end > begin else np.full(wide.shape[1], np.nan)
        lags[n] = np.concatenate([row[layout.n_regressors :], row[:n_lags]])[:n_lags]
        if not np.isfinite(lags[n]).all():
            raise ValueError(
                f"the last {layout.order} rows of sequence {n} must be complete for a forecast, got a missing value or "
                "fewer rows"
            )
    return lags


def inputs_to_come(
    given: ArrayLike | None, n_sequences: int, horizon: int, n_inputs: int, name: str = "future_inputs"
) -> Array:
    """Inputs of the steps to come: (n_sequences, horizon, n_inputs)."""
    if given is None:
        if n_inputs:
            raise ValueError(f"{name} must be given, {horizon} rows of {n_inputs}: the model has inputs")
        return np.zeros((n_sequences, horizon, 0))
    future = np.asarray(given, dtype=np.float64)
    if future.shape[-2:] != (horizon, n_inputs) or future.shape[:-2] not in ((), (n_sequences,)):
        raise ValueError(
            f"{name} must have shape (horizon, n_inputs) = ({horizon}, {n_inputs}), or one such array for each of "
            f"{n_sequences} sequences, got {future.shape}"
        )
    if not np.isfinite(future).all():
        raise ValueError(f"{name} must be finite")
    return np.broadcast_to(future, (n_sequences, horizon, n_inputs))


def _futures(
    model: tuple[Any, Any],
    first: Array,
    moves: Array,
    lags: Array,
    inputs: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Outputs of the steps to come: (n_draws, horizon, n_outputs); `first` are the probabilities of the next state."""
    emission, parameters = model
    coef: Array = parameters.emission.coef
    n_lags = len(lags)
    steps = np.cumsum(moves, axis=2)
    states = rng.choice(len(first), size=n_draws, p=first / first.sum())
    before = np.tile(lags, (n_draws, 1))
    drawn = np.empty((n_draws, len(inputs), coef.shape[1]))
    for step, given in enumerate(inputs):
        if step:
            states = np.minimum((rng.random((n_draws, 1)) >= steps[step, states]).sum(1), len(first) - 1)
        outputs = emission.sample(parameters.emission, states, rng)
        outputs += np.einsum("ndp,np->nd", coef[states][:, :, :n_lags], before) + coef[states][:, :, n_lags:] @ given
        drawn[:, step] = outputs
        before = np.concatenate([outputs, before], axis=1)[:, :n_lags]
    return drawn
