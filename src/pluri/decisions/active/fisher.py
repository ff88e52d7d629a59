r"""What a row would tell of the coefficients of a regression: gains of Fisher information, by low-rank updates.

Rows S that are labelled give the information

.. math:: I(S) = \sum_{i \in S} w_i \, x_i x_i^\top + \alpha \, 1, \qquad w_i = p_i (1 - p_i)

about the coefficients of a logistic regression with a squared penalty :math:`\alpha` (scikit-learn's 1 / C), and
:math:`w_i = 1 / \sigma^2` of a linear one. Of C > 2 classes it is
:math:`(\mathrm{diag}(p_i) - p_i p_i^\top) \otimes x_i x_i^\top`; all classes are kept, as in scikit-learn, so that
:math:`\alpha > 0` is needed. None of these depends on the label, so the gain of a candidate is known before it is
labelled [1]_. By how much it improves a design [2]_:

- D: the volume, :math:`\log |I|`; for two classes :math:`\log(1 + w s)`, where :math:`v = I^{-1} x` and
  :math:`s = x^\top v`;
- A: the mean variance, :math:`\mathrm{tr}\, I^{-1}`; for two classes :math:`w\, v^\top v / (1 + w s)`. With rows of
  interest, whose information is W, it is the variance of their predictions, :math:`\mathrm{tr}\, I^{-1} W`;
- E: the worst variance, :math:`\lambda_{\max}(I^{-1})`.

A candidate changes I by :math:`U U^\top` of rank C (1 for two classes, and of a linear regression): determinants and
traces follow from matrices of that size (Woodbury). The largest eigenvalue of :math:`\Lambda - Z Z^\top`, in the
coordinates in which :math:`I^{-1} = \Lambda`, is found by bisection: by Sylvester's law of inertia it has as many
eigenvalues above :math:`\mu` as :math:`\Lambda` less the number of negative ones of
:math:`1 - Z^\top (\Lambda - \mu)^{-1} Z`. O(n P^2) instead of the O(n P^3) of one inversion for each candidate.

References
----------
.. [1] Zhang, T. & Oles, F. (2000). A probability analysis on the value of unlabeled data for classification problems.
   ICML.
.. [2] Settles, B. (2009). Active learning literature survey. Univ. of Wisconsin-Madison, CS TR 1648.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from pluri.decisions.active.uncertainty import check_probabilities
from pluri.validation import Only, check_positive, check_value

Array = NDArray[np.float64]

CRITERIA = ("a", "d", "e")
#: Coefficients at most: their information is a matrix.
MOST_COEFFICIENTS = 4000
#: Numbers that a chunk of candidates may need at a time.
CHUNK = 4_000_000
#: Halvings of an interval that holds an eigenvalue.
HALVINGS = 64


class Design(NamedTuple):
    """Rows with the weights of their coefficients.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    roots : ndarray of shape (n_samples, n_blocks, rank)
        R with R R' the matrix of weights of a row: between the blocks of coefficients, one for each class.
    """

    X: Any
    roots: Array


def fisher_scores(
    X: Any,
    P: ArrayLike | None = None,
    *,
    X_labelled: Any,
    P_labelled: ArrayLike | None = None,
    criterion: str = "d",
    alpha: float = 1.0,
    noise_variance: float = 1.0,
    X_target: Any = None,
    P_target: ArrayLike | None = None,
) -> Array:
    """How much the label of each row would improve the coefficients of a regression.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Candidates; give them a column of ones if the model has an intercept.
    P : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        Probabilities of the classes by a logistic regression: of one of two classes, or of all. None for a linear
        regression.
    X_labelled, P_labelled : the same of the rows that have labels
    criterion : {"a", "d", "e"}, default="d"
        Decrease of the mean variance of the coefficients, increase of the log determinant of their information, or
        decrease of their largest variance in any direction.
    alpha : float, default=1.0
        Weight of the squared penalty: the information before any label. scikit-learn's 1 / C.
    noise_variance : float, default=1.0
        Of the responses of a linear regression.
    X_target, P_target : the same of rows of interest, optional
        With criterion "a": the decrease of the variance of their predictions (of the log odds), instead of that of the
        coefficients; the pool, usually.

    Returns
    -------
    ndarray of shape (n_samples,)
        Gains, not negative; the larger, the sooner the row is to be labelled.

    Examples
    --------
    One coefficient: the information of a row is p (1 - p) x^2.

    >>> import numpy as np
    >>> from pluri.decisions import fisher_scores
    >>> gain = fisher_scores([[2.0], [2.0]], [0.5, 0.9], X_labelled=[[1.0]], P_labelled=[0.5])
    >>> bool(np.allclose(gain, np.log1p([1 / 1.25, 0.36 / 1.25])))
    True
    """
    check_value(criterion, "criterion", Only(*CRITERIA))
    alpha, variance = check_positive(alpha, "alpha"), check_positive(noise_variance, "noise_variance")
    if X_target is not None and criterion != "a":
        raise ValueError(f"X_target must be None unless criterion is 'a', got rows with criterion={criterion!r}")
    pool = _design(X, P, variance, "X", "P")
    labelled = _design(X_labelled, P_labelled, variance, "X_labelled", "P_labelled", pool)
    n_coefficients = pool.X.shape[1] * pool.roots.shape[1]
    if n_coefficients > MOST_COEFFICIENTS:
        raise ValueError(
            f"X must have at most {MOST_COEFFICIENTS} coefficients, features times classes, got {n_coefficients}: "
            "reduce the features first, by TruncatedSVD for instance"
        )
    information = _information(labelled)
    information[np.diag_indices_from(information)] += alpha
    values, vectors = np.linalg.eigh(information)
    covariance = (vectors / values) @ vectors.T
    if criterion == "d":
        return _volume_gains(pool, covariance)
    if criterion == "a":
        target = None if X_target is None else _design(X_target, P_target, variance, "X_target", "P_target", pool)
        middle = covariance if target is None else covariance @ _information(target)
        return _trace_gains(pool, covariance, middle @ covariance)
    return _eigenvalue_gains(pool, 1.0 / values, vectors)


def _design(X: Any, P: Any, variance: float, X_name: str, P_name: str, like: Design | None = None) -> Design:
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name=X_name)
    if issparse(rows):
        rows = csr_array(rows)
    if P is None:
        roots = np.full((rows.shape[0], 1, 1), 1.0 / np.sqrt(variance))
    else:
        roots = _weight_roots(np.asarray(P, dtype=np.float64), P_name)
    if roots.shape[0] != rows.shape[0]:
        raise ValueError(f"{P_name} must have a row for each of the {rows.shape[0]} rows of {X_name}, got {len(roots)}")
    if like is not None and (like.X.shape[1] != rows.shape[1] or like.roots.shape[1:] != roots.shape[1:]):
        raise ValueError(
            f"{X_name} and {P_name} must have as many features and classes as X and P, got {rows.shape[1]} and "
            f"{roots.shape[1]} for {like.X.shape[1]} and {like.roots.shape[1]}"
        )
    return Design(rows, roots)


def _weight_roots(P: Array, name: str) -> Array:
    """R with R R' = diag(p) - p p'; of two classes the one number sqrt(p (1 - p))."""
    if P.ndim == 1:
        if not ((P >= 0) & (P <= 1)).all():
            raise ValueError(f"{name} must be probabilities between 0 and 1, got others")
        return np.sqrt(P * (1.0 - P))[:, None, None]
    P = check_probabilities(P, name, 2)
    if P.shape[1] == 1:
        raise ValueError(f"{name} must be of at least two classes, got one")
    if P.shape[1] == 2:
        return np.sqrt(P[:, 0] * P[:, 1])[:, None, None]
    half = np.sqrt(P)
    return half[:, :, None] * np.eye(P.shape[1]) - P[:, :, None] * half[:, None, :]


def _information(design: Design) -> Array:
    """The sum of (R R') kron x x' over rows, block by block."""
    X, roots = design
    n_features, n_blocks = X.shape[1], roots.shape[1]
    weights = roots @ roots.transpose(0, 2, 1)
    found = np.empty((n_blocks, n_features, n_blocks, n_features))
    for one in range(n_blocks):
        for other in range(one, n_blocks):
            weight = weights[:, one, other]
            product = X.T @ (X.multiply(weight[:, None]) if issparse(X) else weight[:, None] * X)
            found[one, :, other] = product.toarray() if issparse(product) else product
            found[other, :, one] = found[one, :, other].T
    return found.reshape(n_blocks * n_features, -1)


def _products(design: Design, matrix: Array) -> Array:
    """U' matrix U of each row, where U = R kron x: of shape (n_samples, rank, rank)."""
    X, roots = design
    n_features, n_blocks = X.shape[1], roots.shape[1]
    blocks = matrix.reshape(n_blocks, n_features, n_blocks, n_features)
    forms = np.empty((X.shape[0], n_blocks, n_blocks))
    for one in range(n_blocks):
        for other in range(n_blocks):
            image = X @ blocks[one, :, other]
            form = X.multiply(image).sum(axis=1) if issparse(X) else np.einsum("nd,nd->n", X, image)
            forms[:, one, other] = np.asarray(form).ravel()
    return np.asarray(roots.transpose(0, 2, 1) @ forms @ roots)


def _volume_gains(pool: Design, covariance: Array) -> Array:
    small = _products(pool, covariance)
    return np.asarray(np.linalg.slogdet(np.eye(small.shape[1]) + small)[1])


def _trace_gains(pool: Design, covariance: Array, squared: Array) -> Array:
    small, large = _products(pool, covariance), _products(pool, squared)
    return np.asarray(np.trace(np.linalg.solve(np.eye(small.shape[1]) + small, large), axis1=1, axis2=2))


def _eigenvalue_gains(pool: Design, variances: Array, vectors: Array) -> Array:
    """Decrease of the largest of `variances`, whose directions are the columns of `vectors`."""
    order = np.argsort(-variances, kind="stable")
    variances, vectors = variances[order], vectors[:, order]
    X, roots = pool
    (n_samples, n_features), (n_blocks, rank) = X.shape, roots.shape[1:]
    blocks = vectors.reshape(n_blocks, n_features, -1)
    gains = np.empty(n_samples)
    step = max(1, CHUNK // (len(variances) * rank * rank))
    for start in range(0, n_samples, step):
        rows = slice(start, min(start + step, n_samples))
        images = np.stack([X[rows] @ block for block in blocks])
        # U' in the coordinates of the eigenvectors, then the root Z of what is taken away from the variances.
        U = np.einsum("cnp,ncr->nrp", images, roots[rows])
        scaled = U * variances
        small = np.eye(rank) + np.einsum("nrp,nsp->nrs", scaled, U)
        Z = np.linalg.solve(np.linalg.cholesky(small), scaled)
        gains[rows] = variances[0] - _largest(variances, Z)
    return np.maximum(gains, 0.0)


def _largest(variances: Array, Z: Array) -> Array:
    """Largest eigenvalue of diag(variances) - Z' Z for each Z of shape (rank, n_coefficients); sorted downwards."""
    rank = Z.shape[1]
    # Taking away a matrix of this rank, no eigenvalue falls below the one so many places further down.
    floor = variances[rank] if rank < len(variances) else 0.0
    low, high = np.full(len(Z), floor), np.full(len(Z), variances[0])
    tiny = np.finfo(np.float64).tiny
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        gap = variances - middle[:, None]
        gap = np.where(np.abs(gap) < tiny, tiny, gap)
        reduced = np.eye(rank) - (Z / gap[:, None, :]) @ Z.transpose(0, 2, 1)
        # Inf or NaN where the middle is an eigenvalue of the diagonal to the last bit: the interval has shrunk to it.
        usable = np.isfinite(reduced).all(axis=(1, 2))
        reduced[~usable] = np.eye(rank)
        above = (gap > 0).sum(axis=1) - (np.linalg.eigvalsh(reduced) < 0).sum(axis=1)
        higher = above > 0
        low, high = np.where(higher, middle, low), np.where(higher, high, middle)
    return high
