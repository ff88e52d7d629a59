r"""Making a matrix of similarities a kernel: a positive semi-definite matrix near it, with the same diagonal.

Similarities that people write down (exponentials of path lengths, expert scores, correlations of incomplete data) often
have negative eigenvalues. ``"clip"`` sets them to 0, which is nearest in the Frobenius norm; ``"shift"`` raises all of
them by the size of the most negative one, which for equal diagonals shrinks all similarities alike. Both enlarge the
diagonal, so rows and columns are then scaled back to the one that was given: the items keep their qualities.

References
----------
.. [1] N. J. Higham, "Computing a nearest symmetric positive semidefinite matrix", Linear Algebra and its Applications
   103, 1988.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.protocol import FloatArray
from pluri.validation import Only, check_value

REPAIRS = ("clip", "shift")


def repair_kernel(kernel: ArrayLike, how: str = "clip") -> FloatArray:
    """A positive semi-definite matrix near ``kernel``, with its diagonal; a kernel that is one already is returned.

    Parameters
    ----------
    kernel : array_like (n_items, n_items)
        Symmetric, with a non-negative diagonal.
    how : {"clip", "shift"}, default="clip"
        Set negative eigenvalues to 0, or raise all of them by the size of the most negative one.

    Returns
    -------
    ndarray (n_items, n_items)

    Examples
    --------
    >>> from pluri.priors.kernels import repair_kernel
    >>> repair_kernel([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]).round(3)
    array([[1.   , 0.729, 0.064],
           [0.729, 1.   , 0.729],
           [0.064, 0.729, 1.   ]])
    """
    check_value(how, "how", Only(*REPAIRS))
    matrix = np.array(kernel, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"kernel must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("kernel must be finite, got NaN or infinity")
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > 1e-8 * float(np.abs(matrix).max()):
        raise ValueError(f"kernel must be symmetric, got entries that differ by {asymmetry:.3g} from their mirror")
    matrix = 0.5 * (matrix + matrix.T)
    diagonal = np.diagonal(matrix).copy()
    if (diagonal < 0).any():
        raise ValueError(f"kernel must have a non-negative diagonal, got {diagonal.min():.6g}")
    if matrix.any() and not diagonal.any():
        raise ValueError(
            "kernel must hold similarities, got a diagonal of zeros, as distances have: turn them into similarities "
            "first, for instance by exp(-distance**2)"
        )
    spectrum, vectors = np.linalg.eigh(matrix)
    if spectrum[0] >= -len(matrix) * np.finfo(np.float64).eps * np.abs(spectrum).max():
        return matrix  # nothing but rounding
    if how == "clip":
        mended = (vectors * np.maximum(spectrum, 0.0)) @ vectors.T
    else:
        mended = matrix - spectrum[0] * np.eye(len(matrix))
    # Both add a positive semi-definite matrix, so no diagonal entry has shrunk and the division is safe.
    enlarged = np.diagonal(mended)
    scale = np.sqrt(np.divide(diagonal, enlarged, out=np.zeros_like(diagonal), where=(diagonal > 0) & (enlarged > 0)))
    mended = 0.5 * (mended + mended.T) * np.outer(scale, scale)
    np.fill_diagonal(mended, diagonal)
    return mended
