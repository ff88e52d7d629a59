"""What comes after a sequence whose transitions inputs drive, given the inputs to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.sequences.driven.regime_forecast import ForecastsBySimulation, inputs_to_come, simulated
from pluri.sequences.forecasting import StateForecast, observations_of
from pluri.validation import Number, RandomState, as_generator, check_count, check_value
from pluri.validation.sequences import sequence_lengths

Array = NDArray[np.float64]


class ForecastsDriven:
    """The method `forecast` of `DrivenHMM`."""

    _open: Callable[..., Any]
    _model: Callable[[], Any]
    _observations: Callable[..., Any]
    _split: Callable[..., Any]
    transition_matrices: Callable[[ArrayLike], Array]
    transition_coef_: Array
    hmm_: Any
    random_state: Any

    def forecast(
        self,
        X: Any,
        horizon: int = 1,
        lengths: ArrayLike | None = None,
        *,
        level: float = 0.9,
        groups: ArrayLike | None = None,
        future_transition_inputs: ArrayLike | None = None,
        future_inputs: ArrayLike | None = None,
        n_predictive: int = 5000,
        random_state: RandomState = None,
    ) -> StateForecast:
        """Tell what comes after the end of each sequence: states exactly, given the inputs to come.

        The parameters are taken as known: an interval does not say how well they were estimated.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            With the inputs, as in `fit`.
        horizon : int, default=1
            Steps to look ahead.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `fit`.
        level : float, default=0.9
            Probability of the intervals.
        future_transition_inputs : array of shape (horizon, n_inputs) or (n_sequences, horizon, n_inputs)
            Inputs of the transitions to come; the first row drives the transition from the last step of X.
        future_inputs : array of shape (horizon, n) or (n_sequences, horizon, n), optional
            Inputs of the emissions, if `hmm` is a model that has them.
        n_predictive : int, default=5000
            Futures that are drawn of each sequence where `hmm` regresses on inputs or on the last observations; of
            other models observations are told exactly.
        random_state : int or Generator, optional
            That of the model by default.

        Returns
        -------
        forecast : StateForecast
            Its means, deviations and bounds are those of what `hmm` describes.

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.sequences import DrivenHMM, GaussianHMM
        >>> model = DrivenHMM(GaussianHMM(2), transition_inputs=[1])
        >>> model.hmm_ = GaussianHMM(2)
        >>> model.hmm_.startprob_, model.hmm_.transmat_ = np.array([0.5, 0.5]), np.array([[0.5, 0.5], [0.5, 0.5]])
        >>> model.hmm_.means_, model.hmm_.covars_ = np.array([[0.0], [10.0]]), np.ones((2, 1))
        >>> model.transition_coef_ = np.array([[[0.0], [1.0]], [[1.0], [0.0]]])  # the input makes states change
        >>> coming = model.forecast([[0.1, 0.0], [-0.3, 0.0]], horizon=2, future_transition_inputs=[[2.0], [-2.0]])
        >>> coming.states.round(2)
        array([[[0.12, 0.88],
                [0.21, 0.79]]])
        """
        check_count(horizon, "horizon")
        check_count(n_predictive, "n_predictive")
        check_value(level, "level", Number(above=0, below=1))
        opened = self._open(X, lengths, groups)
        log_filtered, scores = opened.filter()
        if np.isneginf(scores).any():
            raise ValueError(f"sequence {int(np.argmin(scores))} has probability zero under the model: no forecast")
        emission, parameters = self._model()
        offsets, q = opened.offsets, self.transition_coef_.shape[2]
        given = inputs_to_come(future_transition_inputs, len(offsets) - 1, horizon, q, "future_transition_inputs")
        moves = self.transition_matrices(given.reshape(-1, q)).reshape(*given.shape[:2], -1, len(parameters.start))
        states = np.empty(moves.shape[:3])
        last = np.exp(log_filtered[offsets[1:] - 1])
        states[:, 0] = np.einsum("nk,nkl->nl", last, moves[:, 0])
        states[np.diff(offsets) == 0, 0] = parameters.start  # the first step, which no input drives, is still to come
        for step in range(1, horizon):
            states[:, step] = np.einsum("nk,nkl->nl", states[:, step - 1], moves[:, step])
        if not isinstance(self.hmm_, ForecastsBySimulation):
            if future_inputs is not None:
                raise ValueError("future_inputs must be None: the emissions have no inputs")
            return observations_of(emission, parameters.emission, states, level)
        data, counts = self._observations(X, sequence_lengths(X, lengths, groups))
        rest = self.hmm_._observations(self._split(data, counts)[0], counts)[0]
        rng = as_generator(self.random_state if random_state is None else random_state)
        return simulated(self.hmm_, (states, moves), (rest, offsets), future_inputs, level, n_predictive, rng)
