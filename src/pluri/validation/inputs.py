"""Checks of arrays and settings that every family makes."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def is_source(X: Any) -> bool:
    """Whether X gives batches by itself."""
    return hasattr(X, "batches") and not hasattr(X, "shape")


def unmasked(X: Any) -> Any:
    """X with NaN where a masked array hides a value; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.getmaskarray(X).any():
        return np.asarray(X)
    if X.dtype.kind in "OUS":
        return np.ma.filled(X.astype(object), None)
    return np.ma.filled(X.astype(np.float64), np.nan)


def plain_array(X: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """X for compiled loops, which would be compiled again for every other layout: C order, aligned, not read-only.

    What is so already is not copied. Nor is memory that is read-only (a mapped file, or what joblib hands to its
    workers): the array that comes back looks at it without saying so, and is for loops that do not write to it.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.validation import plain_array
    >>> X = np.ones((2, 3))
    >>> X.flags.writeable = False
    >>> plain = plain_array(X)
    >>> plain.flags.writeable, np.shares_memory(plain, X), plain_array(plain) is plain
    (True, True, True)
    """
    array = np.require(X, dtype, ["C", "A", "E"])
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


class _Unlocked:
    """The memory of an array without the mark that it is read-only."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array  # which owns the memory
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def check_width(X: NDArray[Any], n_features: int) -> None:
    """Refuse rows of another width than the parameters: compiled loops do not look where they read and write."""
    if X.shape[1] != n_features:
        raise ValueError(f"X must have {n_features} features, as many as the parameters describe, got {X.shape[1]}")


def check_broadcast(name: str, value: Any, shape: tuple[int, ...], *, least: float = -np.inf) -> NDArray[np.float64]:
    """A hyper-parameter as an array of this shape; refuse what does not fit, is not finite or is below `least`."""
    try:
        array = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or fit the shape {shape}, got {value!r}") from error
    if not np.isfinite(array).all() or (array < least).any():
        bound = "" if least == -np.inf else f" and at least {least:g}"
        raise ValueError(f"{name} must be finite{bound}, got {value!r}")
    return array


def check_distributions(name: str, values: NDArray[Any]) -> None:
    """Refuse an array whose last axis does not hold distributions."""
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"{name} must be finite and non-negative")
    sums = values.sum(axis=-1)
    if not np.allclose(sums, 1.0):
        raise ValueError(
            f"{name} must sum to 1, got {sums}" if sums.ndim == 0 else f"{name} rows must sum to 1, got {sums}"
        )


def check_covariances(
    covars: NDArray[np.float64], covariance_type: str, n_components: int, n_features: int | None = None
) -> None:
    """Refuse covariances of the wrong shape, or that are not positive (definite); `n_features` is that of the means."""
    if covariance_type == "spherical":
        if covars.ndim != 1 or len(covars) != n_components:
            raise ValueError(f"'spherical' covars_ must have shape ({n_components},), got {covars.shape}")
        _check_positive(covars, covariance_type)
    elif covariance_type == "diag":
        if covars.ndim != 2 or len(covars) != n_components:
            raise ValueError(f"'diag' covars_ must have shape ({n_components}, n_features), got {covars.shape}")
        _check_positive(covars, covariance_type)
    elif covariance_type == "tied":
        if covars.ndim != 2 or covars.shape[0] != covars.shape[1]:
            raise ValueError(f"'tied' covars_ must have shape (n_features, n_features), got {covars.shape}")
        check_positive_definite(covars[None], "'tied' covars_")
    else:
        if covars.ndim != 3 or len(covars) != n_components or covars.shape[1] != covars.shape[2]:
            raise ValueError(
                f"'full' covars_ must have shape ({n_components}, n_features, n_features), got {covars.shape}"
            )
        check_positive_definite(covars, "'full' covars_")
    if n_features is not None and covariance_type != "spherical" and covars.shape[-1] != n_features:
        raise ValueError(
            f"{covariance_type!r} covars_ must have {n_features} features, as means_ does, got {covars.shape[-1]}"
        )


def _check_positive(covars: NDArray[np.float64], covariance_type: str) -> None:
    if not ((covars > 0) & np.isfinite(covars)).all():
        raise ValueError(f"{covariance_type!r} covars_ must be positive and finite, got values from {covars.min()}")


def check_positive_definite(matrices: NDArray[np.float64], name: str) -> None:
    """Refuse matrices that are not symmetric and positive definite."""
    if not np.isfinite(matrices).all():
        raise ValueError(f"{name} must be finite")
    symmetric = np.isclose(matrices, matrices.transpose(0, 2, 1)).all(axis=(1, 2))
    good = symmetric & (np.linalg.eigvalsh(matrices) > 0).all(axis=1)
    if not good.all():
        raise ValueError(f"{name} must be symmetric, positive-definite; matrix {int(np.argmin(good))} is not")


def refuse_dates(X: Any) -> None:
    """Refuse dates and durations, which NumPy would take for whole numbers, and a series in place of a table."""
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(f"X must hold numbers, got dates or durations ({X.dtype}): take differences first")
    for name, kind in getattr(getattr(X, "dtypes", None), "items", tuple)():
        if getattr(kind, "kind", None) in ("m", "M"):
            raise ValueError(
                f"X must hold numbers, got dates or durations in column {name!r}: leave it out, or make it the index"
            )
    if hasattr(X, "to_frame") and np.ndim(X) == 1:
        raise ValueError("X must be a table, got a series: X.to_frame() is a table with one column")


def refuse_words(X: Any) -> None:
    """Refuse columns of words in a data frame that must be all numbers, and name the column."""
    for name, kind in getattr(getattr(X, "dtypes", None), "items", tuple)():
        if getattr(kind, "kind", "O") in "biufc":
            continue
        word = next((cell for cell in X[name].tolist() if isinstance(cell, str) and not _is_number(cell)), None)
        if word is not None:
            raise ValueError(
                f"X must hold numbers, could not convert string to float: {word!r} in column {name!r}; leave it out, "
                "or code it, for example by sklearn.preprocessing.OrdinalEncoder"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


#: A step of so many usual ones is a gap; trading days, with weekends and holidays, have smaller ones.
GAP = 5.0


def find_gap(times: Any) -> tuple[int, Any, Any] | None:
    """Where a series of times has its largest gap: the row before it, the usual step and the gap; None without one.

    Examples
    --------
    >>> from pluri.validation.inputs import find_gap
    >>> row, usual, gap = find_gap(["2024-01-01", "2024-01-02", "2024-01-03", "2024-02-01"])
    >>> row, int(gap / usual)
    (2, 29)
    """
    steps = np.diff(np.asarray(times, dtype="datetime64[us]"))
    if len(steps) < 3 or np.isnat(steps).any():
        return None
    usual, row = np.sort(steps)[len(steps) // 2], int(steps.argmax())
    return (row, usual, steps[row]) if usual > np.timedelta64(0) and steps[row] > GAP * usual else None


def warn_of_gaps(X: Any) -> None:
    """Say so if a data frame, or one of a list, is indexed by times with a gap, for models of equal steps."""
    for frame in X if isinstance(X, list | tuple) else (X,):
        index = getattr(frame, "index", None)
        if getattr(getattr(index, "dtype", None), "kind", None) != "M":
            continue
        times = np.asarray(index, dtype="datetime64[us]")
        found = find_gap(times)
        if found is not None:
            row, usual, gap = found
            warnings.warn(
                f"X has a gap of {gap / usual:.3g} usual steps after {times[row].astype('datetime64[s]')}, but rows "
                "are taken as equally far apart: put in rows of NaN (X.asfreq), or give the pieces as a list",
                UserWarning,
                stacklevel=4,
            )


def check_counts(X: NDArray[Any]) -> NDArray[Any]:
    """Refuse negative and infinite counts; NaN is a missing value, and fractional counts are allowed."""
    # Two reductions that pass over NaN: each sweep over a source of batches checks them again.
    lowest, highest = np.fmin.reduce(X, axis=None, initial=0.0), np.fmax.reduce(X, axis=None, initial=0.0)
    if lowest < 0:
        raise ValueError(f"X must hold non-negative counts, got {lowest}: Negative values in data")
    if highest == np.inf:
        raise ValueError("X must hold finite counts, got infinity")
    return X


def warn_of_one_side(X: Any, binarize: float | None, name: str = "X") -> None:
    """Say so if all that is known of a dense X lies on one side of `binarize`, so that nothing of it is left."""
    if binarize is None or X.size == 0:
        return
    low, high = np.fmin.reduce(X, axis=None), np.fmax.reduce(X, axis=None)
    if low < high and (low > binarize or high <= binarize):
        side, digit = ("above", "ones") if low > binarize else ("at or below", "zeros")
        warnings.warn(
            f"every value of {name} (from {low:.4g} to {high:.4g}) lies {side} binarize={binarize:g}, so that all are "
            f"{digit}: set binarize to a value between them",
            UserWarning,
            stacklevel=4,
        )


Array = NDArray[np.float64]

#: Larger weights overflow when they are multiplied with squares and summed.
LARGEST_WEIGHT = 1e100


def check_row_weight(sample_weight: ArrayLike | None, n_samples: int) -> Array | None:
    """One finite, non-negative weight for each row, not all zero; None stays None."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim != 1:
        if weight.ndim == 0:
            weight = np.full(n_samples, float(weight))
        else:
            raise ValueError(f"sample_weight must be 1D, one weight for each row, got shape {weight.shape}")
    if len(weight) != n_samples:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_samples,)}: one weight for each row")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative")
    if weight.max(initial=0.0) > LARGEST_WEIGHT:
        raise ValueError(f"sample_weight must not exceed {LARGEST_WEIGHT:g}, got {weight.max():g}: divide all weights")
    if not (weight > 0).any():
        raise ValueError("sample_weight must have at least one positive weight, got only zero weights")
    return weight


