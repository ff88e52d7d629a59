"""What comes after a sequence, averaged over draws of everything that an infinite hidden Markov model does not know.

Each draw has states, and rows of transition probabilities and parameters of the states that are drawn given them. With
these the observations so far tell the last state, and the chain the states to come; an observation then has the mixture
of the distributions of all states of all draws. So intervals say how well parameters and states are known. Futures of
"autoregressive" are drawn step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.sequences.forecasting import Parts, StateForecast, mix_parts, state_probabilities
from pluri.sequences.infinite.emission_draws import draw_parameters
from pluri.sequences.infinite.observations import Array, Integers, ObservationModel, Observations, state_parts
from pluri.sequences.infinite.transitions import draw_weights
from pluri.sequences.infinite.weak_limit import filter_steps
from pluri.sequences.learning import HMMParameters
from pluri.validation import Number, RandomState, as_generator, check_count, check_value
from pluri.validation.sequences import offsets_of, sequence_lengths

#: Futures of an autoregressive model that are drawn with each draw of its parameters.
FUTURES = 50


class Coming(NamedTuple):
    """One draw: parameters of its states, and how to tell or to draw the states after each sequence."""

    parameters: list[Any]
    states: Callable[[], Array]  # probabilities (n_sequences, horizon, K)
    paths: Callable[[int, int], Integers]  # (n_paths, horizon) of sequence n, n_paths times


class ForecastsFromDraws:
    """The method `forecast` of `InfiniteHMM`."""

    _open: Callable[..., Any]
    _model: Callable[[], Any]
    _observations: Callable[..., Any]
    _segment_law: Callable[[int], Any]
    durations: str | None
    random_state: Any
    model_: ObservationModel
    posterior_draws_: list[dict[str, Any]]

    def forecast(
        self,
        X: Any,
        horizon: int = 1,
        lengths: ArrayLike | None = None,
        *,
        level: float = 0.9,
        groups: ArrayLike | None = None,
        n_predictive: int = 100,
        random_state: RandomState = None,
    ) -> StateForecast:
        """Tell what comes after the end of each sequence, averaged over draws from the posterior.

        Means, deviations and bounds allow for what is not known of the states and their parameters; what `X` says of
        these beyond the data of `fit` is not learned. States that were never seen are not among those to come.

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
        n_predictive : int, default=100
            Draws of all parameters that are averaged over. With each, 50 futures of "autoregressive" are drawn.
        random_state : int or Generator, optional
            That of the model by default.

        Returns
        -------
        forecast : StateForecast
            Its `states` are those of `labels_`, because the states of different draws have no common names.

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.sequences import InfiniteHMM
        >>> X = np.repeat([1, 30, 2, 28], 20)[:, None]
        >>> model = InfiniteHMM("poisson", n_draws=50, n_chains=2, random_state=0).fit(X)
        >>> coming = model.forecast(X, horizon=2)
        >>> coming.mean.shape, bool(coming.upper[0, 0, 0] > coming.mean[0, 0, 0] > 20)
        ((1, 2, 1), True)
        """
        check_is_fitted(self, "transmat_")
        check_count(horizon, "horizon")
        check_count(n_predictive, "n_predictive")
        check_value(level, "level", Number(above=0, below=1))
        consensus = self._consensus_states(X, horizon, lengths, groups)
        rows, counts = self._observations(X, sequence_lengths(X, lengths, groups))
        offsets = offsets_of(counts)
        rng = as_generator(self.random_state if random_state is None else random_state)
        observed = Observations(state_parts(self.model_, rows), len(rows))
        coming = self._each_draw(rng, observed, offsets, horizon, n_predictive)
        family = self.model_.family
        if family == "autoregressive":
            lags = _last_rows(rows, offsets, self.model_)
            lower, mean, std, upper = _futures(rng, coming, lags, horizon, level)
            return StateForecast(consensus, level, mean, std, lower, upper)
        if family in ("categorical", "multinomial"):
            tables = [_mean_probabilities(own) for own in zip(*(_symbols(draw) for draw in coming))]
            return StateForecast(consensus, level, probabilities=tables[0] if len(tables) == 1 else tables)
        weights, parts = _all_parts(family, list(coming))
        return replace(mix_parts(parts, weights, level), states=consensus)

    def _consensus_states(
        self, X: Any, horizon: int, lengths: ArrayLike | None, groups: ArrayLike | None
    ) -> NDArray[np.float64]:
        opened = self._open(X, lengths, groups)
        if self.durations is not None:
            longest = int(np.diff(opened.offsets).max()) + horizon
            return np.asarray(opened._replace(law=self._segment_law(longest)).coming(horizon))
        log_filtered, _ = opened.filter()
        return state_probabilities(np.exp(log_filtered), opened.offsets, self._model()[1], horizon)

    def _each_draw(
        self, rng: np.random.Generator, observed: Observations, offsets: Integers, horizon: int, n_draws: int
    ) -> Iterator[Coming]:
        """Draws in turn, each with parameters of its own."""
        kept = self.posterior_draws_
        for place in np.arange(n_draws) * max(len(kept), n_draws) // n_draws % len(kept):
            draw = kept[place]
            parameters = draw_parameters(rng, self.model_, draw["sums"])
            log_density = np.ascontiguousarray(observed.log_density(parameters))
            if self.durations is None:
                rows = draw_weights(rng, draw["rows"])
                yield _steps(rng, parameters, rows, log_density, offsets, horizon)
            else:
                law = _drawn_law(rng, str(self.durations), draw, int(np.diff(offsets).max()) + horizon)
                yield _segments(rng, parameters, law, log_density, offsets, horizon)


def _steps(
    rng: np.random.Generator, parameters: list[Any], rows: Array, log_density: Array, offsets: Integers, horizon: int
) -> Coming:
    """States of a Markov chain."""

    def states() -> Array:
        _, filtered = filter_steps(rows, log_density, offsets)
        chain = HMMParameters(rows[-1], rows[:-1], None, rows[-1])
        return state_probabilities(filtered[:, : rows.shape[1]], offsets, chain, horizon)

    first = states()[:, 0]
    cumulative = np.cumsum(rows, axis=1)

    def paths(n: int, n_paths: int) -> Integers:
        out = np.empty((n_paths, horizon), dtype=np.int64)
        out[:, 0] = rng.choice(first.shape[1], size=n_paths, p=first[n] / first[n].sum())
        for step in range(1, horizon):
            sums = cumulative[out[:, step - 1]]
            passed = (rng.random((n_paths, 1)) * sums[:, -1:] >= sums).sum(axis=1)
            out[:, step] = np.minimum(passed, first.shape[1] - 1)
        return out

    return Coming(parameters, states, paths)


def _drawn_law(rng: np.random.Generator, durations: str, draw: dict[str, Any], longest: int) -> Any:
    """Probabilities of segments of up to so many steps, the rows drawn."""
    from pluri.sequences.infinite.explicit_durations.durations import duration_model
    from pluri.sequences.infinite.explicit_durations.sampler import draw_segment_rows
    from pluri.sequences.infinite.explicit_durations.segments import segment_law

    rows = draw_segment_rows(rng, draw["rows"], 0.0, np.ones(draw["rows"].shape[1]))
    tables = duration_model(durations, None, np.array([0, longest])).tables(draw["durations"], longest)
    return segment_law(rows[-1], rows[:-1], tables)


def _segments(
    rng: np.random.Generator, parameters: list[Any], law: Any, log_density: Array, offsets: Integers, horizon: int
) -> Coming:
    """States with durations."""
    from pluri.sequences.infinite.explicit_durations.segments import ObservedSegments, draw_continuations

    def paths(n: int, n_paths: int) -> Integers:
        return draw_continuations(rng, law, log_density[offsets[n] : offsets[n + 1]], horizon, n_paths)

    return Coming(parameters, lambda: ObservedSegments(law, log_density, offsets).coming(horizon), paths)


def _symbols(draw: Coming) -> list[Array]:
    """Probabilities of the symbols of each column: (n_sequences, horizon, n_symbols) each."""
    states = draw.states()
    return [states @ np.exp(own.location) for own in draw.parameters]


def _mean_probabilities(tables: Any) -> Array:
    mean = np.mean(tables, axis=0)
    return np.asarray(mean / mean.sum(axis=-1, keepdims=True))


def _all_parts(family: str, draws: list[Coming]) -> tuple[Array, Parts]:
    """States of all draws side by side: their probabilities (n_sequences, horizon, all), and their distributions."""
    from scipy import stats  # half a second to import

    weights = np.concatenate([draw.states() for draw in draws], axis=-1) / len(draws)
    location, spread = (
        np.concatenate([np.concatenate([own[which] for own in _columns(family, draw)], axis=1) for draw in draws])
        for which in (0, 1)
    )
    if family in ("gaussian", "diag"):
        distribution = stats.norm(location, np.sqrt(spread))
    else:
        distribution = stats.poisson(spread) if family == "poisson" else stats.bernoulli(np.exp(location))
    n = weights.shape[-1]
    return weights, Parts(distribution, np.arange(n), np.ones(n), family in ("poisson", "bernoulli"))


def _columns(family: str, draw: Coming) -> list[tuple[Array, Array]]:
    """What the distributions of the columns are made of, by likelihood: (K, n_columns) arrays."""
    if family != "gaussian":
        return [(own.location, own.spread) for own in draw.parameters]
    return [(own.location, (own.spread**2).sum(axis=2)) for own in draw.parameters]


def _last_rows(rows: Array, offsets: Integers, model: ObservationModel) -> Array:
    """The last rows of each sequence, newest first, which the step after it regresses on: (n_sequences, order * d)."""
    size = model.order * model.n_features
    lags = np.empty((len(offsets) - 1, size))
    for n, (begin, end) in enumerate(pairwise(offsets.tolist())):
        row = rows[end - 1] if end > begin else np.full(rows.shape[1], np.nan)
        lags[n] = np.concatenate([row[1 + size :], row[1 : 1 + size]])[:size]
        if np.isnan(lags[n]).any():
            raise ValueError(
                f"the last {model.order} rows of sequence {n} must be complete for a forecast, got a missing value or "
                "fewer rows"
            )
    return lags


def _futures(
    rng: np.random.Generator, draws: Iterator[Coming], lags: Array, horizon: int, level: float
) -> tuple[Array, Array, Array, Array]:
    """Lower bounds, means, deviations and upper bounds of drawn futures: (n_sequences, horizon, d) each."""
    drawn = np.concatenate([np.stack([_regressed(rng, draw, n, lags[n], horizon) for n in range(len(lags))])
                            for draw in draws], axis=1)  # fmt: skip
    lower, upper = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=1)
    return lower, drawn.mean(axis=1), drawn.std(axis=1), upper


def _regressed(rng: np.random.Generator, draw: Coming, n: int, lags: Array, horizon: int) -> Array:
    """Futures of one sequence under one draw: (n_futures, horizon, d)."""
    coefficients, root = draw.parameters[0]
    paths = draw.paths(n, FUTURES)
    before, out = np.tile(lags, (FUTURES, 1)), np.empty((FUTURES, horizon, root.shape[1]))
    for step, states in enumerate(paths.T):
        own, noise = coefficients[states], rng.standard_normal((FUTURES, root.shape[1]))
        out[:, step] = own[:, :, 0] + np.einsum("ndp,np->nd", own[:, :, 1:], before)
        out[:, step] += np.einsum("nij,nj->ni", root[states], noise)
        before = np.concatenate([out[:, step], before], axis=1)[:, : lags.shape[0]]
    return out
