r"""A similarity of two sequences of any lengths: the best alignment of their frames, or all alignments together.

With a kernel k of frames, steps :math:`(1, 0), (1, 1), (0, 1)` of weights 1, 2, 1 and paths from the first frames to
the last,

.. math::

    K(X, V) = \max_{\text{paths}} \frac{1}{|X| + |V|} \sum_{(i, j)} w_{ij} k(x_i, v_j)
    \qquad\text{or}\qquad
    K(X, V) = \sum_{\text{paths}} \prod_{(i, j)} \frac{k(x_i, v_j)}{2 - k(x_i, v_j)}.

Up to a factor, 1, 2, 1 are the only weights that treat both sequences alike and give all paths the same total, which
is what the first sum is divided by. The first kernel is not positive definite, whatever k is; the second one is.

References
----------
.. [1] H. Shimodaira, K. Noma, M. Nakai and S. Sagayama, "Dynamic time-alignment kernel in support vector machine",
   NIPS 2001 (the first).
.. [2] M. Cuturi, "Fast global alignment kernels", ICML 2011 (the second, with the frame kernel that makes it positive
   definite).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from pluri.sequences.alignment._kernels import best_paths
from pluri.sequences.alignment.frames import Frames, as_frames, median_distance
from pluri.sequences.alignment.gram import Comparison, gram_matrix, self_values
from pluri.validation import Allowed, Flag, Number, Only, Whole, check_parameters

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class FrameKernel:
    """What `frame_kernel` may be, for tables of parameters."""

    def holds(self, value: Any) -> bool:
        """Whether it is a name or a function."""
        return callable(value) or (isinstance(value, str) and value in ("rbf", "linear"))

    def __str__(self) -> str:
        return "'rbf', 'linear' or a function of two sequences that gives the similarities of their frames"


class TimeAlignmentKernel(BaseEstimator):
    """Similarity of sequences of any lengths, by aligning their frames.

    Parameters
    ----------
    kind : {"max", "sum", "linear"}, default="max"
        "max": mean similarity of frames along the best alignment (dynamic time-alignment kernel). "sum": the sum over
        all alignments of the products of similarities (global alignment kernel), which is positive definite with the
        frame kernel "rbf" and without `window`; its values span many orders of magnitude, so that `normalize` is
        usually wanted. "linear": both sequences are resampled to `length` frames, which are compared one by one.
    frame_kernel : {"rbf", "linear"} or callable, default="rbf"
        Similarity of two frames: ``exp(-|x - v|^2 / sigma^2)`` (without a factor 2), their inner product, or
        ``frame_kernel(x, v)``, which gives the similarities of all frames of two sequences, (n, m). A function is
        called for each pair of sequences, and is much slower. For `kind` "sum" the frame kernel "rbf", k, becomes
        k / (2 - k); a function must not be negative, and is taken as it is.
    sigma : float or "median", default=1.0
        Width of the frame kernel "rbf". "median", for estimators: the median distance of frames of the data that they
        are fitted to (times the root of the median length for `kind` "sum"); `resolve` does the same.
    max_step : int, default=1
        Frames of a sequence that a path may go on at a time; with 2 it may skip one. A path may then also begin at one
        of the first `max_step` frames.
    window : int, optional
        Half the width of the band around the straight path in frames of the shorter sequence (Sakoe and Chiba); any
        path by default.
    length : int, optional
        Frames that sequences are resampled to for `kind` "linear", which is then positive definite; those of the longer
        sequence of each pair by default, with which it is not.
    normalize : bool, default=False
        Divide by the root of the product of both self-similarities.
    n_jobs : int, optional
        Threads; None is one, -1 all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import TimeAlignmentKernel
    >>> kernel = TimeAlignmentKernel(frame_kernel="linear")
    >>> short, long = np.array([1.0, 3.0]), np.array([1.0, 2.0, 3.0])
    >>> kernel([short, long]).round(3)
    array([[5.   , 4.6  ],
           [4.6  , 4.667]])
    >>> path, score = kernel.align(long, short)
    >>> path.tolist()
    [[0, 0], [1, 1], [2, 1]]
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "kind": Only("max", "sum", "linear"),
        "frame_kernel": FrameKernel(),
        "sigma": Number(above=0) | Only("median"),
        "max_step": Whole(1),
        "window": Whole(1) | Only(None),
        "length": Whole(1) | Only(None),
        "normalize": Flag(),
    }

    def __init__(
        self,
        kind: Literal["max", "sum", "linear"] = "max",
        *,
        frame_kernel: str | Callable[[Array, Array], Any] = "rbf",
        sigma: float | Literal["median"] = 1.0,
        max_step: int = 1,
        window: int | None = None,
        length: int | None = None,
        normalize: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.frame_kernel = frame_kernel
        self.sigma = sigma
        self.max_step = max_step
        self.window = window
        self.length = length
        self.normalize = normalize
        self.n_jobs = n_jobs

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Kernel of all pairs of sequences.

        Parameters
        ----------
        X, Y : list of arrays of shape (length, n_features), or array of shape (n_sequences, length, n_features)
            Y is X by default; half of the pairs are then computed, and the matrix is exactly symmetric.

        Returns
        -------
        array of shape (n_x, n_y)
        """
        left = as_frames(X)
        return self.gram(left, None if Y is None else as_frames(Y, width=left.rows.shape[1], name="Y"))

    def gram(self, left: Frames, right: Frames | None = None, diagonal: Array | None = None) -> Array:
        """The same for sequences that were checked; `diagonal`: of the second ones, if `self_log` knows it already."""
        comparison = self._comparison()
        values = gram_matrix(comparison, left, right, self.n_jobs)
        if not self.normalize:
            return self._plain(values)
        here = np.diagonal(values).copy() if right is None else self.self_values(left)
        there = here if right is None else self.self_values(right) if diagonal is None else diagonal
        if self.kind == "sum":
            return np.asarray(np.exp(values - (here[:, None] + there) / 2.0))
        for own in (here, there):
            if not (own > 0).all():
                raise ValueError(
                    f"normalize must be False for sequences whose similarity with themselves is not positive, got "
                    f"{own.min():g}: leave out sequences of zeros, or use another frame_kernel"
                )
        return np.asarray(values / np.sqrt(here[:, None]) / np.sqrt(there))

    def self_values(self, frames: Frames) -> Array:
        """Similarity of each sequence with itself before `normalize`; its logarithm for `kind` "sum"."""
        return self_values(self._comparison(), frames, self.n_jobs)

    def diag(self, X: Any) -> Array:
        """Kernel of each sequence with itself, (n_sequences,)."""
        frames = as_frames(X)
        return np.ones(len(frames)) if self.normalize else self._plain(self.self_values(frames))

    def similarity(self, x: Any, v: Any) -> Array:
        """The frame kernel of all pairs of frames of two sequences, (n, m)."""
        first, second = self._pair(x, v)
        return self._comparison().similarity(first, second)

    def align(self, x: Any, v: Any) -> tuple[Integers, float]:
        """The best alignment of two sequences.

        Parameters
        ----------
        x, v : arrays of shape (length, n_features) or (length,)

        Returns
        -------
        path : array of shape (n_steps, 2)
            Frames of x and v that belong together, from 0; of equally good steps the one along both sequences is taken.
        score : float
            Value of the kernel before `normalize`.
        """
        if self.kind == "sum":
            raise ValueError("kind must be 'max' or 'linear' for an alignment, got 'sum', which has no single path")
        first, second = self._pair(x, v)
        comparison = self._comparison()
        if self.kind == "linear":
            steps = np.arange(1, (self.length or max(len(first), len(second))) + 1)
            both = [-(-len(part) * steps // steps[-1]) - 1 for part in (first, second)]
            return np.column_stack(both), comparison.of_pair(first, second)
        similarity = comparison.similarity(first, second)
        best = best_paths(similarity, comparison.max_step, comparison.window)
        return _trace(best, similarity, self.max_step), float(best[-1, -1] / sum(similarity.shape))

    def _pair(self, x: Any, v: Any) -> tuple[Array, Array]:
        first = as_frames([np.asarray(x)], name="x").rows
        return first, as_frames([np.asarray(v)], name="v", width=first.shape[1]).rows

    def resolve(self, X: Any) -> Self:
        """The kernel with `sigma` as a number: itself, or a copy with the median distance of the frames of X."""
        check_parameters(self)
        if self.sigma != "median":
            return self
        frames = X if isinstance(X, Frames) else as_frames(X)
        return clone(self).set_params(sigma=median_distance(frames, self.kind))

    def _comparison(self) -> Comparison:
        check_parameters(self)
        if self.sigma == "median" and self.frame_kernel == "rbf":
            raise ValueError(
                "sigma must be a number where a kernel is called, got 'median': kernel.resolve(X) has that of the "
                "sequences X"
            )
        if self.kind == "linear" and (self.max_step, self.window) != (1, None):
            raise ValueError("max_step and window must not be given with kind='linear', which has one path only")
        if self.kind != "linear" and self.length is not None:
            raise ValueError(f"length must be None unless kind='linear', got {self.length}")
        if self.kind == "sum" and self.frame_kernel == "linear":
            raise ValueError("frame_kernel must not be 'linear' for kind='sum': products of negative numbers cancel")
        sigma = 1.0 if self.sigma == "median" else float(self.sigma)
        return Comparison(
            self.kind, self.frame_kernel, sigma, int(self.max_step), int(self.window or 0), int(self.length or 0)
        )

    def _plain(self, values: Array) -> Array:
        if self.kind != "sum":
            return values
        with np.errstate(over="ignore"):
            found = np.exp(values)
        if not np.isfinite(found).all():
            raise ValueError(
                f"normalize must be True for kind='sum' and sequences of these lengths: a sum of paths is e to the "
                f"{values.max():.0f}, more than a floating-point number can be"
            )
        return found


def _trace(best: Array, similarity: Array, max_step: int) -> Integers:
    """The best path, from its end: of equally good steps the longest, then the most even one."""
    i, j = similarity.shape
    steps = [(a, b) for a in range(max_step + 1) for b in range(max_step + 1) if a + b > 0]
    steps.sort(key=lambda step: (-step[0] - step[1], abs(step[0] - step[1])))
    path = []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        open_steps = [(a, b) for a, b in steps if a <= i and b <= j]
        values = [best[i - a, j - b] + (a + b) * similarity[i - 1, j - 1] for a, b in open_steps]
        a, b = open_steps[int(np.argmax(values))]
        i, j = i - a, j - b
    return np.array(path[::-1], dtype=np.int64)
