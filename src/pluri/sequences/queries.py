"""What a chain whose parameters are known says of observations: scores, paths, posteriors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.chain.forward_backward import Chain
from pluri.components.family import ComponentFamily
from pluri.sequences.learning import HMMParameters, log_emission
from pluri.sequences.observed_chain import ObservedChain
from pluri.validation import Only, RandomState, as_generator, check_count, check_value
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

ALGORITHMS = ("viterbi", "map")
IMPLEMENTATIONS = ("scaling", "log")


class ChainQueries:
    """Methods of a fitted hidden Markov model (or of one whose parameters were set by hand).

    A subclass gives `_model()`: its emission family and parameters, checked, and `_observations(X, lengths)`: checked
    data and lengths.
    """

    # With metadata routing, boundaries reach the model without being asked for: without them it would be wrong.
    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    # A pipeline always names weights, if only to say that there are none.
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES | {"sample_weight": True}

    algorithm: str
    implementation: str
    random_state: Any

    def _model(self) -> tuple[ComponentFamily[Any, Any], HMMParameters[Any]]:
        raise NotImplementedError  # abstract

    def _observations(self, X: Any, lengths: ArrayLike | None) -> tuple[NDArray[Any], Integers]:
        raise NotImplementedError  # abstract

    def _open(self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None = None) -> ObservedChain:
        lengths = sequence_lengths(X, lengths, groups)
        check_not_lost(X, lengths, fitting=False)
        emission, parameters = self._model()
        data, counts = self._observations(X, lengths)
        chain = Chain.from_probabilities(parameters.start, parameters.transition)

        def densities(begin: int, end: int) -> Array:
            rows = emission.prepare(data[begin:end])
            return log_emission(emission, parameters.emission, chain, rows, None, 0, end - begin)

        return ObservedChain(chain, densities, offsets_of(counts))

    @property
    def _in_log_space(self) -> bool:
        check_value(self.implementation, "implementation", Only(*IMPLEMENTATIONS))
        return self.implementation == "log"

    def score_sequences(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Log-likelihood of each sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X; one sequence if neither `lengths` nor `groups` is given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other.

        Returns
        -------
        log_likelihood : array of shape (n_sequences,)
            -inf where the model cannot produce the sequence.
        """
        return self._open(X, lengths, groups).score(self._in_log_space)

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
        """Log-likelihood of all sequences together.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `score_sequences`.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence, as in `fit`; also taken under the name ``sample_weight``.

        Returns
        -------
        log_likelihood : float
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        lengths = lengths_in_second_place(y, lengths if groups is None else sequence_lengths(X, lengths, groups), X)
        scores = self.score_sequences(X, lengths)
        if sequence_weight is None:
            return float(scores.sum())
        weight = check_sequence_weight(sequence_weight, self._observations(X, lengths)[1])
        assert weight is not None
        return float(weight[weight > 0] @ scores[weight > 0])

    def score_samples(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> tuple[float, Array]:
        """Log-likelihood and posterior state probabilities; `lengths` and `groups` as in `score_sequences`.

        Returns
        -------
        log_likelihood : float
        posteriors : array of shape (n_samples, n_components)
        """
        scores, posteriors = self._open(X, lengths, groups).smooth(self._in_log_space)
        if np.isneginf(scores).any():
            n = int(np.argmin(scores))
            raise ValueError(f"sequence {n} has probability zero under the model: its states have no posterior")
        return float(scores.sum()), posteriors

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Posterior probability of each state at each step, given the whole sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `score_sequences`.

        Returns
        -------
        posteriors : array of shape (n_samples, n_components)
        """
        return self.score_samples(X, lengths, groups=groups)[1]

    def decode(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        algorithm: str | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> tuple[float, Integers]:
        """State path of each sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths : array of shape (n_sequences,), optional
        algorithm : {"viterbi", "map"}, optional
            The most probable path, or the most probable state at each step; the model's own if None.
        groups : array of shape (n_samples,), optional
            See `score_sequences`.

        Returns
        -------
        log_prob : float
            "viterbi": log joint probability of paths and observations. "map": sum over steps of the probability of
            the chosen state, the expected number of right states.
        states : array of shape (n_samples,)
        """
        chosen = self.algorithm if algorithm is None else algorithm
        check_value(chosen, "algorithm", Only(*ALGORITHMS))
        if chosen == "map":
            posteriors = self.predict_proba(X, lengths, groups=groups)
            return float(posteriors.max(axis=1).sum()), posteriors.argmax(axis=1).astype(np.int64)
        scores, path = self._open(X, lengths, groups).viterbi()
        if np.isneginf(scores).any():
            n = int(np.argmin(scores))
            raise ValueError(f"sequence {n} has probability zero under the model: it has no most probable path")
        return float(scores.sum()), path

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Integers:
        """Most probable states; see `decode`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `score_sequences`.

        Returns
        -------
        states : array of shape (n_samples,)
        """
        return self.decode(X, lengths, groups=groups)[1]

    def best_paths(self, X: Any, n_paths: int = 5) -> tuple[Array, Integers]:
        """The `n_paths` most probable paths of one sequence, best first (list Viterbi).

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            One sequence.
        n_paths : int, default=5

        Returns
        -------
        log_prob : array of shape (n_found,)
            Log joint probability of each path and the observations; fewer than `n_paths` if no more are possible.
        paths : array of shape (n_found, n_samples)
        """
        check_count(n_paths, "n_paths")
        opened = self._open(X, None)
        if len(opened.offsets) != 2:
            raise ValueError(f"X must be one sequence, got a list of {len(opened.offsets) - 1}")
        return opened.best_paths(n_paths)

    def sample_paths(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        n_paths: int = 1,
        random_state: RandomState = None,
        groups: ArrayLike | None = None,
    ) -> Integers:
        """State paths drawn from their posterior given the observations.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths : array of shape (n_sequences,), optional
        n_paths : int, default=1
        random_state : optional
            The model's own if None.
        groups : array of shape (n_samples,), optional
            See `score_sequences`.

        Returns
        -------
        paths : array of shape (n_paths, n_samples)
        """
        check_count(n_paths, "n_paths")
        opened = self._open(X, lengths, groups)
        return opened.sample_paths(n_paths, as_generator(self.random_state if random_state is None else random_state))

    def filter_proba(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Probability of each state at each step, given the observations up to that step.

        Returns
        -------
        filtered : array of shape (n_samples, n_components)
        """
        log_filtered, scores = self._open(X, lengths, groups).filter()
        if np.isneginf(scores).any():
            n = int(np.argmin(scores))
            raise ValueError(f"sequence {n} has probability zero under the model: its states cannot be filtered")
        return np.exp(log_filtered)
