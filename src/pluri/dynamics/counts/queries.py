"""What a fitted count dynamical system says of sequences of counts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from pluri.dynamics.counts import held_out
from pluri.dynamics.counts.learning import CountProblem, infer_paths
from pluri.dynamics.counts.paths import PathPosterior
from pluri.dynamics.counts.prediction import ThetaDistribution, expected_counts
from pluri.dynamics.counts.records import SystemParameters
from pluri.dynamics.counts.regression import ImpossibleCountWarning
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


@dataclass(frozen=True, eq=False)
class StatePosterior:
    """Gaussian distribution of the states given counts.

    Attributes
    ----------
    mean : array of shape (n_samples, n_components)
    covariance : array of shape (n_samples, n_components, n_components)
    lagged : array of shape (n_samples, n_components, n_components)
        Covariance of the next state with this one; 0 in the last step of a sequence.
    bound : array of shape (n_sequences,)
        Lower bound of the log-likelihood (Laplace's approximation to it for ``inference="laplace"``).
    duality_gap : array of shape (n_sequences,)
        Largest amount by which the bound may fall short of its optimum, certified by the dual problem; NaN without
        ``elbo="jensen"``.
    lengths : array of shape (n_sequences,)
    """

    mean: Array
    covariance: Array
    lagged: Array
    bound: Array
    duality_gap: Array
    lengths: Integers


class CountQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a fitted system. A subclass gives `_parameters_and_problem` and `_observations`."""

    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__transform: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES | {"sample_weight": True}

    random_state: Any
    mean_counts_: Array
    typical_length_: int

    def _fitted(self) -> tuple[SystemParameters, CountProblem]:
        raise NotImplementedError  # abstract

    def _observations(self, X: Any, lengths: ArrayLike | None) -> tuple[NDArray[Any], Integers]:
        raise NotImplementedError  # abstract

    def _open(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[SystemParameters, CountProblem, Array, Integers]:
        lengths = sequence_lengths(X, lengths, groups)
        check_not_lost(X, lengths, fitting=False)
        params, problem = self._fitted()
        data, given = self._observations(X, lengths)
        longest, allowed = int(given.max(initial=0)), len(params.states.drift) + 1
        if problem.n_times and longest > allowed:
            raise ValueError(
                f"X must hold sequences of at most {allowed} steps, for which there is a mean that varies in time, got "
                f"{longest}"
            )
        return params, problem, problem.prepare(data), offsets_of(given)

    def _with_room(
        self, params: SystemParameters, problem: CountProblem, counts: Array
    ) -> tuple[SystemParameters, CountProblem]:
        """Parameters with tables that reach as far as these counts do, if the model sets no limit."""
        return params, problem

    def _paths(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[SystemParameters, PathPosterior, Array, Integers]:
        params, problem, counts, offsets = self._open(X, lengths, groups)
        params, problem = self._with_room(params, problem, counts)
        return params, problem.posterior(params, counts, offsets), counts, offsets

    def posterior(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> StatePosterior:
        """Distribution of the states at each step, given the whole sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            Counts, NaN where one is missing.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X; one sequence if neither `lengths` nor `groups` is given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other.

        Returns
        -------
        posterior : `StatePosterior`
        """
        params, problem, counts, offsets = self._open(X, lengths, groups)
        params, problem = self._with_room(params, problem, counts)
        found, gap = infer_paths(problem.model, problem.inference, params, counts, offsets)
        return StatePosterior(
            found.mean, found.covariance, found.lagged, found.bound, gap, np.diff(offsets).astype(np.int64)
        )

    def transform(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Posterior means of the states: (n_samples, n_components). Arguments as in `posterior`."""
        return self._paths(X, lengths, groups)[1].mean

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Expected counts at each step given the whole sequence: (n_samples, n_features).

        A missing count is predicted from the others. Arguments as in `posterior`.
        """
        params, found, _, _ = self._paths(X, lengths, groups)
        theta = ThetaDistribution.of(params.observation.loadings, found.mean, found.covariance)
        return self._silenced(expected_counts(params.observation, theta).mean)

    def _silenced(self, values: Array) -> Array:
        """Neurons that were silent in the fit stay so."""
        silent = self.mean_counts_ == 0
        return np.where(silent, 0.0, values) if silent.any() else values

    def score_sequences(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Lower bound of the log-likelihood of each sequence: (n_sequences,). Arguments as in `posterior`.

        For ``inference="laplace"`` it is Laplace's approximation, which bounds nothing. It is -inf, with a warning, for
        counts that the model holds for impossible, and leaves out neurons that were silent in the fit.
        """
        return self._bounds(X, sequence_lengths(X, lengths, groups), None)

    def _bounds(self, X: Any, lengths: ArrayLike | None, sequence_weight: ArrayLike | None) -> Array:
        """Bounds times weights; impossible counts of no weight are none."""
        params, problem, counts, offsets = self._open(X, lengths, None)
        weight = check_sequence_weight(sequence_weight, np.diff(offsets))
        bound = problem.posterior(params, counts, offsets).bound.copy()
        weight = np.ones(len(bound)) if weight is None else weight
        # A sequence has the score that it has alone, whatever counts others hold.
        for s in np.flatnonzero(np.isneginf(bound) & (weight > 0)).tolist():
            own = counts[offsets[s] : offsets[s + 1]]
            wide, alone = self._with_room(params, problem, own)
            bound[s] = alone.posterior(wide, own, np.array([0, len(own)])).bound[0]
        weighed = np.where(weight > 0, bound, 0.0) * weight
        if np.isneginf(weighed).any():
            self._warn_of_impossible(params, counts[np.repeat(weight > 0, np.diff(offsets))])
        return weighed

    def _warn_of_impossible(self, params: SystemParameters, counts: Array) -> None:
        g = params.observation.g
        whole = np.where(np.isnan(counts), 0.0, counts).astype(np.int64)
        possible = np.isfinite(g[np.arange(len(g)), np.minimum(whole, g.shape[1] - 1)]) & (whole < g.shape[1])
        t, i = np.argwhere(~possible)[0]
        warnings.warn(
            f"X holds counts that the model holds for impossible, such as {whole[t, i]} in column {i}, so that its "
            "log-likelihood is -inf: fit with a larger max_count and a positive smoothness",
            ImpossibleCountWarning,
            stacklevel=5,
        )

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
        """Lower bound of the log-likelihood of all sequences together; see `score_sequences`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : ignored
            For scikit-learn; lengths of sequences are also taken here, as in hmmlearn.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `posterior`.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence, as in `fit`; also taken under the name ``sample_weight``.

        Returns
        -------
        bound : float
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        lengths = lengths_in_second_place(y, lengths if groups is None else sequence_lengths(X, lengths, groups), X)
        return float(self._bounds(X, lengths, sequence_weight).sum())

    def leave_one_neuron_out(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> held_out.LeaveOneNeuronOut:
        """Predict the counts of each neuron from those of the others. Arguments as in `posterior`.

        Returns
        -------
        predictions : `LeaveOneNeuronOut`
            With ``mse``, ``nll`` and by how many per cent they are below those of Poisson counts of constant rates.
        """
        params, problem, counts, offsets = self._open(X, lengths, groups)
        params, problem = self._with_room(params, problem, counts)
        return held_out.leave_one_neuron_out(problem, params, counts, offsets, self.mean_counts_)
