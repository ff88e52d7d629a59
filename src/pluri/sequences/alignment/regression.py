"""Support vector regression on whole sequences: a number for each of them.

g(X) = sum_i c_i K(X_i, X) + b with |c_i| <= C w_i minimises the sum of the distances of g(X_i) from y_i beyond epsilon,
C times, and half the squared norm of g.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.svm import SVR

from pluri.sequences.alignment.kernel import TimeAlignmentKernel
from pluri.sequences.alignment.machine import AlignmentMachine, one_for_each
from pluri.validation import Allowed, Number, check_parameters, restored_on_failure
from pluri.validation.sequences import check_sequence_weight, weight_by_either_name

Array = NDArray[np.float64]


class SequenceSVR(RegressorMixin, AlignmentMachine):
    """Support vector regression on sequences of any lengths.

    Parameters
    ----------
    kernel : `TimeAlignmentKernel` or "precomputed", optional
        Similarity of sequences; ``TimeAlignmentKernel(sigma="median")`` by default. "precomputed": X holds
        similarities, to all training sequences.
    C : float, default=1.0
        Price of errors; the smaller, the smoother.
    epsilon : float, default=0.1
        Errors below it cost nothing.
    psd : {"shift", "none", "clip", "flip"}, default="shift"
        What is done about negative eigenvalues of the similarities; see `SequenceSVC`.
    tol : float, default=1e-3
        Where libsvm stops.
    max_iter : int, default=-1
        Its steps at most; -1 is without a limit.

    Attributes
    ----------
    kernel_ : `TimeAlignmentKernel`
        With `sigma` as a number; None for "precomputed".
    support_ : array of shape (n_support,)
        Numbers of the training sequences that predictions compare with.
    dual_coef_ : array of shape (1, n_support)
    intercept_ : array of shape (1,)
    support_frames_, support_lengths_ : arrays of shape (n_frames, n_features_in_) and (n_support,)
        The sequences `support_` end to end; no others are kept.
    n_support_ : array of shape (1,)
    min_eigenvalue_ : float
        Of the similarities of the training sequences (for "shift" of those that differ), before `psd`.
    n_iter_ : array of shape (1,)
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import SequenceSVR, TimeAlignmentKernel
    >>> rng = np.random.default_rng(0)
    >>> heights = rng.uniform(0, 2, size=30)
    >>> X = [h * np.sin(np.linspace(0, np.pi, rng.integers(8, 20))) for h in heights]
    >>> model = SequenceSVR(TimeAlignmentKernel("sum", sigma=4.0, normalize=True), C=10, epsilon=0.01)
    >>> model.fit(X[:20], heights[:20]).score(X[20:], heights[20:]) > 0.9
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {**AlignmentMachine._parameters, "epsilon": Number(least=0)}

    def __init__(
        self,
        kernel: TimeAlignmentKernel | Literal["precomputed"] | None = None,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        psd: Literal["none", "clip", "flip", "shift"] = "shift",
        tol: float = 1e-3,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.psd = psd
        self.tol = tol
        self.max_iter = max_iter

    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> Self:
        """Learn from sequences with a number each.

        Parameters
        ----------
        X : list of sequences, or array of shape (n_sequences, length, n_features) or (n_frames, n_features)
            The frames of all sequences come with `lengths` or `groups`; without them each row is a sequence.
        y : array of shape (n_sequences,)
            A number for each sequence; also taken: one for each frame, if it is the same within a sequence.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_frames.
        groups : array of shape (n_frames,), optional
            The sequence of each row, in place of `lengths`.
        sequence_weight : array of shape (n_sequences,), optional
            C is multiplied by it; also taken under the name ``sample_weight``.

        Returns
        -------
        self : object
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        check_parameters(self)
        if y is None:
            raise ValueError("SequenceSVR requires y to be passed, but the target y is None")
        with restored_on_failure(self):
            training = self._training(X, lengths, groups, sequence_weight)
            target = one_for_each(y, training.lengths, "y").astype(np.float64)[training.kept]
            machine = SVR(
                kernel="precomputed", C=float(self.C), epsilon=float(self.epsilon), tol=float(self.tol),
                max_iter=int(self.max_iter),
            ).fit(training.similarities.gram, target, sample_weight=training.weight)  # fmt: skip
            coefficients = np.zeros((1, len(target)))
            coefficients[0, machine.support_] = machine.dual_coef_[0]
            self.n_support_ = (coefficients != 0).sum(axis=1)
            self.n_iter_ = np.array([int(np.sum(machine.n_iter_))])
            self._store(coefficients, np.array([float(machine.intercept_[0])]), training)
        return self

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """The number of each sequence.

        Parameters
        ----------
        X : list of sequences, or array; see `fit`
        lengths, groups : arrays of shape (n_sequences,) and (n_frames,), optional

        Returns
        -------
        array of shape (n_sequences,)
        """
        return self._values(X, lengths, groups)[0][:, 0]

    def score(
        self,
        X: Any,
        y: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Coefficient of determination, R^2, of the predictions.

        Parameters
        ----------
        X : list of sequences, or array; see `fit`
        y : array of shape (n_sequences,)
        lengths, groups : arrays of shape (n_sequences,) and (n_frames,), optional
        sample_weight : array of shape (n_sequences,), optional

        Returns
        -------
        score : float
        """
        values, counts = self._values(X, lengths, groups)
        target = one_for_each(y, counts, "y")
        return float(r2_score(target, values[:, 0], sample_weight=check_sequence_weight(sample_weight, counts)))
