"""Choosing the number of states, the diversity or any other setting by cross-validation over whole sequences.

A thin layer on scikit-learn's grid search, which sees a list of sequences where it expects a list of samples. The score
is the held-out log-likelihood per sample, or the accuracy of an `HMMClassifier`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.labelled.labels import join_labels
from pluri.sequences.selection.best_model import BestModel
from pluri.sequences.selection.folds import SequenceKFold
from pluri.sequences.selection.pipelines import SequencePipeline, divide_rows, fit_pipeline
from pluri.sequences.selection.scorers import OfPipelines, Scorer, accuracy, log_likelihood_per_sample
from pluri.validation.interruption import Interrupted, hold
from pluri.validation.sequences import BOUNDARIES, is_sequence_list, join_sequences


class HMMSearchCV(MetaEstimatorMixin, BestModel):
    """Search over the settings of a hidden Markov model, by cross-validation over whole sequences.

    Parameters
    ----------
    estimator : hidden Markov model of `pluri.sequences`, `HMMClassifier`, or `Pipeline` that ends in one
        The steps before it see the rows of the training sequences of a fold. Parameters are set by constructor
        arguments (such as `transmat_init`): attributes set by hand would not survive, and are refused.
    param_grid : dict or list of dicts, default=None
        Names and the values to try, as in scikit-learn's `GridSearchCV`; of a pipeline, such as
        ``gaussianhmm__n_components``.
    n_components, diversity : list, default=None
        Values to try, if `param_grid` is None: shorthands for the two usual searches.
    cv : int, splitter or iterable, default=5
        Number of folds, into which the sequences are dealt at random; or what scikit-learn takes, to be applied to a
        list of sequences.
    scoring : {"log_likelihood", "accuracy"}, callable or None, default=None
        Held-out log-likelihood per sample; accuracy of an `HMMClassifier`; or ``scoring(estimator, X, y)``, where X
        and y are lists of sequences, higher is better. None is accuracy for a classifier, log-likelihood for others.
        In a pipeline it is the last step that is scored, on sequences as that sees them: the likelihood is that of the
        transformed values, and compares settings of the last step only.
    refit : bool, default=True
        Whether to fit the best settings on all data at the end.
    block_length : int, default=None
        Cut the sequences into blocks of this length for the cross-validation, as is needed when there is only one.
        The first sample of a block then counts as a start. The final fit sees the sequences whole.
    n_jobs : int, default=None
        Number of fits to run at the same time.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of the folds.
    error_score : "raise" or float, default=nan
        Score of a setting whose fit fails.
    verbose : int, default=0

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Mean score of the best settings over the folds.
    best_index_ : int
    best_estimator_ : estimator
        Fitted on all data, if `refit`.
    cv_results_ : dict of arrays
        As `GridSearchCV` gives it.

    Examples
    --------
    >>> from pluri.datasets import make_toy_hmm
    >>> from pluri.sequences import GaussianHMM, HMMSearchCV
    >>> toy = make_toy_hmm(n_sequences=60, random_state=0)
    >>> search = HMMSearchCV(GaussianHMM(n_init=3, random_state=0), n_components=[3, 5], cv=3, random_state=0)
    >>> search.fit(toy.X, lengths=toy.lengths).best_params_
    {'n_components': 5}
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

    def __init__(
        self,
        estimator: Any,
        param_grid: dict[str, Sequence[Any]] | list[dict[str, Sequence[Any]]] | None = None,
        *,
        n_components: Sequence[int] | None = None,
        diversity: Sequence[Any] | None = None,
        cv: Any = 5,
        scoring: str | Scorer | None = None,
        refit: bool = True,
        block_length: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        error_score: Any = np.nan,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_components = n_components
        self.diversity = diversity
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.block_length = block_length
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.error_score = error_score
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

    def _with_model(self, model: HiddenMarkovModel) -> Any:
        """The estimator, of which the settings of the model can be set: a classifier's model may be left out."""
        if not self._is_classifier or self._last_step.hmm is not None:
            return self.estimator
        estimator = clone(self.estimator)
        (estimator[-1] if self._is_pipeline else estimator).set_params(hmm=clone(model))
        return estimator

    def _refuse_hand_set(self, model: HiddenMarkovModel) -> None:
        """Attributes set by hand are not copied by `clone`, and a search without them is another search."""
        if hasattr(model, "history_"):
            return
        names = sorted(model._hand_set())
        if names:
            raise ValueError(
                f"estimator must have its starting values as constructor arguments (transmat_init, say), got "
                f"{', '.join(names)} set as attributes, which copies of the estimator do not have"
            )

    def fit(self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Self:
        """Try all settings.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : array of shape (n_samples,), or list of sequences of labels, optional
            Labels for a classifier, or for a `scoring` of your own; other models ignore them.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X; one sequence if neither `lengths` nor `groups` is given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        self : object
        """
        model = self._last_step._template() if self._is_classifier else self._last_step
        if not isinstance(model, HiddenMarkovModel):
            raise TypeError(
                "estimator must be a hidden Markov model of pluri.sequences, an HMMClassifier or a pipeline that ends "
                f"in one, got {type(model).__name__}"
            )
        self._refuse_hand_set(model)
        estimator = self._with_model(model)
        grid, scorer = self._grid(), self._scorer()
        y, lengths = self._labels_and_lengths(X, y, lengths, groups)
        sequences, labels = self._as_lists(clone(model), X, y, lengths, fitting=True)
        cv = self.cv
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
            if len(sequences) < cv:
                raise ValueError(
                    f"cv must be at most the number of sequences ({len(sequences)}), got {cv}: pass lengths, or "
                    "block_length to cut long sequences into blocks"
                )
            cv = SequenceKFold(int(cv), shuffle=True, random_state=self.random_state)
        search = GridSearchCV(
            SequencePipeline(estimator) if self._is_pipeline else estimator,
            grid,
            scoring=scorer,
            n_jobs=self.n_jobs,
            refit=False,
            cv=cv,
            verbose=self.verbose,
            error_score=self.error_score,
        )
        with np.errstate(invalid="ignore"):  # a setting under which a fold is impossible scores -inf
            search.fit(sequences, labels)
        self.cv_results_ = search.cv_results_
        self.best_index_ = search.best_index_
        self.best_params_ = search.best_params_
        self.best_score_ = search.best_score_
        self.scorer_ = scorer
        self.n_splits_ = search.n_splits_
        if self.refit:
            best = clone(estimator).set_params(**clone(self.best_params_, safe=False))
            try:
                self._refit(best, X, y if self._is_classifier else None, lengths)
            except Interrupted as stop:
                if stop.result is None:
                    raise
                hold(stop, f"{stop}; the search is complete, but best_estimator_ is what the last fit had so far")
            self.best_estimator_ = best
            if hasattr(best, "n_features_in_"):
                self.n_features_in_ = best.n_features_in_
        return self

    def _refit(self, best: Any, X: Any, labels: Any, lengths: Any) -> None:
        """Fit the best model or pipeline to all sequences, in place."""
        if self._is_pipeline:
            parts, counts = divide_rows(X, lengths)
            rows = join_sequences(parts)[0] if is_sequence_list(X) else X
            fit_pipeline(best, rows, None if labels is None else join_labels(labels)[0], counts)
        else:
            best.fit(X, labels, lengths)

    def _grid(self) -> dict[str, Sequence[Any]] | list[dict[str, Sequence[Any]]]:
        if self.param_grid is not None:
            if self.n_components is not None or self.diversity is not None:
                raise ValueError("n_components and diversity must be None when param_grid is given")
            return self.param_grid
        prefix = f"{self.estimator.steps[-1][0]}__" if self._is_pipeline else ""
        prefix += "hmm__" if self._is_classifier else ""
        if self._is_classifier and self.n_components is not None:
            raise ValueError("n_components must be None for an HMMClassifier: it has a state for each class")
        shorthands = {"n_components": self.n_components, "diversity": self.diversity}
        grid: dict[str, Sequence[Any]] = {
            prefix + name: list(values) for name, values in shorthands.items() if values is not None
        }
        if not grid:
            raise ValueError("param_grid, n_components or diversity must say what to search over, got None")
        return grid

    def _scorer(self) -> Scorer:
        scoring = self.scoring
        if callable(scoring):
            is_own = scoring in (log_likelihood_per_sample, accuracy)
            return OfPipelines(scoring) if self._is_pipeline and not is_own else scoring
        if scoring is None:
            scoring = "accuracy" if self._is_classifier else "log_likelihood"
        if scoring == "log_likelihood":
            return log_likelihood_per_sample
        if scoring == "accuracy" and self._is_classifier:
            return accuracy
        raise ValueError(
            "scoring must be 'log_likelihood', 'accuracy' (for an HMMClassifier), a callable or None, "
            f"got {self.scoring!r}"
        )

    def _check_fitted_state(self) -> None:
        for name, values in getattr(self, "cv_results_", {}).items():
            if len(values) != len(self.cv_results_["params"]):
                raise ValueError(f"cv_results_[{name!r}] must have an entry for each candidate, got {len(values)}")
