"""Classes of whole sequences by support vector machines: one against the rest, on one matrix of similarities.

For each class, g(X) = sum_i alpha_i y_i K(X_i, X) + b with y_i = 1 for sequences of the class and -1 for the others,
and 0 <= alpha_i <= C w_i; the class with the largest g is predicted.

References
----------
.. [1] H. Shimodaira, K. Noma, M. Nakai and S. Sagayama, "Dynamic time-alignment kernel in support vector machine",
   NIPS 2001.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from pluri.sequences.alignment.kernel import TimeAlignmentKernel
from pluri.sequences.alignment.machine import AlignmentMachine, Training, one_for_each
from pluri.validation import Allowed, Made, Only, check_parameters, restored_on_failure
from pluri.validation.sequences import BOUNDARIES, WEIGHT, check_sequence_weight, weight_by_either_name

Array = NDArray[np.float64]


class SequenceSVC(ClassifierMixin, AlignmentMachine):
    """Support vector classification of sequences of any lengths.

    Parameters
    ----------
    kernel : `TimeAlignmentKernel` or "precomputed", optional
        Similarity of sequences; ``TimeAlignmentKernel(sigma="median")`` by default. "precomputed": X holds
        similarities, to all training sequences.
    C : float, default=1.0
        Price of errors; the smaller, the smoother.
    psd : {"shift", "none", "clip", "flip"}, default="shift"
        What is done about negative eigenvalues of the similarities of the training sequences: the smallest is taken
        from the diagonal; nothing, with a warning if there are some; they are set to zero; or their sign is changed.
        With "clip" and "flip" a prediction needs all training sequences, not only the support vectors, and a sequence
        of weight two is not the same as that sequence twice.
    class_weight : dict or "balanced", optional
        Weight of the sequences of each class, by label; "balanced": the same total for each class.
    tol : float, default=1e-3
        Where libsvm stops.
    max_iter : int, default=-1
        Its steps at most; -1 is without a limit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    kernel_ : `TimeAlignmentKernel`
        With `sigma` as a number; None for "precomputed".
    support_ : array of shape (n_support,)
        Numbers of the training sequences that predictions compare with.
    dual_coef_ : array of shape (n_problems, n_support)
        alpha_i y_i for each class against the rest; one row for two classes, of which the second counts as 1.
    intercept_ : array of shape (n_problems,)
    support_frames_, support_lengths_ : arrays of shape (n_frames, n_features_in_) and (n_support,)
        The sequences `support_` end to end; no others are kept.
    n_support_ : array of shape (n_problems,)
        Support vectors of each problem.
    min_eigenvalue_ : float
        Of the similarities of the training sequences (for "shift" of those that differ), before `psd`.
    n_iter_ : array of shape (n_problems,)
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import SequenceSVC, TimeAlignmentKernel
    >>> rng = np.random.default_rng(0)
    >>> rising = [np.linspace(0, 1, n) + 0.1 * rng.normal(size=n) for n in rng.integers(5, 15, size=10)]
    >>> falling = [1 - x for x in rising]
    >>> model = SequenceSVC(TimeAlignmentKernel("sum", sigma=2.0, normalize=True), C=10)
    >>> model = model.fit(rising + falling, ["up"] * 10 + ["down"] * 10)
    >>> model.predict([np.array([0.0, 0.1, 0.4, 0.6, 0.9, 1.0])])
    array(['up'], dtype='<U4')
    """

    __metadata_request__decision_function: ClassVar[dict[str, bool]] = BOUNDARIES
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **AlignmentMachine._parameters,
        "class_weight": Made(Mapping, "a dict of weights by label") | Only(None, "balanced"),
    }

    classes_: NDArray[Any]

    def __init__(
        self,
        kernel: TimeAlignmentKernel | Literal["precomputed"] | None = None,
        *,
        C: float = 1.0,
        psd: Literal["none", "clip", "flip", "shift"] = "shift",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        tol: float = 1e-3,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.psd = psd
        self.class_weight = class_weight
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
        """Learn from labelled sequences.

        Parameters
        ----------
        X : list of sequences, or array of shape (n_sequences, length, n_features) or (n_frames, n_features)
            The frames of all sequences come with `lengths` or `groups`; without them each row is a sequence.
        y : array of shape (n_sequences,)
            A label for each sequence; also taken: one for each frame, if it is the same within a sequence.
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
            raise ValueError("SequenceSVC requires y to be passed, but the target y is None")
        with restored_on_failure(self):
            training = self._training(X, lengths, groups, sequence_weight)
            labels = one_for_each(y, training.lengths, "y")
            check_classification_targets(labels)
            classes, codes = np.unique(labels, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(f"y must hold at least two classes, got one class ({classes.tolist()[0]!r})")
            if len(np.unique(codes[training.kept])) < len(classes):
                raise ValueError(f"{WEIGHT} must be positive for at least one sequence of each class")
            class_weight = compute_sample_weight(self.class_weight, labels[training.kept])
            self._solve(training, codes[training.kept], class_weight)
            self.classes_ = classes
        return self

    def _solve(self, training: Training, codes: Any, class_weight: Array) -> None:
        """One problem a class, or one for two classes; a record each of what libsvm found."""
        n_classes = int(codes.max()) + 1
        total = class_weight if training.weight is None else class_weight * training.weight
        problems = [1] if n_classes == 2 else range(n_classes)
        coefficients = np.zeros((len(problems), len(codes)))
        used = np.flatnonzero(total > 0)  # a class may have no weight
        gram = training.similarities.gram[np.ix_(used, used)]
        machines = []
        for row, number in enumerate(problems):
            machine = SVC(kernel="precomputed", C=float(self.C), tol=float(self.tol), max_iter=int(self.max_iter))
            machine.fit(gram, codes[used] == number, sample_weight=total[used])
            coefficients[row, used[machine.support_]] = machine.dual_coef_[0]
            machines.append(machine)
        self.n_support_ = (coefficients != 0).sum(axis=1)
        self.n_iter_ = np.array([int(np.sum(machine.n_iter_)) for machine in machines])
        self._store(coefficients, np.array([float(machine.intercept_[0]) for machine in machines]), training)

    def decision_function(
        self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """How far on the side of each class sequences are.

        Parameters
        ----------
        X : list of sequences, or array; see `fit`
        lengths, groups : arrays of shape (n_sequences,) and (n_frames,), optional

        Returns
        -------
        array of shape (n_sequences, n_classes), or (n_sequences,) for two classes: above 0 on the side of the second
        """
        values = self._values(X, lengths, groups)[0]
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """The class of each sequence.

        Parameters
        ----------
        X : list of sequences, or array; see `fit`
        lengths, groups : arrays of shape (n_sequences,) and (n_frames,), optional

        Returns
        -------
        array of shape (n_sequences,)
        """
        return self._labels(self._values(X, lengths, groups)[0])

    def _labels(self, values: Array) -> NDArray[Any]:
        numbers = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def score(
        self,
        X: Any,
        y: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy: share of the sequences whose class `predict` gets right.

        Parameters
        ----------
        X : list of sequences, or array; see `fit`
        y : array of shape (n_sequences,)
        lengths, groups : arrays of shape (n_sequences,) and (n_frames,), optional
        sample_weight : array of shape (n_sequences,), optional

        Returns
        -------
        accuracy : float
        """
        values, counts = self._values(X, lengths, groups)
        right = self._labels(values) == one_for_each(y, counts, "y")
        return float(np.average(right, weights=check_sequence_weight(sample_weight, counts)))

    def _check_fitted_state(self) -> None:
        super()._check_fitted_state()
        if hasattr(self, "classes_"):
            n_problems = 1 if len(self.classes_) == 2 else len(self.classes_)
            if len(self.intercept_) != n_problems or len(self.dual_coef_) != n_problems:
                raise ValueError(f"intercept_ must have {n_problems} entries, got {len(self.intercept_)}")
