r"""Learning what a good sequential summary is: a linear map of the features, from streams summarised by people.

With :math:`L = F W^\top W F^\top + \epsilon I` the log-likelihood of the choices,
:math:`\sum_t \log\det \Omega_{y_{t-1} \cup y_t} - \log\det(\Omega + I_t)`, has the gradient

.. math:: 2 W \sum_t \left[ F_y^\top (\Omega_y)^{-1} F_y - F_t^\top (\Omega + I_t)^{-1} F_t \right]

with the rows of :math:`y = y_{t-1} \cup y_t` and of :math:`y_{t-1} \cup G_t`. It is not concave; L-BFGS climbs it.

References
----------
.. [1] B. Gong, W.-L. Chao, K. Grauman and F. Sha, "Diverse sequential subset selection for supervised video
   summarization", NeurIPS 2014.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from pluri.processes.dpp.kernel_forms import Array, IntArray, as_subset
from pluri.processes.dpp.successive.sequential import SequentialDPP, check_segment
from pluri.validation import Allowed, Number, Only, RandomState, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import holding

#: Rows of the choice before and now, and of the choice before and all items now, with which of these are now.
Step = tuple[Array, Array, Array]


def log_likelihood_and_gradient(W: Array, steps: Sequence[Step], ridge: float) -> tuple[float, Array]:
    """Sum over steps, and its gradient with respect to the linear map ``W`` (n_components, n_features)."""
    value, moment = 0.0, np.zeros((W.shape[1], W.shape[1]))
    for chosen, everything, is_now in steps:
        for rows, diagonal, sign in (
            (chosen, np.full(len(chosen), ridge), 1.0),
            (everything, ridge + is_now, -1.0),
        ):
            if not len(rows):
                continue
            image = rows @ W.T
            factor = np.linalg.cholesky(image @ image.T + np.diag(diagonal))
            half = np.linalg.solve(factor, rows)
            value += sign * 2.0 * float(np.log(np.diagonal(factor)).sum())
            moment += sign * (half.T @ half)
    return value, 2.0 * W @ moment


class SequentialDPPLearner(Estimator):
    """Learns the linear map of a `SequentialDPP` from streams and the choices that people made.

    Parameters
    ----------
    n_components : int, optional
        Rows of the map; the number of features by default.
    ridge : float, default=1e-3
        Added to the kernel of every item with itself, so that every choice is possible.
    alpha : float, default=1e-3
        Weight of the squared entries of the map, for each segment.
    max_iter : int, default=500
        Iterations of each climb: the ridge comes down to its value by tenths, so that fewer climbs end too low.
    tol : float, default=1e-6
        Gradient at which the climb ends.
    random_state : int, Generator or None
        For the start.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        The map W.
    log_likelihood_ : float
        Mean over the segments.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.successive.sequential_learning import SequentialDPPLearner
    >>> rng = np.random.default_rng(0)
    >>> stream = [rng.normal(size=(4, 3)) for _ in range(20)]
    >>> choices = [np.flatnonzero(np.abs(rows[:, 0]) > 1) for rows in stream]  # only the first feature matters
    >>> learner = SequentialDPPLearner(random_state=0).fit([stream], [choices])
    >>> strength = (learner.components_**2).sum(axis=0)
    >>> bool(strength[0] > strength[1:].max())
    True
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"components_": Stored(None, None)}
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1) | Only(None),
        "ridge": Number(above=0),
        "alpha": Number(least=0),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        ridge: float = 1e-3,
        alpha: float = 1e-3,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Sequence[Sequence[ArrayLike]], y: Sequence[Sequence[ArrayLike]]) -> Self:
        """Learn from streams.

        Parameters
        ----------
        X : list of streams, each a list of array_like (n_items of the segment, n_features)
        y : list of sequences of choices, one for each segment
        """
        from scipy.optimize import minimize

        check_parameters(self)
        steps = _steps(X, y)
        width = steps[0][1].shape[1]
        n_components = width if self.n_components is None else self.n_components
        rng = as_generator(self.random_state)
        scale = np.sqrt(np.mean([(everything**2).sum(axis=1).mean() for _, everything, _ in steps]) or 1.0)
        start = rng.standard_normal((n_components, width)) / (scale * np.sqrt(n_components))
        best = {"W": start}

        def objective(flat: Array, ridge: float) -> tuple[float, Array]:
            W = flat.reshape(n_components, width)
            value, gradient = log_likelihood_and_gradient(W, steps, ridge)
            return (
                -value / len(steps) + 0.5 * self.alpha * float((W**2).sum()),
                (-gradient / len(steps) + self.alpha * W).ravel(),
            )

        def keep(flat: Array) -> None:
            best["W"] = flat.reshape(n_components, width).copy()

        self.n_iter_ = 0
        with holding("fit interrupted; the map so far is kept"):
            for ridge in _ridges(self.ridge):
                found = minimize(
                    objective,
                    best["W"].ravel(),
                    args=(ridge,),
                    jac=True,
                    method="L-BFGS-B",
                    callback=keep,
                    options={"maxiter": self.max_iter, "gtol": self.tol},
                )
                keep(found.x)
                self.n_iter_ += int(found.nit)
            if found.status == 1:
                from sklearn.exceptions import ConvergenceWarning

                warnings.warn(
                    f"the map has not converged in {self.max_iter} iterations: raise max_iter or tol",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        self.components_ = best["W"]
        self.n_features_in_ = width
        self.log_likelihood_ = log_likelihood_and_gradient(self.components_, steps, self.ridge)[0] / len(steps)
        return self

    def process(self, segments: Sequence[ArrayLike]) -> SequentialDPP:
        """The process over the segments of a stream."""
        check_is_fitted(self)
        rows = [check_segment(segment, t) for t, segment in enumerate(segments)]
        for t, segment in enumerate(rows):
            if segment.shape[1] != self.n_features_in_:
                raise ValueError(f"segments[{t}] must have {self.n_features_in_} columns, got {segment.shape[1]}")
        return SequentialDPP([segment @ self.components_.T for segment in rows], ridge=self.ridge)

    def predict(self, X: Sequence[Sequence[ArrayLike]], beam_width: int = 1) -> list[list[IntArray]]:
        """A choice of high probability for each stream."""
        return [self.process(segments).map(beam_width=beam_width) for segments in X]

    def score(self, X: Sequence[Sequence[ArrayLike]], y: Sequence[Sequence[ArrayLike]]) -> float:
        """Mean log probability of the choices, for each segment."""
        check_is_fitted(self)
        steps = _steps(X, y)
        return log_likelihood_and_gradient(self.components_, steps, self.ridge)[0] / len(steps)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True  # streams of segments, not a matrix
        return tags


def _ridges(last: float) -> list[float]:
    """From a kernel that nearly forgets the map to the one wanted: each climb begins where the one before ended.

    With a small ridge from the beginning a map of few components may end where some directions have been lost.
    """
    count = max(0, math.ceil(-math.log10(last)))
    return [*(10.0**-k for k in range(count)), last]


def _steps(X: Sequence[Sequence[ArrayLike]], y: Sequence[Sequence[ArrayLike]]) -> list[Step]:
    if len(X) != len(y) or len(X) == 0:
        raise ValueError(f"X and y must hold the same number of streams, at least one, got {len(X)} and {len(y)}")
    steps: list[Step] = []
    for number, (stream, choices) in enumerate(zip(X, y)):
        if len(stream) != len(choices):
            raise ValueError(
                f"y must have a choice for each of the {len(stream)} segments of stream {number}, got {len(choices)}"
            )
        before: Array | None = None
        for t, (segment, choice) in enumerate(zip(stream, choices)):
            rows = check_segment(segment, t)
            if steps and rows.shape[1] != steps[0][1].shape[1]:
                raise ValueError(f"segments must have {steps[0][1].shape[1]} columns, got {rows.shape[1]}")
            taken = rows[as_subset(choice, len(rows), f"y[{number}][{t}]")]
            previous = rows[:0] if before is None else before
            is_now = np.concatenate([np.zeros(len(previous)), np.ones(len(rows))])
            steps.append((np.concatenate([previous, taken]), np.concatenate([previous, rows]), is_now))
            before = taken
    if not steps:
        raise ValueError("X must hold at least one segment, got none")
    return steps
