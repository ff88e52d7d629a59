"""What support vector machines of sequences share: input, one matrix of similarities, and what a prediction needs.

libsvm (through scikit-learn) solves each problem on the similarities of the training sequences. A prediction compares a
sequence with the support vectors of all problems together, and with nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d, validate_data

from pluri.components.sequence_model import TakesSequences
from pluri.sequences.alignment.frames import Frames, check_frames
from pluri.sequences.alignment.indefinite import CHOICES, Corrected, correct
from pluri.sequences.alignment.kernel import TimeAlignmentKernel
from pluri.validation import Allowed, Made, Number, Only, Stored, Whole, plain_array, unmasked
from pluri.validation.sequences import (
    BOUNDARIES,
    check_sequence_lengths,
    check_sequence_weight,
    is_sequence_list,
    join_sequences,
    may_be_rows,
    refuse_lost,
    refuse_streams,
    sequence_lengths,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class TakesWholeSequences(TakesSequences):
    """The part of a model with one answer a sequence that turns X into frames; an array alone holds single frames."""

    _single_frames: bool

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        return plain_array(self._validated(X, fitting, dtype=np.float64, ensure_all_finite=False))

    def _are_rows(self, X: Any, lengths: ArrayLike | None, fitting: bool) -> bool:
        """Whether a list of plain lists is a matrix: unless the model was fitted to longer sequences than a row."""
        if not may_be_rows(X):
            return False
        if fitting and lengths is None:
            warnings.warn(
                f"X, a list of {len(X)} lists of {len(X[0])} numbers, is read as {len(X)} sequences of one frame: for "
                "sequences of more frames pass a list of arrays",
                UserWarning,
                stacklevel=5,
            )
        return lengths is not None or fitting or self._single_frames

    def _frames(self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None, *, fitting: bool) -> Frames:
        X = list(X) if getattr(X, "ndim", 0) == 3 else X
        lengths = sequence_lengths(X, lengths, groups)
        refuse_streams(X)
        refuse_lost(X, lengths)
        X = unmasked(X)
        listed = is_sequence_list(X) and not self._are_rows(X, lengths, fitting)
        if listed and lengths is not None:
            raise ValueError("lengths must be None when X is a list of sequences")
        alone = not listed and lengths is None
        if alone and not fitting and not self._single_frames:
            raise ValueError(
                "X must be a list of sequences, or come with lengths or groups: an array alone could be one sequence "
                "or many, and the model was fitted to sequences of more than one frame"
            )
        if listed:
            X, lengths = join_sequences(X)
        data = self._check_data(X, fitting=fitting)
        counts = np.ones(len(data), dtype=np.int64) if alone else check_sequence_lengths(lengths, len(data))
        check_frames(data, counts)
        return Frames(data, counts)


def one_for_each(values: Any, lengths: Integers, name: str) -> NDArray[Any]:
    """One entry for each sequence; also taken: one for each frame, if it does not change within a sequence."""
    array = column_or_1d(values, warn=True)
    assert_all_finite(array, input_name=name)
    if len(array) == len(lengths):
        return np.asarray(array)
    if len(array) == lengths.sum():
        found = np.asarray(array)[np.cumsum(lengths) - lengths]
        if np.array_equal(np.repeat(found, lengths), array):
            return found
        raise ValueError(f"{name} must be the same for all frames of a sequence, got values that change within one")
    raise ValueError(
        f"{name} must have one entry for each of {len(lengths)} sequences, got {len(array)}: inconsistent numbers of "
        "samples (where an array holds the frames of all sequences, say where they begin by lengths or groups)"
    )


@dataclass(frozen=True, eq=False)
class Training:
    """What a machine learns from: sequences of weight zero are left out, as if they had not been there.

    Attributes
    ----------
    similarities : those of the sequences that are left
    frames : these sequences; None if similarities were given
    lengths : (n_sequences,): of all sequences; ones if similarities were given
    kept : (n_kept,): which of them are left
    weight : (n_kept,) or None
    """

    similarities: Corrected
    frames: Frames | None
    lengths: Integers
    kept: Integers
    weight: Array | None


class AlignmentMachine(TakesWholeSequences):
    """A support vector machine of sequences; `SequenceSVC` and `SequenceSVR` say what it learns."""

    # With metadata routing, boundaries reach the model without being asked for: without them it would be wrong.
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "kernel": Made(TimeAlignmentKernel, "a TimeAlignmentKernel") | Only(None, "precomputed"),
        "C": Number(above=0),
        "psd": Only(*CHOICES),
        "tol": Number(above=0),
        "max_iter": Whole(1) | Only(-1),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "support_": Stored("s", whole=True, least=0),
        "dual_coef_": Stored("p", "s"),
        "intercept_": Stored("p"),
        "support_frames_": Stored(None, "n_features_in_"),
        "support_lengths_": Stored("s", whole=True, least=1),
        "_support_self": Stored("s"),
    }

    kernel: TimeAlignmentKernel | Literal["precomputed"] | None
    psd: str
    kernel_: TimeAlignmentKernel | None
    support_: Integers
    dual_coef_: Array
    intercept_: Array
    min_eigenvalue_: float
    support_frames_: Array
    support_lengths_: Integers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _training(self, X: Any, lengths: Any, groups: Any, sequence_weight: ArrayLike | None) -> Training:
        """The sequences that count, and their similarities.

        libsvm would leave out sequences of weight zero too, and then number its support vectors without them.
        """
        if self.kernel == "precomputed":
            gram, frames = self._given_similarities(X, lengths), None
            counts = np.ones(len(gram), dtype=np.int64)
        else:
            frames = self._frames(X, lengths, groups, fitting=True)
            counts = frames.lengths
        weight = check_sequence_weight(sequence_weight, counts)
        kept = np.arange(len(counts)) if weight is None else np.flatnonzero(weight > 0)
        if frames is None:
            self.kernel_ = None
            gram = gram[np.ix_(kept, kept)]
        else:
            frames = frames if len(kept) == len(counts) else frames.take(kept)
            named = self.kernel if isinstance(self.kernel, TimeAlignmentKernel) else TimeAlignmentKernel(sigma="median")
            self.kernel_ = named.resolve(frames)
            self._single_frames = bool((frames.lengths == 1).all())
            gram = self.kernel_.gram(frames)
        return Training(correct(gram, self.psd), frames, counts, kept, None if weight is None else weight[kept])

    def _given_similarities(self, X: Any, lengths: Any) -> Array:
        if lengths is not None:
            raise ValueError("lengths must be None for kernel='precomputed', whose X holds similarities")
        gram = np.asarray(validate_data(self, X, reset=True, dtype=np.float64))
        if gram.shape[0] != gram.shape[1]:
            raise ValueError(f"X must be a square matrix of similarities, got shape {gram.shape}")
        scale = np.abs(gram).max(initial=0.0)
        if not np.allclose(gram, gram.T, rtol=0.0, atol=1e-8 * scale):
            raise ValueError("X must be symmetric for kernel='precomputed', got a matrix that is not")
        return gram

    def _store(self, coefficients: Array, intercepts: Array, training: Training) -> None:
        """Keep the sequences with a coefficient, (n_problems, n_kept), and no others."""
        learned, frames = training.similarities, training.frames
        if learned.projection is not None:
            coefficients = coefficients @ learned.projection
        support = np.flatnonzero((coefficients != 0).any(axis=0))
        self.support_ = training.kept[support]
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, support])
        self.intercept_ = intercepts
        self.min_eigenvalue_ = learned.min_eigenvalue
        self._n_sequences = len(training.lengths)
        for name in ("support_frames_", "support_lengths_", "_support_self"):
            self.__dict__.pop(name, None)
        if frames is not None and self.kernel_ is not None:
            own = frames.take(support)
            self.support_frames_, self.support_lengths_ = own.rows, own.lengths
            if self.kernel_.normalize:
                self._support_self = self.kernel_.self_values(own) if len(own) else np.zeros(0)

    def _values(self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None) -> tuple[Array, Integers]:
        """Decision values, (n_sequences, n_problems), and the lengths of the sequences."""
        check_is_fitted(self, "dual_coef_")
        if self.kernel_ is None:
            if lengths is not None:
                raise ValueError("lengths must be None for kernel='precomputed', whose X holds similarities")
            gram = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))[:, self.support_]
            counts = np.ones(len(gram), dtype=np.int64)
        else:
            frames = self._frames(X, lengths, groups, fitting=False)
            counts, gram = frames.lengths, np.zeros((len(frames), 0))
            if len(self.support_):
                support = Frames(plain_array(self.support_frames_), plain_array(self.support_lengths_, np.int64))
                gram = self.kernel_.gram(frames, support, getattr(self, "_support_self", None))
        return gram @ self.dual_coef_.T + self.intercept_, counts

    def _check_fitted_state(self) -> None:
        if hasattr(self, "support_frames_") and self.support_lengths_.sum() != len(self.support_frames_):
            raise ValueError(
                f"support_lengths_ must sum to the number of support_frames_ ({len(self.support_frames_)}), got "
                f"{self.support_lengths_.sum()}"
            )
        if hasattr(self, "kernel_") and not isinstance(self.kernel_, TimeAlignmentKernel | None):
            raise ValueError(f"kernel_ must be a TimeAlignmentKernel or None, got {type(self.kernel_).__name__}")

    def summary(self) -> str:
        """What was learned, in a few lines."""
        check_is_fitted(self, "dual_coef_")
        kernel = "precomputed similarities"
        if self.kernel_ is not None:
            kernel = f"{self.kernel_.kind} alignment, sigma {self.kernel_.sigma:.4g}"
        return (
            f"{type(self).__name__}: {kernel}, psd={self.psd!r}\n"
            f"{len(self.support_)} of {self._n_sequences} training sequences are kept\n"
            f"smallest eigenvalue of their similarities {self.min_eigenvalue_:.3g}"
        )
