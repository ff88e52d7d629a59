"""What `fit` was given, as a source of batches whose rows are outputs, then inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.components.sequence_model import warn_of_empty_columns
from pluri.dynamics.linear.input_rows import input_rows
from pluri.engine import ArraySource, Source
from pluri.validation import Only, Whole, check_value, is_source
from pluri.validation.sequences import (
    check_sequence_weight,
)


@dataclass(frozen=True, eq=False)
class FitData:
    """The arguments of `fit`, of which boundaries are lengths."""

    X: Any
    lengths: ArrayLike | None
    sequence_weight: ArrayLike | None
    inputs: Any


@dataclass(frozen=True, eq=False)
class Prepared:
    """The source, and its number of rows if they are in memory."""

    source: Source
    n_samples: int | None


def fit_data(model: Any, given: FitData) -> Prepared:
    """Check what `fit` was given; sets ``n_inputs_`` and ``n_features_in_`` of the model."""
    X = given.X
    lengths = given.lengths
    if is_source(X):
        if lengths is not None or given.sequence_weight is not None:
            raise ValueError("lengths and sequence_weight must be None when X is a source: it holds them")
        check_value(given.inputs, "inputs of a source", Whole(0) | Only(None))
        model.n_inputs_ = int(given.inputs or 0)
        return Prepared(model._checked_source(X), None)
    data, counts = model._sequences(X, lengths, fitting=True)
    weight = check_sequence_weight(given.sequence_weight, counts)
    inputs = input_rows(given.inputs, counts, None)
    model.n_inputs_ = inputs.shape[1]
    if np.isnan(data).all():
        raise ValueError("X must hold at least one value that is not missing, got none")
    warn_of_empty_columns(data)
    rows = np.concatenate([data, inputs], axis=1) if inputs.shape[1] else data
    return Prepared(ArraySource(rows, counts, sample_weight=weight), len(data))
