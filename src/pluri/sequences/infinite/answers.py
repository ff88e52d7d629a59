"""What a fitted infinite hidden Markov model says: of its draws, and of new sequences.

New sequences meet a chain on the states of the consensus segmentation: transition probabilities are posterior means
given it, on these states alone, and the density of a row in a state is its posterior predictive density, parameters
integrated out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.components.chain import _path_kernels as kernels
from pluri.inference import mcmc
from pluri.metrics.partition_losses import co_clustering_matrix
from pluri.sequences.infinite.emission_draws import draw_observations, draw_parameters
from pluri.sequences.infinite.forecasts.forecast import ForecastsFromDraws
from pluri.sequences.infinite.observations import (
    Array,
    Integers,
    ObservationModel,
    lagged_rows,
    refuse_partial_rows,
    state_parts,
)
from pluri.sequences.infinite.reading import ReadsFamilies
from pluri.sequences.learning import HMMParameters
from pluri.sequences.queries import ChainQueries
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.sequences import offsets_of

#: Above this number of steps a matrix of all pairs is not made.
MOST_PAIRS = 20_000


@dataclass(frozen=True, eq=False)
class PredictiveEmission:
    """Posterior predictive densities of states, as the chain queries ask for them; parameters are their statistics."""

    model: ObservationModel

    def prepare(self, X: Array) -> Array:
        """Rows as they are."""
        return X

    def log_prob(self, parameters: Sequence[Array], X: Array, out: Array) -> None:
        """Write log densities into the first columns of `out`."""
        n_states = len(parameters[0])
        out[:, :n_states] = 0.0
        out[:, n_states:] = -np.inf
        for part, sums in zip(state_parts(self.model, X), parameters):
            out[:, :n_states] += part.log_predictive(sums, sums[:, 0])


class StateAnswers(ForecastsFromDraws, mcmc.Sampled, ChainQueries, ReadsFamilies):
    """The queries of `InfiniteHMM`."""

    inference: str
    durations: str | None
    duration_parameters_: dict[str, Array]
    implementation = "scaling"
    random_state: Any
    model_: ObservationModel
    state_sums_: list[Array]
    startprob_: Array
    transmat_: Array
    labels_: Integers
    n_states_: int
    best_chain_: int
    converged_: bool
    n_iter_: int
    data_mean_: Array
    concentration_: float
    weight_concentration_: float
    stickiness_: float

    def _model(self) -> tuple[Any, HMMParameters[Any]]:
        check_is_fitted(self, "transmat_")
        occupancy = np.bincount(self.labels_, minlength=self.n_states_).astype(np.float64)
        return PredictiveEmission(self.model_), HMMParameters(
            self.startprob_, self.transmat_, self.state_sums_, occupancy
        )

    def _n_features_of_parameters(self) -> int:
        return self.model_.n_features

    def _open(self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None = None) -> Any:
        opened = super()._open(X, lengths, groups)
        if self.durations is None:
            return opened
        from pluri.sequences.infinite.explicit_durations.segments import ObservedSegments

        densities = opened.densities(0, int(opened.offsets[-1]))[:, : self.n_states_]
        law = self._segment_law(int(np.diff(opened.offsets).max()))
        return ObservedSegments(law, np.ascontiguousarray(densities), opened.offsets)

    def _segment_law(self, longest: int) -> Any:
        """Probabilities of segments of up to so many steps, as compiled loops take them."""
        from pluri.sequences.infinite.explicit_durations.durations import duration_model
        from pluri.sequences.infinite.explicit_durations.segments import segment_law

        lasting = duration_model(str(self.durations), None, np.array([0, longest]))
        parameters = np.column_stack([self.duration_parameters_[name] for name in lasting.names])
        return segment_law(self.startprob_, self.transmat_, lasting.tables(parameters, longest))

    def _observations(self, X: Any, lengths: ArrayLike | None) -> tuple[NDArray[Any], Integers]:
        data, counts = self._sequences(X, lengths, fitting=False)
        if self.model_.family == "multinomial":
            refuse_partial_rows(data, "family='multinomial'")
        if self.model_.family == "autoregressive":
            data = lagged_rows(data, offsets_of(counts), self.model_.order)
        return data, counts

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[NDArray[Any], Integers]:
        """Draw a sequence from the model, the parameters of the states from their posterior.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : optional
            The model's own if None.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            The first rows of "autoregressive", which have no density, are the mean of the data.
        states : array of shape (n_samples,)
        """
        check_is_fitted(self, "transmat_")
        check_count(n_samples, "n_samples")
        rng = as_generator(self.random_state if random_state is None else random_state)
        states = self._sample_states(n_samples, rng)
        parameters = draw_parameters(rng, self.model_, self.state_sums_)
        given = np.tile(self.data_mean_, (n_samples, 1))
        ends = np.array([0, n_samples], dtype=np.int64)
        return self._decoded(draw_observations(rng, self.model_, parameters, states, ends, given)), states

    def _sample_states(self, n_samples: int, rng: np.random.Generator) -> Integers:
        if self.durations is not None:
            from pluri.sequences.infinite.explicit_durations.segments import draw_segments

            flat, ends = np.zeros((n_samples, self.n_states_)), np.array([0, n_samples])
            return draw_segments(rng, self._segment_law(n_samples), flat, ends)
        states = np.empty(n_samples, dtype=np.int64)
        chances = np.cumsum(self.startprob_), np.cumsum(self.transmat_, axis=1)
        kernels.sample_chain(*chances, rng.random(n_samples), -1, states)
        return states

    # Draws ------------------------------------------------------------------------------------------------------

    def _best_draws(self) -> Integers:
        """States of all steps by draw of the best chain."""
        check_is_fitted(self, "transmat_")
        if not hasattr(self, "trace_"):
            raise AttributeError("a variational fit has no draws; use inference='beam', 'direct' or 'weak_limit'")
        return self.trace_["labels"][self.best_chain_]

    def n_components_posterior(self, min_share: float = 0.0) -> Array:
        """Posterior probabilities of the number of states, from the best chain: entry k is that of k states.

        Parameters
        ----------
        min_share : float, default=0.0
            Count only states that hold at least this share of the steps: small ones come and go. 0.01 is a good value.
        """
        labels = self._best_draws()
        if not 0 <= min_share < 1:
            raise ValueError(f"min_share must be at least 0 and below 1, got {min_share!r}")
        least = max(1.0, min_share * labels.shape[1])
        numbers = np.array([(np.bincount(draw) >= least).sum() for draw in labels])
        return np.bincount(numbers) / len(numbers)

    @property
    def similarity_matrix_(self) -> NDArray[np.float32]:
        """Share of the draws of the best chain in which each pair of steps is in one state, computed when asked for."""
        labels = self._best_draws()
        if labels.shape[1] > MOST_PAIRS:
            raise ValueError(f"similarity_matrix_ is for at most {MOST_PAIRS} steps, got {labels.shape[1]}")
        return co_clustering_matrix(labels.astype(np.int64))

    @property
    def n_states_trace_(self) -> NDArray[Any]:
        """Number of states by chain and draw."""
        self._best_draws()
        return self.trace_["n_states"]

    @property
    def log_joint_trace_(self) -> NDArray[Any]:
        """Log density of observations and states by chain and draw."""
        self._best_draws()
        return self.trace_.stats["log_density"]

    def summary(self) -> str:
        """The fitted model on one page of plain text."""
        check_is_fitted(self, "transmat_")
        word = "state" if self.n_states_ == 1 else "states"
        lines = [
            f"{type(self).__name__}: {self.n_states_} {word} of {self.model_.family} rows, "
            f"{self.n_features_in_} columns",
            f"{self.inference}: {'converged' if self.converged_ else 'not converged'} after {self.n_iter_} sweeps",
            f"concentration {self.concentration_:.3g}, of the weights {self.weight_concentration_:.3g}, stickiness "
            f"{self.stickiness_:.3g}",
        ]
        if hasattr(self, "trace_"):
            numbers = self.n_components_posterior()
            likely = np.argsort(-numbers, kind="stable")[:4]
            lines.append("number of states: " + ", ".join(f"{k} ({numbers[k]:.2f})" for k in likely if numbers[k]))
        sizes = np.bincount(self.labels_, minlength=self.n_states_)
        lines += ["", "state  share   " + ("stays" if self.durations is None else "mean duration")]
        for k, size in enumerate(sizes):
            lasts = self.transmat_[k, k] if self.durations is None else self.duration_parameters_["means"][k]
            lines.append(f"{k:<5d}  {size / len(self.labels_):.4f}  {lasts:.3f}")
        return "\n".join(lines)
