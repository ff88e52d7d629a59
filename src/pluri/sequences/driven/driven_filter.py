"""Filtering a driven chain as the data arrive: one observation with its inputs in, the state probabilities out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.chain.driven import DrivenChain
from pluri.sequences.driven.columns import Layout
from pluri.sequences.driven.driven_learning import DrivenParameters, InputScale
from pluri.sequences.online import OnlineFilter

Array = NDArray[np.float64]


class DrivenFilter(OnlineFilter):
    """The running distribution of the hidden state of a `DrivenHMM`; made by its ``filter()``.

    Attributes
    ----------
    probabilities, log_likelihood, n_steps
        See `OnlineFilter`.
    """

    def __init__(
        self, plain: OnlineFilter, parameters: DrivenParameters[Any], inputs: InputScale, layout: Layout
    ) -> None:
        super().__init__(plain._emission, parameters, plain._check)
        self._chain = DrivenChain.from_probabilities(parameters.start, parameters.transition, parameters.coef)
        self._inputs = inputs
        self._layout = layout
        self._matrix = self._chain.log_transition

    def update(self, x: Any) -> Array:
        """Take one row of X, observation and inputs, return the state probabilities (n_components,)."""
        row = np.asarray(x).reshape(-1)
        if len(row) != self._layout.n_features:
            raise ValueError(f"x must have {self._layout.n_features} values, got {len(row)}")
        self._drive(row[self._layout.inputs])
        return super().update(row[self._layout.outputs])

    def predict(self, inputs: ArrayLike) -> Array:  # type: ignore[override]
        """State probabilities at the next step, whose inputs are given, before it is observed: (n_components,)."""
        self._drive(inputs)
        return super().predict()

    def _drive(self, inputs: ArrayLike) -> None:
        values = np.asarray(inputs, dtype=np.float64).reshape(1, -1)
        if values.shape[1] != len(self._layout.inputs):
            raise ValueError(f"inputs must have {len(self._layout.inputs)} values, got {values.shape[1]}")
        if self.n_steps and not np.isfinite(values).all():
            raise ValueError("inputs of the transitions must be finite")
        self._matrix = self._chain.log_matrices(self._inputs.standardized(values))[0]

    def _log_transition(self) -> Array:
        return self._matrix
