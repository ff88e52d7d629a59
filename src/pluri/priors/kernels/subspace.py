r"""Kernels of subspaces: how alike the directions are that several local models use.

For frames :math:`U_k` (D by d, orthonormal columns) the projection kernel

.. math:: S_{kl} = \exp\bigl( \rho ( \lVert U_k^\top U_l \rVert_F^2 - d ) \bigr)
   = \exp\bigl( -\tfrac{\rho}{2} \lVert U_k U_k^\top - U_l U_l^\top \rVert_F^2 \bigr)

depends on the subspaces only: signs, order and rotations of the columns do not matter; it is 1 where the subspaces
coincide and :math:`e^{-\rho d}` where they are orthogonal. With ``weighted=True`` the columns are loadings of any
length, :math:`P_k = W_k W_k^\top`, and :math:`S_{kl} = \exp(\rho d (\langle P_k, P_l \rangle / \lVert P_k \rVert
\lVert P_l \rVert - 1))`: columns that are switched off do not count, and for orthonormal columns it is the same kernel.

The sum-cosine kernel :math:`S_{kl} = \exp(\rho (s_k^\top s_l - d))` with the column sums :math:`s_k = U_k 1` is the
similarity :math:`\exp(-\frac{\rho}{2} \sum_{ij} \lVert u_{ki} - u_{lj} \rVert^2)` scaled to unit diagonal. It changes
when a column changes its sign, and calls a frame and its negative maximally different although they span the same
subspace; `canonical_signs` takes the choice of signs away.

References
----------
.. [1] J. Hamm and D. D. Lee, "Grassmann discriminant analysis: a unifying view on subspace-based learning", ICML 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.kernels.similarity import SimilarityKernel, symmetric
from pluri.priors.protocol import FloatArray
from pluri.validation import Only, check_positive, check_value

SUBSPACE_KERNELS = ("projection", "sum_cosine")


@dataclass(frozen=True)
class SubspaceKernel(SimilarityKernel):
    """Similarity of frames (n_parts, D, d) with orthonormal columns, as a function of the subspaces they span.

    Parameters
    ----------
    rho : float, default=1.0
        Positive; the larger, the faster the similarity falls with the angles between subspaces.
    kernel : {"projection", "sum_cosine"}, default="projection"
        See the module; ``"sum_cosine"`` depends on the signs of the columns.
    weighted : bool, default=False
        Whether columns are loadings of any length and angle rather than orthonormal, and count by their size; for the
        projection kernel only.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors.kernels import SubspaceKernel
    >>> axes = np.eye(4)
    >>> frames = np.stack([axes[:, :2], -axes[:, [1, 0]], axes[:, 2:]])
    >>> SubspaceKernel(rho=1.0)(frames).round(4)
    array([[1.    , 1.    , 0.1353],
           [1.    , 1.    , 0.1353],
           [0.1353, 0.1353, 1.    ]])
    """

    rho: float = 1.0
    kernel: str = "projection"
    weighted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_positive(self.rho, "rho"))
        check_value(self.kernel, "kernel", Only(*SUBSPACE_KERNELS))
        if not isinstance(self.weighted, (bool, np.bool_)):
            raise ValueError(f"weighted must be True or False, got {self.weighted!r}")
        object.__setattr__(self, "weighted", bool(self.weighted))
        if self.weighted and self.kernel != "projection":
            raise ValueError(f"weighted must be False for the {self.kernel} kernel, got True")

    def __call__(self, parameters: Any, others: Any = None) -> FloatArray:
        """Similarities (n_parts, n_others), between 0 and 1."""
        return np.exp(self.log_matrix(parameters, others))

    def log_matrix(self, parameters: Any, others: Any = None) -> FloatArray:
        """Logs of the similarities."""
        first = self._read(parameters, "parameters")
        second = first if others is None else self._read(others, "others")
        if first.shape[1:] != second.shape[1:]:
            raise ValueError(f"others must be frames of shape {first.shape[1:]}, got {second.shape[1:]}")
        values = self.rho * (self._closeness(first, second) - first.shape[2])
        if others is None:
            values = 0.5 * (values + values.T)
            np.fill_diagonal(values, 0.0)
        return np.minimum(values, 0.0)

    def diagonal(self, parameters: Any) -> FloatArray:
        """1 for each frame."""
        return np.ones(len(self._read(parameters, "parameters")))

    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> FloatArray:
        """Gradient of ``sum(sensitivity * self(parameters))`` by the entries of the frames, (n_parts, D, d).

        For orthonormal frames it is the gradient in the surrounding space with the diagonal of the kernel held at 1,
        which it is wherever columns are orthonormal; a method on the manifold projects it on the tangent space.
        """
        frames = self._read(parameters, "parameters")
        weights = self.rho * symmetric(sensitivity, len(frames)) * self(frames)
        np.fill_diagonal(weights, 0.0)
        if self.kernel == "sum_cosine":
            pull = 2.0 * weights @ frames.sum(axis=2)
            return np.repeat(pull[:, :, None], frames.shape[2], axis=2)
        if self.weighted:
            products = _squared_products(frames, frames)
            sizes = np.sqrt(np.diagonal(products))
            weights = weights * frames.shape[2] / np.outer(sizes, sizes)
            # The normalisation pulls each part towards itself: d(size) / dW = 2 P W / size.
            np.fill_diagonal(weights, -np.sum(weights * products, axis=1) / sizes**2)
        # With P_l = W_l W_l^T held as factors: W_l (W_l^T W_k), never a D by D matrix.
        inner = np.einsum("lai,kaj->klij", frames, frames)
        return 4.0 * np.einsum("kl,lai,klij->kaj", weights, frames, inner, optimize=True)

    def _closeness(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """What the similarity grows with: d for a frame with itself."""
        if self.kernel == "sum_cosine":
            return first.sum(axis=2) @ second.sum(axis=2).T
        products = _squared_products(first, second)
        if not self.weighted:
            return products
        sizes = np.sqrt(_own_products(first))
        other_sizes = sizes if second is first else np.sqrt(_own_products(second))
        return first.shape[2] * products / np.outer(sizes, other_sizes)

    def _read(self, parameters: Any, name: str) -> FloatArray:
        frames = np.asarray(parameters, dtype=np.float64)
        if frames.ndim != 3 or frames.size == 0 or frames.shape[2] > frames.shape[1]:
            raise ValueError(
                f"{name} must be frames of shape (n_parts, D, d) with d at most D, got shape {frames.shape}"
            )
        if not np.isfinite(frames).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        if self.weighted:
            if not (np.abs(frames).max(axis=(1, 2)) > 0).all():
                raise ValueError(f"{name} must have a column that is not zero in each part, got zeros only")
            return frames
        grams = np.einsum("kai,kaj->kij", frames, frames)
        error = float(np.abs(grams - np.eye(frames.shape[2])).max())
        if error > 1e-6:
            raise ValueError(f"{name} must have orthonormal columns, got inner products that are off by {error:.3g}")
        return frames


def canonical_signs(frames: ArrayLike) -> FloatArray:
    """Frames with signs such that the largest entry of each column is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors.kernels import canonical_signs
    >>> canonical_signs(np.array([[[0.6, -0.8], [-0.8, -0.6]]]))
    array([[[-0.6,  0.8],
            [ 0.8,  0.6]]])
    """
    values = np.asarray(frames, dtype=np.float64)
    if values.ndim != 3 or values.size == 0:
        raise ValueError(f"frames must have shape (n_parts, D, d), got {values.shape}")
    where = np.abs(values).argmax(axis=1)[:, None, :]
    signs = np.where(np.take_along_axis(values, where, axis=1) < 0, -1.0, 1.0)
    return values * signs


def _squared_products(first: FloatArray, second: FloatArray) -> FloatArray:
    """``|W_k^T W_l|^2`` for all pairs: one product of all columns, then sums over blocks."""
    n_first, n_features, width = first.shape
    columns = np.swapaxes(first, 1, 2).reshape(n_first * width, n_features)
    others = np.swapaxes(second, 1, 2).reshape(-1, n_features)
    squares = (columns @ others.T) ** 2
    return squares.reshape(n_first, width, len(second), -1).sum(axis=(1, 3))


def _own_products(frames: FloatArray) -> FloatArray:
    grams = np.einsum("kai,kaj->kij", frames, frames)
    return np.einsum("kij,kij->k", grams, grams)
