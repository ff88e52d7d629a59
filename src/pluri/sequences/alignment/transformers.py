"""From sequences to rows of one length, and transformers of scikit-learn on the frames of lists of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from pluri.sequences.alignment.machine import TakesWholeSequences
from pluri.validation import Allowed, Stored, Whole, check_parameters, restored_on_failure
from pluri.validation.estimator import Estimator
from pluri.validation.sequences import BOUNDARIES, is_sequence_list, join_sequences, may_be_rows, offsets_of

Array = NDArray[np.float64]


class LinearTimeNormalizer(TransformerMixin, TakesWholeSequences):
    """Sequences resampled to one length, as rows that any estimator takes.

    Frame k of the result, from 1, is frame ceil(n k / length) of a sequence of n frames. Inner products of the rows,
    divided by `length`, are ``TimeAlignmentKernel("linear", frame_kernel="linear", length=length)``.

    Parameters
    ----------
    length : int, default=20

    Attributes
    ----------
    n_features_in_ : int
        Features of a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import LinearTimeNormalizer
    >>> LinearTimeNormalizer(length=4).fit_transform([np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])])
    array([[1., 1., 2., 2.],
           [2., 3., 4., 5.]])
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__transform: ClassVar[dict[str, bool]] = BOUNDARIES
    _parameters: ClassVar[Mapping[str, Allowed]] = {"length": Whole(1)}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {}

    def __init__(self, length: int = 20) -> None:
        self.length = length

    def fit(self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Self:
        """Remember the number of features.

        Parameters
        ----------
        X : list of sequences, or array of shape (n_sequences, length, n_features) or (n_frames, n_features)
            The frames of all sequences come with `lengths` or `groups`; without them each row is a sequence.
        y : ignored
        lengths, groups : arrays of shape (n_sequences,) and (n_frames,), optional

        Returns
        -------
        self : object
        """
        check_parameters(self)
        with restored_on_failure(self):
            frames = self._frames(X, lengths, groups, fitting=True)
            self._single_frames = bool((frames.lengths == 1).all())
        return self

    def transform(self, X: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Array:
        """Rows of ``length`` frames.

        Parameters
        ----------
        X : list of sequences, or array; see `fit`
        lengths, groups : arrays of shape (n_sequences,) and (n_frames,), optional

        Returns
        -------
        array of shape (n_sequences, length * n_features_in_)
        """
        check_is_fitted(self, "n_features_in_")
        frames = self._frames(X, lengths, groups, fitting=False)
        steps = np.arange(1, self.length + 1)
        # Rounded up in whole numbers: n k / length in floating point may be just above its integer.
        places = -(-frames.lengths[:, None] * steps // self.length) - 1 + offsets_of(frames.lengths)[:-1, None]
        return np.ascontiguousarray(frames.rows[places].reshape(len(frames), -1))

    def fit_transform(
        self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Array:
        """Both, one after the other; see there."""
        return self.fit(X, y, lengths, groups=groups).transform(X, lengths, groups=groups)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns: frame and feature, such as ``frame0_x1``."""
        check_is_fitted(self, "n_features_in_")
        known = getattr(self, "feature_names_in_", [f"x{number}" for number in range(self.n_features_in_)])
        names = known if input_features is None else input_features
        return np.array([f"frame{k}_{name}" for k in range(self.length) for name in names], dtype=object)


class FrameTransformer(TransformerMixin, Estimator):
    """A transformer of scikit-learn on the frames of a list of sequences; a list of sequences comes out.

    With it, ``make_pipeline(FrameTransformer(StandardScaler()), SequenceSVC())`` takes lists of sequences, and so do
    searches and cross-validation around it.

    Parameters
    ----------
    transformer : transformer, optional
        `sklearn.preprocessing.StandardScaler` by default, which then refuses missing values. It must not change the
        number of rows.

    Attributes
    ----------
    transformer_ : transformer
        Fitted to all frames.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import FrameTransformer
    >>> parts = FrameTransformer().fit_transform([np.array([[0.0], [2.0]]), np.array([[4.0]])])
    >>> [part.ravel().round(2).tolist() for part in parts]
    [[-1.22, 0.0], [1.22]]
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {}

    def __init__(self, transformer: Any = None) -> None:
        self.transformer = transformer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._template()).input_tags
        if self.transformer is None:
            tags.input_tags.allow_nan = False
        return tags

    def _template(self) -> Any:
        return StandardScaler() if self.transformer is None else self.transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer to all frames.

        Parameters
        ----------
        X : list of sequences, or array of shape (n_frames, n_features)
        y : array of shape (n_sequences,), optional
            Handed on for each frame of a sequence.

        Returns
        -------
        self : object
        """
        rows, counts = self._joined(X)
        target = None if y is None else y if counts is None else np.repeat(np.asarray(y), counts)
        with restored_on_failure(self):
            self.transformer_ = clone(self._template()).fit(rows, target)
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
                if hasattr(self.transformer_, name):
                    setattr(self, name, getattr(self.transformer_, name))
        return self

    def transform(self, X: Any) -> Any:
        """Transform all frames.

        Parameters
        ----------
        X : list of sequences, or array of shape (n_frames, n_features)

        Returns
        -------
        list of arrays, or array of shape (n_frames, n_features_out)
        """
        check_is_fitted(self, "transformer_")
        rows, counts = self._joined(X)
        found = self.transformer_.transform(rows)
        if counts is None:
            return found
        if found.shape[0] != len(rows):
            raise ValueError(f"transformer must keep the number of rows ({len(rows)}), got {found.shape[0]}")
        return np.split(np.asarray(found), np.cumsum(counts)[:-1])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns, by the transformer."""
        check_is_fitted(self, "transformer_")
        return np.asarray(self.transformer_.get_feature_names_out(input_features))

    def _joined(self, X: Any) -> tuple[Any, NDArray[np.int64] | None]:
        """Rows, and the lengths of the sequences if X was a list of them."""
        if getattr(X, "ndim", 0) == 3:
            X = list(X)
        rows, counts = join_sequences(X) if is_sequence_list(X) and not may_be_rows(X) else (X, None)
        if self.transformer is None:
            values = np.asarray(rows)
            if values.dtype.kind == "f" and np.isnan(values).any():
                raise ValueError("X must have no missing values unless a transformer that fills them is given, got NaN")
        return rows, counts
