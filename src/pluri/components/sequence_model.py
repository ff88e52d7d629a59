"""What users pass to a model of sequences: arrays with lengths or groups, lists of sequences, and starting values."""

from __future__ import annotations

import copy
import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, validate_data

from pluri.validation import check_width, refuse_dates, unmasked
from pluri.validation.estimator import Estimator
from pluri.validation.inputs import refuse_words, warn_of_gaps
from pluri.validation.sequences import (
    called_by_scikit_learn,
    check_not_lost,
    check_sequence_lengths,
    is_sequence_list,
    join_sequences,
    lengths_in_second_place,
    may_be_rows,
    refuse_streams,
    sequence_lengths,
)

Integers = NDArray[np.int64]


class TakesSequences(Estimator):
    """The part of a model of sequences that turns X into one array, sequences end to end, and their lengths."""

    #: Whether one row is as far from the next as any, so that a gap in a data frame's times matters.
    _equal_steps: ClassVar[bool] = False
    #: What to do with what was passed as `y`, which is ignored.
    _instead_of_y: ClassVar[str] = "pass lengths of sequences as lengths="

    def _n_features_of_parameters(self) -> int:
        """Number of features that parameters set by hand are made for."""
        raise NotImplementedError  # abstract

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        """X as a two-dimensional array that the family accepts; NaN marks a missing value."""
        return self._validated(X, fitting)

    def _validated(self, X: Any, fitting: bool, **options: Any) -> NDArray[Any]:
        options = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"} | options
        refuse_dates(X)
        refuse_stacked(X)
        if options["dtype"] not in (None, "numeric"):
            refuse_words(X)
        if fitting or hasattr(self, "n_features_in_"):
            return np.asarray(validate_data(self, X, reset=fitting, **options))
        # Parameters set by hand: nothing was fitted that could tell the number of features.
        data = np.asarray(check_array(X, **options))
        check_width(data, self._n_features_of_parameters())
        return data

    def _sequences(self, X: Any, lengths: ArrayLike | None, *, fitting: bool) -> tuple[NDArray[Any], Integers]:
        refuse_streams(X)
        if self._equal_steps:
            warn_of_gaps(X)
        X = unmasked(X)
        if is_sequence_list(X) and not self._are_rows(X, lengths, fitting):
            if lengths is not None:
                raise ValueError("lengths must be None when X is a list of sequences")
            X, lengths = join_sequences(X)
        data = self._check_data(X, fitting=fitting)
        return data, check_sequence_lengths(lengths, len(data))

    def _boundaries(self, X: Any, y: Any, lengths: ArrayLike | None, groups: ArrayLike | None) -> ArrayLike | None:
        """Lengths of the sequences that `fit` was given in one of three ways; says so if `y` holds something else."""
        given = sequence_lengths(X, lengths, groups)
        found = lengths_in_second_place(y, given, X)
        if y is not None and (found is None or found is given) and not called_by_scikit_learn():
            warnings.warn(
                f"y is ignored: {type(self).__name__} learns without it; {self._instead_of_y}",
                UserWarning,
                stacklevel=4,
            )
        check_not_lost(X, found, fitting=True)
        return found

    def _are_rows(self, X: Any, lengths: ArrayLike | None, fitting: bool) -> bool:
        """Whether a list of plain lists is a matrix: where it cannot be meant as sequences of one feature."""
        if not may_be_rows(X):
            return False
        if lengths is not None or (not fitting and self._known_width() == len(X[0])):
            return True
        if fitting and not get_tags(self).input_tags.categorical and not isinstance(X[0][0], str):
            warnings.warn(
                f"X, a list of {len(X)} lists of {len(X[0])} numbers, is read as {len(X)} sequences with one feature: "
                "for the rows of a matrix pass numpy.array(X), for sequences a list of arrays",
                UserWarning,
                stacklevel=6,
            )
        return False

    def _known_width(self) -> int | None:
        """Number of features of a model that is fitted or set by hand; None for any other."""
        width = getattr(self, "n_features_in_", None)
        try:
            return self._n_features_of_parameters() if width is None else int(width)
        except (AttributeError, IndexError):  # none set, or of a shape that is refused later
            return None

    def _observations(self, X: Any, lengths: ArrayLike | None) -> tuple[NDArray[Any], Integers]:
        return self._sequences(X, lengths, fitting=False)


def refuse_stacked(X: Any) -> None:
    """Refuse sequences in an array with three axes, of which nobody can tell which one is time."""
    if getattr(X, "ndim", 2) == 3:
        n, length, width = X.shape
        raise ValueError(
            f"Found array with dim 3: X must have two axes, or be a list of sequences, got shape {X.shape}: pass "
            f"list(X) for {n} sequences of {length} time steps and {width} features, or list(X.transpose(0, 2, 1)) if "
            "time is the last axis"
        )


def warn_of_empty_columns(X: NDArray[Any], stacklevel: int = 5) -> None:
    """Say so where a column has no value at all: a model that takes holes has nothing to fill these with."""
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        warnings.warn(
            f"columns {empty.tolist()} of X hold no value: nothing is learned of them, and what is predicted or filled "
            "in there means nothing",
            UserWarning,
            stacklevel=stacklevel,
        )


class StartingValues:
    """For an estimator with `params` and `init_params`, letters that stand for fitted attributes.

    The argument ``means_init`` is the starting value of the attribute ``means_``; an attribute that was set by hand is
    one if its letter is not in `init_params`.
    """

    init_params: str
    warm_start: bool

    def _parameter_names(self) -> dict[str, str]:
        """Letters of `params`, and the attributes they stand for."""
        raise NotImplementedError  # abstract

    def _hand_set(self) -> dict[str, Any]:
        """Attributes that were set and that `init_params` does not ask to initialise."""
        names, initialized = self._parameter_names(), getattr(self, "init_params", "".join(self._parameter_names()))
        return {
            name: getattr(self, name)
            for letter, name in names.items()
            if letter not in initialized and hasattr(self, name)
        }

    def _given(self) -> dict[str, Any]:
        """Starting values: constructor arguments, which are set as attributes, and attributes set by hand."""
        names = self._parameter_names()
        arguments = {name: getattr(self, f"{name}init", None) for name in names.values()}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        lost = [
            name
            for letter, name in names.items()
            if hasattr(self, name) and letter in self.init_params and name not in arguments
        ]
        if hasattr(self, "history_"):
            if self.warm_start:
                return self._hand_set()  # the fit goes on from what it found
        elif lost:
            warnings.warn(
                f"{', '.join(lost)} were set but will be overwritten during initialization: take their letters out of "
                f"init_params ({self.init_params!r}) to start from them",
                UserWarning,
                stacklevel=6,
            )
        for name, value in arguments.items():
            setattr(self, name, copy.deepcopy(value))
        return self._hand_set() | {name: getattr(self, name) for name in arguments}
