"""Filtering as the data arrive: one observation in, the state probabilities out, in O(k^2) and constant memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.family import ComponentFamily
from pluri.engine.aligned import padded_width
from pluri.sequences.learning import HMMParameters

Array = NDArray[np.float64]


class OnlineFilter:
    """The running distribution of the hidden state; made by a model's ``filter()``.

    Attributes
    ----------
    probabilities : array of shape (n_components,)
        P(state now | observations so far); the start distribution before the first one.
    log_likelihood : float
        Log-likelihood of the observations so far.
    n_steps : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import GaussianHMM
    >>> model = GaussianHMM(n_components=2)
    >>> model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> model.means_, model.covars_ = np.array([[0.0], [3.0]]), np.array([[1.0], [1.0]])
    >>> online = model.filter()
    >>> online.update([2.9]).round(3)
    array([0.015, 0.985])
    >>> online.update([np.nan]).round(3)
    array([0.112, 0.888])
    """

    def __init__(
        self,
        emission: ComponentFamily[Any, Any],
        parameters: HMMParameters[Any],
        check: Callable[[Any], NDArray[Any]],
    ) -> None:
        self._emission = emission
        self._parameters = parameters
        self._check = check
        self._log_probabilities = _log(parameters.start)
        self.log_likelihood = 0.0
        self.n_steps = 0

    @property
    def probabilities(self) -> Array:
        """P(state now | observations so far): (n_components,)."""
        return np.exp(self._log_probabilities)

    def update(self, x: Any) -> Array:
        """Take one observation (n_features,), return the state probabilities (n_components,)."""
        row = self._emission.prepare(self._check(x))
        k = len(self._log_probabilities)
        log_prob = np.empty((1, padded_width(k)))
        self._emission.log_prob(self._parameters.emission, row, log_prob)
        joint = self._log_predict() + log_prob[0, :k]
        total = float(np.logaddexp.reduce(joint))
        if total == -np.inf:
            raise ValueError(f"observation {self.n_steps} has probability zero under the model: the filter stays put")
        self._log_probabilities = joint - total
        self.log_likelihood += total
        self.n_steps += 1
        return self.probabilities

    def predict(self) -> Array:
        """State probabilities at the next step, before it is observed: (n_components,)."""
        return np.exp(self._log_predict())

    def _log_predict(self) -> Array:
        # Logarithms: a state that one observation makes less likely than any double may be asked for by the next ones.
        if self.n_steps == 0:
            return self._log_probabilities
        return np.logaddexp.reduce(self._log_probabilities[:, None] + self._log_transition(), axis=0)

    def _log_transition(self) -> Array:
        """Logarithms of the transition matrix of the next step."""
        return _log(self._parameters.transition)


def _log(probabilities: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)
