"""How alike the columns of a measured dictionary are: the more, the harder it is to tell which atoms made a signal.

Recovery of a k-sparse code is certain if ``k < (1 + 1 / gram_coherence) / 2`` (Donoho and Elad 2003, Optimally sparse
representation in general dictionaries via l1 minimization, PNAS 100); in practice it works far beyond.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

Array = NDArray[np.float64]


def mutual_coherence(projection: Any, dictionary: Any) -> float:
    """Largest absolute cosine between a row of a projection and an atom.

    Parameters
    ----------
    projection : array-like of shape (n_measurements, n_features)
    dictionary : array-like of shape (n_atoms, n_features)
        Atoms as rows.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sensing import mutual_coherence
    >>> round(mutual_coherence(np.ones((1, 4)), np.eye(4)), 6)  # an atom is spread evenly over what is measured
    0.5
    """
    rows = _unit_rows(projection, "projection")
    atoms = _unit_rows(dictionary, "dictionary")
    if rows.shape[1] != atoms.shape[1]:
        raise ValueError(
            f"projection and dictionary must have the same features, got {rows.shape[1]} and {atoms.shape[1]}"
        )
    return float(np.abs(rows @ atoms.T).max())


def gram_coherence(Phi: Any) -> float:
    """Largest absolute cosine between two columns of a measured dictionary.

    Parameters
    ----------
    Phi : array-like of shape (n_measurements, n_atoms)

    Returns
    -------
    float
        Between 0 and 1; 0 for a single column.
    """
    cosines = _cosines(Phi)
    return float(cosines.max(initial=0.0))


def averaged_coherence(Phi: Any, threshold: float = 0.0) -> float:
    """Mean of the absolute cosines between columns of a measured dictionary that are at least a threshold.

    Parameters
    ----------
    Phi : array-like of shape (n_measurements, n_atoms)
    threshold : float, default=0.0
        Between 0 and 1. Elad (2007, Optimized projections for compressed sensing) uses 0.2.

    Returns
    -------
    float
        0 if no pair of columns reaches the threshold.
    """
    if not (np.ndim(threshold) == 0 and 0 <= threshold <= 1):
        raise ValueError(f"threshold must be a number between 0 and 1, got {threshold!r}")
    cosines = _cosines(Phi)
    kept = cosines[cosines >= threshold]
    return float(kept.mean()) if kept.size else 0.0


def _unit_rows(values: Any, name: str) -> Array:
    rows = check_array(values, dtype=np.float64, input_name=name)
    norms = np.linalg.norm(rows, axis=1)
    if not norms.all():
        raise ValueError(f"{name} must have no row of zeros, got one at {int(np.argmin(norms))}")
    return np.asarray(rows / norms[:, None])


def _cosines(Phi: Any) -> Array:
    """Absolute cosines of all pairs of columns, each pair once."""
    columns = _unit_rows(check_array(Phi, dtype=np.float64, input_name="Phi").T, "Phi (transposed)")
    above = np.triu_indices(len(columns), 1)
    return np.asarray(np.minimum(np.abs(columns @ columns.T)[above], 1.0))
