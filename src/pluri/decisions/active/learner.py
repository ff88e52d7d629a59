"""A learner that asks for labels, around any model with scikit-learn's interface.

References
----------
Settles, B. (2009). Active learning literature survey. University of Wisconsin-Madison, CS technical report 1648.
"""

from __future__ import annotations

import os
from typing import Any

from pluri.decisions.active.pool_learner import PoolLearner
from pluri.decisions.active.strategies import STRATEGIES, Strategy
from pluri.validation import RandomState


class ActiveLearner(PoolLearner):
    """A model that says which rows it should be taught next.

    Parameters
    ----------
    estimator : estimator, default=None
        Any classifier or regressor of scikit-learn's interface, or a pipeline: those of scikit-learn, `NaiveBayes`,
        `SequenceClassifier` (the pool is then a list of sequences), `SupervisedLDA`, networks with MC dropout,
        Gaussian processes. By default a logistic regression.
    strategy : {"random", "least_confident", "margin", "entropy", "vote_entropy", "kl", "bald", "fisher_a", \
"fisher_d", "fisher_e", "variance", "expected_error"} or callable, default="margin"
        How rows are scored. From probabilities (:func:`uncertainty_scores`); from the disagreement of the members of an
        ensemble or of draws by ``predict_proba_samples`` (:func:`committee_scores`; "bald" is another name of "kl");
        from the information about coefficients (:func:`fisher_scores`); the predictive variance of a regressor, from
        ``predict(X, return_std=True)`` or the spread of an ensemble; or from the error that would be left
        (:func:`expected_error_scores`, of 30 rows drawn at random). A callable takes the learner and the rows, and
        gives a score for each of them.
    batch_size : int, default=1
        Labels to ask for before the model is fitted again.
    n_queries : int, default=None
        Labels that `run` asks for at most; by default those of the whole pool.
    batches : {"top", "diverse"}, default="top"
        Rows of the highest scores; or high scores that differ from each other, chosen by a determinantal point process
        (:func:`diverse_rows`).
    min_score : float, default=None
        `run` ends when no row of the pool scores so high.
    classes : array-like, default=None
        The labels there may be; others are refused. By default any.
    warm_start : bool, default=False
        Whether a fit starts from the model before it, for estimators that have ``warm_start``; otherwise from scratch.
    checkpoint : path, default=None
        File of `run`, written after each batch; a run that finds one of its own goes on from there.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of random choices and ties; the estimator has its own.
    verbose : int, default=0

    Attributes
    ----------
    estimator_ : estimator
        Fitted to all labels so far.
    X_, y_ : rows and labels so far
    queried_ : ndarray of int
        Rows of the pool in the order in which they were asked for, by `run`.
    history_ : dict of lists
        One entry for each fit of `run`: ``n_labels``; ``n_queries``, those that were asked for; ``score`` on `X_eval`;
        ``max_score``, the highest score in the pool.

    See Also
    --------
    compare_strategies : Which strategy is better than asking at random, with intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import ActiveLearner
    >>> X = np.linspace(-3, 3, 61)[:, None]
    >>> y = np.where(X[:, 0] > 0.75, "high", "low")
    >>> learner = ActiveLearner(strategy="margin", random_state=0).fit(X[[0, 60]], y[[0, 60]])
    >>> learner.query(X[1:60], 2).tolist()  # near the boundary as far as it is known, which is 0
    [29, 28]
    >>> learner.set_params(n_queries=8).run(X[1:60], oracle=lambda rows: y[1:60][rows]).queried_.size
    8
    >>> learner.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        strategy: str | Strategy = "margin",
        *,
        batch_size: int = 1,
        n_queries: int | None = None,
        batches: str = "top",
        min_score: float | None = None,
        classes: Any = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.batch_size = batch_size
        self.n_queries = n_queries
        self.batches = batches
        self.min_score = min_score
        self.classes = classes
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _strategy(self) -> str | Strategy:
        if not callable(self.strategy) and self.strategy not in STRATEGIES:
            raise ValueError(
                f"strategy must be one of {', '.join(map(repr, STRATEGIES))} or a callable, got {self.strategy!r}"
            )
        return self.strategy
