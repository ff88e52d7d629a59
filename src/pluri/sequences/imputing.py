"""Missing values of sequences filled, exactly: given all that was seen before, after and beside them.

The probabilities of the states at a step are smoothed; given a state, a value that is missing has its conditional mean
given the values of its row that are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.imputation import Filled
from pluri.validation.sequences import sequence_lengths

Array = NDArray[np.float64]


class ImputesObservations:
    """The method `impute` of hidden Markov models whose observations depend on the state alone."""

    predict_proba: Callable[..., Array]
    _model: Callable[[], Any]
    _observations: Callable[..., Any]

    def impute(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        return_std: bool = False,
    ) -> Any:
        """X with each missing value replaced by its mean given everything that was seen of its sequence.

        The parameters are taken as known: a standard deviation does not say how well they were estimated.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            NaN marks a missing value. Sequences come back end to end.
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            See `score_sequences`.
        return_std : bool, default=False
            Whether to give the standard deviations too, 0 where a value was seen. Symbols have none.

        Returns
        -------
        filled : array of shape (n_samples, n_features)
            Of counts the expected number, of zeros and ones the probability of a one, of symbols the most probable.
        std : array of shape (n_samples, n_features)
            If `return_std`.

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.sequences import PoissonHMM
        >>> model = PoissonHMM(2)
        >>> model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> model.lambdas_ = np.array([[1.0], [20.0]])
        >>> filled, std = model.impute([[0], [np.nan], [19], [np.nan], [22]], return_std=True)
        >>> filled.round(1).ravel(), std.round(1).ravel()
        (array([ 0. , 10.5, 19. , 19.8, 22. ]), array([ 0. , 10. ,  0. ,  4.9,  0. ]))
        """
        lengths = sequence_lengths(X, lengths, groups)
        filled = fill_rows(self._model(), self._observations(X, lengths)[0], self.predict_proba(X, lengths), return_std)
        return filled.answer(return_std) if isinstance(filled, Filled) else filled


def fill_rows(model: tuple[Any, Any], rows: NDArray[Any], posterior: Array, return_std: bool) -> Filled | NDArray[Any]:
    """Rows of the emissions filled, given the probabilities of the states: numbers with variances, or symbols."""
    emission, parameters = model
    filled = emission.impute(parameters.emission, emission.prepare(rows), posterior)
    if return_std and not isinstance(filled, Filled):
        raise ValueError("return_std must be False: symbols have no standard deviation")
    return filled
