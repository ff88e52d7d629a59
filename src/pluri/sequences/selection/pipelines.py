"""A pipeline that ends in a model of sequences, on lists of sequences: scikit-learn's transformers know only rows.

The sequences are joined into rows for the transformers, and their lengths handed on to the last step.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from pluri.sequences.labelled.labels import join_labels
from pluri.validation.sequences import check_sequence_lengths, is_sequence_list, join_sequences

Integers = NDArray[np.int64]


class SequencePipeline(BaseEstimator):
    """A `Pipeline` whose `fit` and `score` take lists of sequences; its parameters are those of the pipeline.

    Parameters
    ----------
    pipeline : `sklearn.pipeline.Pipeline`
        Its last step is a hidden Markov model, or an `HMMClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pluri.sequences import GaussianHMM
    >>> from pluri.sequences.selection.pipelines import SequencePipeline
    >>> pipeline = make_pipeline(StandardScaler(), GaussianHMM(2, random_state=0))
    >>> model = SequencePipeline(pipeline).fit([np.zeros((5, 1)), np.arange(8.0).reshape(-1, 1)])
    >>> model.pipeline[-1].startprob_.shape
    (2,)
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the pipeline, by their names there."""
        return {"pipeline": self.pipeline} | (self.pipeline.get_params(deep=True) if deep else {})

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the pipeline."""
        self.pipeline.set_params(**params)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit all steps."""
        rows, lengths = join_sequences(X)
        fit_pipeline(self.pipeline, rows, None if y is None else join_labels(y)[0], lengths)
        return self

    def transformed(self, X: Any) -> list[NDArray[Any]]:
        """Sequences as the last step sees them."""
        rows, lengths = join_sequences(X)
        return np.split(np.asarray(transform_rows(self.pipeline, rows)), np.cumsum(lengths)[:-1])


def fit_pipeline(pipeline: Pipeline, X: Any, y: Any, lengths: Any) -> Pipeline:
    """Fit a pipeline with the lengths for its last step."""
    with config_context(enable_metadata_routing=False):  # the lengths have one place to go
        return pipeline.fit(X, y, **{f"{pipeline.steps[-1][0]}__lengths": lengths})


def transform_rows(pipeline: Pipeline, X: Any) -> Any:
    """Rows as the last step sees them."""
    return pipeline[:-1].transform(X) if len(pipeline) > 1 else X


def divide_rows(X: Any, lengths: Any) -> tuple[list[Any], Integers]:
    """Rows, or a list of sequences, as a list of sequences, and their lengths."""
    if is_sequence_list(X):
        if lengths is not None:
            raise ValueError("lengths must be None when X is a list of sequences")
        return list(X), np.array([len(item) for item in X], dtype=np.int64)
    X = X if hasattr(X, "shape") else np.asarray(X)
    counts = check_sequence_lengths(lengths, X.shape[0])
    ends = np.cumsum(counts)
    parts = [_safe_indexing(X, np.arange(end - count, end)) for count, end in zip(counts.tolist(), ends.tolist())]
    return parts, counts
