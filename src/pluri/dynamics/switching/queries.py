"""What a switching system whose parameters are known says of observations: regimes, states, gaps, what comes next."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from pluri.components.sequence_model import TakesSequences
from pluri.dynamics.switching.forecast import LogLikelihood, SwitchingForecast, estimate_evidence, forecast_sequences
from pluri.dynamics.switching.online import OnlineSwitchingFilter
from pluri.dynamics.switching.parameters import SwitchingParameters
from pluri.dynamics.switching.smoothing import SwitchingPosterior, infer
from pluri.validation import Number, RandomState, as_generator, check_count, check_value, plain_array
from pluri.validation.sequences import (
    BOUNDARIES,
    check_not_lost,
    check_sequence_weight,
    lengths_in_second_place,
    offsets_of,
    sequence_lengths,
    weight_by_either_name,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class SwitchingQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesSequences):
    """Methods of a fitted switching system, or of one whose parameters were set by hand."""

    _equal_steps: ClassVar[bool] = True
    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__transform: ClassVar[dict[str, bool]] = BOUNDARIES
    # A pipeline always names weights, if only to say that there are none.
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES | {"sample_weight": True}

    n_components: int
    n_particles: int
    random_state: Any

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def _model(self) -> SwitchingParameters:
        """Parameters of a fitted model, checked."""
        raise NotImplementedError  # abstract

    def _open(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[SwitchingParameters, Array, Integers]:
        lengths = sequence_lengths(X, lengths, groups)
        check_not_lost(X, lengths, fitting=False)
        parameters = self._model()
        data, counts = self._observations(X, lengths)
        return parameters, plain_array(np.asarray(data, dtype=np.float64)), offsets_of(counts)

    def _posterior(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[SwitchingPosterior, SwitchingParameters, Array]:
        parameters, data, offsets = self._open(X, lengths, groups)
        q = infer(parameters, data, offsets)
        if not np.isfinite(q.elbo).all():
            n = int(np.argmin(np.isfinite(q.elbo)))
            raise ValueError(f"sequence {n} has probability zero under the model: its regimes have no posterior")
        return q, parameters, data

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Probability of each regime at each step under q, given the whole sequence.

        The variational posterior is often surer than the exact one.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            NaN marks a missing value.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X; one sequence if neither `lengths` nor `groups` is given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other.

        Returns
        -------
        probabilities : array of shape (n_samples, n_regimes)
        """
        return self._posterior(X, lengths, groups)[0].regimes

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Integers:
        """The most probable regime at each step; arguments as in `predict_proba`.

        Returns
        -------
        regimes : array of shape (n_samples,)
        """
        return self.predict_proba(X, lengths, groups=groups).argmax(axis=1).astype(np.int64)

    def transform(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Mean of the state at each step under q, given the whole sequence; arguments as in `predict_proba`.

        Returns
        -------
        states : array of shape (n_samples, n_components)
        """
        return self._posterior(X, lengths, groups)[0].mean

    def impute(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        return_std: bool = False,
    ) -> Any:
        """X with its holes filled by their expected values under q.

        Parameters
        ----------
        X, lengths, groups
            As in `predict_proba`.
        return_std : bool, default=False
            Whether to give the standard deviations under q too, 0 where a value was seen.

        Returns
        -------
        filled : array of shape (n_samples, n_features)
        std : array of shape (n_samples, n_features)
            If `return_std`.
        """
        q, parameters, data = self._posterior(X, lengths, groups)
        seen = ~np.isnan(data)
        shared = len(parameters.emission) == 1
        shares = np.ones((len(data), 1)) if shared else q.regimes
        found = [
            _conditioned(data, seen, q, C, c, R)
            for C, c, R in zip(parameters.emission, parameters.emission_offset, parameters.emission_covariance)
        ]
        mean = sum(shares[:, z, None] * expected for z, (expected, _) in enumerate(found))
        filled = np.where(seen, data, mean)
        if not return_std:
            return filled
        variance = sum(
            shares[:, z, None] * (spread + np.square(expected - mean)) for z, (expected, spread) in enumerate(found)
        )
        return filled, np.where(seen, 0.0, np.sqrt(np.maximum(variance, 0.0)))

    def score_sequences(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Evidence lower bound of each sequence; arguments as in `predict_proba`.

        Returns
        -------
        elbo : array of shape (n_sequences,)
        """
        return self._posterior(X, lengths, groups)[0].elbo

    def score(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> float:
        """Evidence lower bound of all sequences together: at most the log-likelihood, and not random.

        `log_likelihood` estimates the log-likelihood itself.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `predict_proba`.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence, as in `fit`; also taken under the name ``sample_weight``.

        Returns
        -------
        elbo : float
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        lengths = lengths_in_second_place(y, lengths if groups is None else sequence_lengths(X, lengths, groups), X)
        scores = self.score_sequences(X, lengths)
        if sequence_weight is None:
            return float(scores.sum())
        weight = check_sequence_weight(sequence_weight, self._observations(X, lengths)[1])
        assert weight is not None
        return float(weight @ scores)

    def log_likelihood(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        n_runs: int = 4,
        random_state: RandomState = None,
    ) -> LogLikelihood:
        """Estimate the log-likelihood of all sequences by Rao-Blackwellised filters with `n_particles` particles.

        The likelihood is estimated without bias by each of `n_runs` runs; their spread gives the error.

        Parameters
        ----------
        X, lengths, groups
            As in `predict_proba`.
        n_runs : int, default=4
            Independent runs of the filter, at least 2.
        random_state : optional
            The model's own if None.

        Returns
        -------
        estimate : `LogLikelihood`
            ``value`` and standard ``error``.
        """
        check_count(n_runs, "n_runs", least=2)
        parameters, data, offsets = self._open(X, lengths, groups)
        rng = as_generator(self.random_state if random_state is None else random_state)
        return estimate_evidence(parameters, data, offsets, self.n_particles, int(n_runs), rng)

    def forecast(
        self,
        X: Any,
        horizon: int,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        level: float = 0.9,
        random_state: RandomState = None,
    ) -> SwitchingForecast:
        """What comes after each sequence: a mixture over regimes, past and future.

        The Rao-Blackwellised filter with `n_particles` particles follows the sequence; each particle goes on through
        regimes drawn from the chain, with the state's distribution known exactly given these.

        Parameters
        ----------
        X, lengths, groups
            As in `predict_proba`.
        horizon : int
            Number of steps.
        level : float, default=0.9
            Probability of the intervals.
        random_state : optional
            The model's own if None.

        Returns
        -------
        forecast : `SwitchingForecast`
        """
        check_count(horizon, "horizon")
        check_value(level, "level", Number(above=0, below=1))
        parameters, data, offsets = self._open(X, lengths, groups)
        rng = as_generator(self.random_state if random_state is None else random_state)
        return forecast_sequences(parameters, data, offsets, (self.n_particles, int(horizon), float(level)), rng)

    def filter(self, random_state: RandomState = None) -> OnlineSwitchingFilter:
        """Begin a new sequence that arrives one observation at a time.

        Returns
        -------
        online : `OnlineSwitchingFilter`
            ``online.update(x)`` gives the regimes' probabilities after each observation.
        """
        state = self.random_state if random_state is None else random_state
        check = partial(_checked_row, copy.copy(self))
        return OnlineSwitchingFilter(self._model().matrices(), check, self.n_particles, state)


def _conditioned(
    X: Array, seen: NDArray[np.bool_], q: SwitchingPosterior, C: Array, c: Array, R: Array
) -> tuple[Array, Array]:
    """Means and variances (n, m) of a regime's entries given the entries beside them: noise may be correlated."""
    mean = q.mean @ C.T + c
    variance = np.einsum("ij,tjk,ik->ti", C, q.covariance, C) + np.diag(R)
    if not (R - np.diag(np.diag(R))).any():
        return mean, variance
    expected = mean.copy()
    for t in np.flatnonzero(seen.any(axis=1) & ~seen.all(axis=1)):
        here, hole = seen[t], ~seen[t]
        known = np.linalg.solve(R[np.ix_(here, here)], R[np.ix_(here, hole)]).T
        expected[t, hole] += known @ (X[t, here] - mean[t, here])
        loading = C[hole] - known @ C[here]
        left = np.diag(R[np.ix_(hole, hole)] - known @ R[np.ix_(here, hole)])
        variance[t, hole] = np.einsum("ij,jk,ik->i", loading, q.covariance[t], loading) + left
    return expected, variance


def _checked_row(model: SwitchingQueries, x: Any) -> Array:
    """One observation as a vector."""
    return plain_array(np.asarray(model._observations(np.asarray(x).reshape(1, -1), None)[0], dtype=np.float64))[0]
