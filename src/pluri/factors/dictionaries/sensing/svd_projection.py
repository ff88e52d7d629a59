"""Projections that suit a dictionary: rows are directions that its atoms span.

With the singular value decomposition ``D' = U L V'`` of a dictionary (atoms are columns of D'), the rows of the
projection are n of the columns of U. They are orthonormal, so that white noise stays white.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pluri.factors.dictionaries.sensing.projections import check_few
from pluri.validation import Allowed, Only, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Singular values closer to each other than this share do not single out directions.
EQUAL = 1e-8


class SVDProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Projection on directions of a dictionary.

    Parameters
    ----------
    n_measurements : int, default=1
        Directions that are kept; at most the number of features.
    selection : {"top", "weighted", "random"}, default="top"
        Which: those of the largest singular values; at random without replacement, with probabilities proportional to
        the squares of the singular values; or any of them, as published, which may miss the directions in which most
        happens.
    random_state : int, Generator, RandomState or None, default=None
        Not used by "top".

    Attributes
    ----------
    components_ : array of shape (n_measurements, n_features_in_)
        The projection: orthonormal rows, in the order of falling singular values.
    singular_values_ : array of shape (n_measurements,)
        Those of the directions that were taken.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sensing import SVDProjection
    >>> D = np.random.default_rng(0).normal(size=(20, 8))  # 20 atoms of 8 features
    >>> S = SVDProjection(3).fit(D).components_
    >>> bool(np.allclose(S @ S.T, np.eye(3)))
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_measurements": Whole(1),
        "selection": Only("top", "weighted", "random"),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_kept", "n_features_in_"),
        "singular_values_": Stored("n_kept", least=0),
    }

    def __init__(
        self,
        n_measurements: int = 1,
        *,
        selection: Literal["top", "weighted", "random"] = "top",
        random_state: Any = None,
    ) -> None:
        self.n_measurements = n_measurements
        self.selection = selection
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the directions.

        Parameters
        ----------
        X : array-like of shape (n_atoms, n_features)
            The dictionary, atoms as rows.
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        atoms = validate_data(self, X, dtype=np.float64)
        n, P = int(self.n_measurements), atoms.shape[1]
        check_few(n, P)
        _, found, right = np.linalg.svd(atoms, full_matrices=True)
        values = np.zeros(P)
        values[: len(found)] = found
        if n < P and P > 1 and values[0] - values[-1] <= EQUAL * values[0]:
            warnings.warn(
                "the dictionary has equal singular values: its directions are defined up to a rotation only, "
                "and a projection on some of them suits it no better than any other",
                UserWarning,
                stacklevel=2,
            )
        rng = as_generator(self.random_state)
        if self.selection == "top":
            chosen = np.arange(n)
        elif self.selection == "random":
            chosen = np.sort(rng.choice(P, n, replace=False))
        else:
            # Without replacement by exponential clocks: the n that ring first. Directions of weight 0 never do
            # before others, so that they are taken only if nothing else is left.
            with np.errstate(divide="ignore"):
                clocks = np.log(rng.exponential(size=P)) - 2 * np.log(values)
            chosen = np.sort(np.argsort(clocks, kind="stable")[:n])
        self.components_ = np.ascontiguousarray(right[chosen])
        self.singular_values_ = values[chosen]
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Array:
        """Measurements of rows: array of shape (n_samples, n_measurements)."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False) @ self.components_.T)

    def inverse_transform(self, Y: Any) -> Array:
        """Rows of smallest norm with these measurements: array of shape (n_samples, n_features)."""
        check_is_fitted(self)
        values = check_array(Y, dtype=np.float64, input_name="Y")
        if values.shape[1] != len(self.components_):
            raise ValueError(
                f"Y must have {len(self.components_)} columns, one for each measurement, got {values.shape[1]}"
            )
        return np.asarray(values @ self.components_)