def weighted_total(scores: Array, sample_weight: ArrayLike | None) -> tuple[float, float]:
    """Sum of the scores of rows, and the number of rows: as if each were written out as often as its weight says.

    A row of weight zero does not count, even if it is impossible (a score of minus infinity).
    """
    weight = check_row_weight(sample_weight, len(scores))
    if weight is None:
        return float(np.sum(scores)), float(len(scores))
    counted = weight > 0
    return float(weight[counted] @ scores[counted]), float(weight.sum())


def weighted_mean(scores: Array, sample_weight: ArrayLike | None) -> float:
    """Mean score of a row, by `weighted_total`."""
    total, n_rows = weighted_total(scores, sample_weight)
    return total / n_rows


RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn scikit-learn's ``random_state`` into a NumPy ``Generator``.

    An int gives the same stream each time, a ``Generator`` is used as it is (and so advances), a legacy
    ``RandomState`` seeds a new generator from its own stream, ``None`` takes fresh entropy.

    Examples
    --------
    >>> from pluri.validation import as_generator
    >>> bool(as_generator(3).random() == as_generator(3).random())
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint64))
    if random_state is None or (isinstance(random_state, numbers.Integral) and int(random_state) >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise ValueError(
        "random_state must be None, a non-negative int, a numpy.random.Generator or a RandomState, "
        f"got {random_state!r}"
    )
