"""Scores of fitted models of sequences, for a search: higher is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pluri.sequences.selection.pipelines import SequencePipeline

Scorer = Callable[..., float]


def log_likelihood_per_sample(estimator: Any, X: Any, y: Any = None) -> float:
    """Log-likelihood of sequences under a fitted model, divided by the number of samples: a scorer.

    Parameters
    ----------
    estimator : fitted hidden Markov model, or `HMMClassifier`
    X : array of shape (n_samples, n_features), or list of sequences
    y : ignored

    Returns
    -------
    score : float

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import PoissonHMM, log_likelihood_per_sample
    >>> X = np.array([[1], [0], [3], [2], [1], [1]])
    >>> log_likelihood_per_sample(PoissonHMM().fit(X), X)
    -1.36391
    """
    if isinstance(estimator, SequencePipeline):
        X, estimator = estimator.transformed(X), estimator.pipeline[-1]
    model = getattr(estimator, "hmm_", estimator)
    n_samples = sum(len(item) for item in X) if isinstance(X, list | tuple) else len(X)
    return float(model.score(X)) / n_samples


def accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Share of the labels that a fitted classifier gets right: a scorer."""
    if isinstance(estimator, SequencePipeline):
        X, estimator = estimator.transformed(X), estimator.pipeline[-1]
    return float(estimator.score(X, y))


@dataclass(frozen=True)
class OfPipelines:
    """A scorer of the user's own, for the last step of a pipeline and sequences as it sees them."""

    scorer: Scorer

    def __call__(self, estimator: SequencePipeline, X: Any, y: Any = None) -> float:
        return self.scorer(estimator.pipeline[-1], estimator.transformed(X), y)
