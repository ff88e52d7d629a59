"""A matrix of similarities as the covariance of a Gaussian process over the things that it compares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

Array = NDArray[np.float64]


class GramCovariance(Kernel):
    """Covariance function of numbered things, by the matrix of their similarities.

    Gaussian processes ask a covariance function for matrices of inputs. Here an input is the number of a row of `gram`,
    so that the matrix must hold all things that a process is fitted to or asked about; it has no hyper-parameters.

    Parameters
    ----------
    gram : array of shape (n, n)
        Positive semi-definite, such as ``TimeAlignmentKernel("sum", normalize=True)(X)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import ConstantKernel
    >>> from pluri.processes import GaussianProcessRegressor
    >>> from pluri.sequences import GramCovariance, TimeAlignmentKernel
    >>> X = [h * np.sin(np.linspace(0, 3, 8 + n % 5)) for n, h in enumerate(np.linspace(0, 2, 20))]
    >>> gram = TimeAlignmentKernel("sum", sigma=4.0, normalize=True)(X)
    >>> train, test = np.arange(0, 20, 2)[:, None], np.arange(1, 19, 2)[:, None]
    >>> process = GaussianProcessRegressor(ConstantKernel() * GramCovariance(gram), random_state=0)
    >>> heights = np.linspace(0, 2, 20)
    >>> mean = process.fit(train, heights[train[:, 0]]).predict(test)
    >>> bool(np.abs(mean - heights[test[:, 0]]).max() < 0.2)
    True
    """

    def __init__(self, gram: ArrayLike) -> None:
        self.gram = gram

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Similarities of the numbered things, and an empty gradient if asked for."""
        gram = self._checked()
        rows = _numbers(X, len(gram))
        found = gram[np.ix_(rows, rows if Y is None else _numbers(Y, len(gram)))]
        return (found, np.empty((*found.shape, 0))) if eval_gradient else found

    def diag(self, X: Any) -> Array:
        """Similarity of each of them with itself."""
        gram = self._checked()
        return gram.diagonal()[_numbers(X, len(gram))]

    def is_stationary(self) -> bool:
        """Numbers say nothing about distances."""
        return False

    def _checked(self) -> Array:
        gram = np.asarray(self.gram, dtype=np.float64)
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not np.isfinite(gram).all():
            raise ValueError(f"gram must be a square matrix of finite numbers, got shape {gram.shape}")
        return gram

    def __repr__(self) -> str:
        return f"GramCovariance({len(np.asarray(self.gram))} things)"


def _numbers(X: Any, n: int) -> NDArray[np.int64]:
    """Inputs (n_samples, 1) as numbers of rows of the matrix."""
    values = np.asarray(X, dtype=np.float64)
    numbers = values.astype(np.int64).ravel()
    if values.ndim != 2 or values.shape[1] != 1 or (values[:, 0] != numbers).any():
        raise ValueError(f"X must be a column of whole numbers, got shape {values.shape}")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= n):
        raise ValueError(f"X must hold numbers from 0 to {n - 1}, got {numbers.min()} to {numbers.max()}")
    return numbers
