"""What the model of an optimizer answers: the function at any point, and what an evaluation there is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.bayesian_optimization.choosing import Chooser
from pluri.decisions.bayesian_optimization.history import History
from pluri.decisions.bayesian_optimization.space import Space
from pluri.decisions.bayesian_optimization.surrogate import Surrogate

Array = NDArray[np.float64]


class ModelAnswers:
    """Questions to the model of an optimizer."""

    space: Space
    _history: History
    _chooser: Chooser

    @property
    def surrogate_(self) -> Surrogate:
        """The model of the function, given all evaluations."""
        if not self._chooser.models():
            raise AttributeError("there is no model yet: no evaluation has succeeded")
        return self._chooser.models()[0]

    def acquisition_values(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Acquisition at some points, given all evaluations and points under way; for "thompson" a drawn function.

        Parameters
        ----------
        points : list of dicts

        Returns
        -------
        array of shape (n_points,)
        """
        return self._chooser.acquisition_at(self.space.rows(points))

    def predict(self, points: Sequence[Mapping[str, Any]]) -> tuple[Array, Array]:
        """Mean and standard deviation of the function at some points.

        Parameters
        ----------
        points : list of dicts

        Returns
        -------
        mean, std : arrays of shape (n_points,)
        """
        mean, std = self.surrogate_.moments(self.space.rows(points))
        return self._history.sign * mean, std
