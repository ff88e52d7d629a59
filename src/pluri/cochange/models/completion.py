"""A model of binary rows, fitted to the commits of a history, and asked for all of its files.

Files that no commit touches are left out of the fit (they say nothing, and some models cannot bear them) and get the
score zero; so do files that fell silent, such as a change log that a project gave up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

Array = NDArray[np.float64]
DAY = 86_400.0


@dataclass(frozen=True, eq=False)
class Completion:
    """A fitted model and the files it knows.

    Attributes
    ----------
    model : estimator
    columns : ndarray
        Files of the history that the model was fitted to.
    popularity : ndarray of shape (n_files,)
        Number of commits of each file.
    """

    model: Any
    columns: NDArray[np.int64]
    popularity: Array

    def scores(self, starters: Any) -> Array:
        """Scores ``(n, n_files)`` of all files, for rows of a sparse matrix of the files that are known to change."""
        known = starters[:, self.columns]
        if hasattr(self.model, "predict_missing_rows"):
            found = self.model.predict_missing_rows(known)
        else:
            spans = zip(known.indptr[:-1], known.indptr[1:])
            found = np.array([self.model.predict_missing(known.indices[start:stop]) for start, stop in spans])
        if found.shape[1] == len(self.popularity):
            return np.asarray(found)
        scores = np.zeros((known.shape[0], len(self.popularity)))
        scores[:, self.columns] = found
        return scores


def silent_files(X: Any, level: float) -> NDArray[np.bool_]:
    """Files that were once changed so often that the last commits would not all miss them by chance.

    A file in a share p of all n commits, none of them among the last m, is silent if ``(1 - p)^m < level``.

    Parameters
    ----------
    X : csr_array of shape (n_commits, n_files)
    level : float

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.cochange.models.completion import silent_files
    >>> commits = np.ones((40, 2))
    >>> commits[20:, 0] = 0
    >>> silent_files(sparse.csr_array(commits), 1e-4)
    array([ True, False])
    """
    n_commits, n_files = X.shape
    rows = np.repeat(np.arange(n_commits), np.diff(X.indptr))
    last = np.full(n_files, -1)
    np.maximum.at(last, X.indices, rows)
    share = np.bincount(X.indices, minlength=n_files) / max(n_commits, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = (n_commits - 1 - last) * np.log1p(-np.minimum(share, 1.0))
    return np.asarray((last >= 0) & (last < n_commits - 1) & (chance < np.log(level)))


def learn(
    model: Any,
    X: Any,
    times: NDArray[np.int64],
    half_life: float | None = None,
    drop_silent: float | None = None,
) -> Completion:
    """Fit a model to commits.

    Parameters
    ----------
    model : estimator
        Fitted in place.
    X : csr_array of shape (n_commits, n_files)
    times : ndarray of shape (n_commits,)
        Seconds since 1970.
    half_life : float, optional
        Days after which a commit counts half.
    drop_silent : float, optional
        Level of `silent_files` below which files are left out; None leaves none out.
    """
    popularity = np.bincount(X.indices, minlength=X.shape[1]).astype(np.float64)
    kept = popularity > 0
    if drop_silent is not None:
        heard = kept & ~silent_files(X, drop_silent)
        kept = heard if heard.sum() > 1 else kept
    columns = np.flatnonzero(kept)
    if half_life is None:
        model.fit(X[:, columns])
    else:
        if not (half_life > 0 and math.isfinite(half_life)):
            raise ValueError(f"half_life must be a positive number of days or None, got {half_life!r}")
        if not has_fit_parameter(model, "sample_weight"):
            raise ValueError(f"half_life must be None for {type(model).__name__}, which takes no weights")
        model.fit(X[:, columns], sample_weight=np.exp2((times - times[-1]) / (DAY * half_life)))
    return Completion(model, columns, popularity)
