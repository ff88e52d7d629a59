r"""Classification of whole sequences: one hidden Markov model for each class, and Bayes' rule.

Each class c has a model p(x | c), fitted to the sequences of that class alone, and a prior probability p(c). A new
sequence belongs to the class of the highest posterior

    log p(c | x)  =  log p(c) + log p(x | c) - log sum_c' p(c') p(x | c'),

where log p(x | c) is summed over all state paths and all missing values by the forward recursion.

References
----------
L. R. Rabiner, "A tutorial on hidden Markov models and selected applications in speech recognition", Proceedings of the
IEEE 77, 1989, section VII (isolated words).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags

from pluri.components.sequence_model import TakesSequences
from pluri.sequences.gaussian import GaussianHMM
from pluri.sequences.labelled.sequence_answers import SequenceAnswers
from pluri.sequences.labelled.sequence_labels import joined, labels_of_sequences, learn_words, numbered, rows_of
from pluri.validation import (
    Allowed,
    Only,
    Stored,
    as_generator,
    check_distributions,
    check_parameters,
    check_value,
    restored_on_failure,
)
from pluri.validation.interruption import Interrupted, hold
from pluri.validation.sequences import BOUNDARIES, check_sequence_weight, weight_by_either_name

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def default_hmm() -> GaussianHMM:
    """The model of a class if none is given; `benchmarks/reproduce/sequence_classifier.py` compares it with others."""
    return GaussianHMM(5, random_state=0)


class SequenceClassifier(SequenceAnswers):
    """Classifier of whole sequences: a hidden Markov model for each class, and the class of highest posterior.

    Parameters
    ----------
    hmm : hidden Markov model of `pluri.sequences`, dict or None, default=None
        The model of every class, of which each gets a copy; settings are searched as ``hmm__n_components``. A dict
        from class to model gives each class its own. None is ``GaussianHMM(5, random_state=0)``.
    class_prior : {"learn", "uniform"}, array of shape (n_classes,) or dict, default="learn"
        Probabilities of the classes: their shares of the sequences (of their weights), equal ones, or given ones, in
        the order of the sorted classes or by class.
    n_jobs : int or None, default=None
        Number of processes that fit classes at the same time. A model's own `n_jobs` are threads within its fit.
    random_state : int, numpy Generator, RandomState or None, default=None
        If not None, the model of each class gets a seed of its own drawn from it, in place of what it has.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    hmms_ : list of hidden Markov models
        The fitted model of each class, in the order of `classes_`. Words are numbers to them: see `vocabulary_`.
    class_prior_ : array of shape (n_classes,)
    class_count_ : array of shape (n_classes,)
        Number of training sequences of each class (sum of their weights).
    vocabulary_ : list of arrays or None
        Sorted words of each column, of all classes, if X holds strings.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import GaussianHMM, SequenceClassifier
    >>> rng = np.random.default_rng(0)
    >>> slow = [np.repeat(rng.normal(size=4), 5) + 0.1 * rng.normal(size=20) for _ in range(20)]
    >>> fast = [rng.normal(size=20) for _ in range(20)]
    >>> model = SequenceClassifier(GaussianHMM(3, n_init=3, random_state=0))
    >>> model = model.fit(slow[:15] + fast[:15], ["slow"] * 15 + ["fast"] * 15)
    >>> model.predict(slow[15:]).tolist()
    ['slow', 'slow', 'slow', 'slow', 'slow']
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "class_prior_": Stored("n_classes_", least=0),
        "class_count_": Stored("n_classes_", least=0),
    }
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

    def __init__(
        self,
        hmm: Any = None,
        *,
        class_prior: Any = "learn",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.hmm = hmm
        self.class_prior = class_prior
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.hmm.values() if isinstance(self.hmm, dict) else [self._template()]
        models = [get_tags(hmm) for hmm in given if isinstance(hmm, TakesSequences)]
        if models:
            tags.input_tags = models[0].input_tags
            tags.input_tags.allow_nan = all(each.input_tags.allow_nan for each in models)
        # Samples are sequences: an array has three axes, and rows alone are told apart by lengths.
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def _template(self) -> Any:
        return default_hmm() if self.hmm is None else self.hmm

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
        """Fit the model of each class to the sequences of that class.

        Parameters
        ----------
        X : list of sequences, array of shape (n_sequences, n_steps, n_features), or (n_samples, n_features)
            NaN marks a missing value, if the model takes them.
        y : array of shape (n_sequences,)
            The class of each sequence. Also taken, as scikit-learn's tools split rows: the class of each sample, which
            must be the same within a sequence.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if X is an array of samples and neither
            `lengths` nor `groups` is given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`; reaches the model through scikit-learn's cross-validation
            with metadata routing.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence, in its model and in the class probabilities; also taken under the name
            ``sample_weight``.

        Returns
        -------
        self : object
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        check_parameters(self)
        rows, counts = joined(X, lengths, groups, fitting=True)
        labels = labels_of_sequences(y, counts)
        weight = check_sequence_weight(sequence_weight, counts)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got one: {classes.tolist()[0]!r}")
        class_count = np.bincount(codes, weights=weight).astype(np.float64)
        prior = _class_probabilities(self.class_prior, classes, class_count)
        models = self._models(classes)
        words = learn_words(rows) if all(map(_knows_symbols, models)) else None
        if words is not None:
            rows = numbered(rows, words, "error")
        _share_symbols(models, rows)
        jobs = [
            (model, label, _safe_indexing(rows, rows_of(codes == c, counts)), counts[codes == c],
             None if weight is None else weight[codes == c])
            for c, (model, label) in enumerate(zip(models, classes.tolist()))
        ]  # fmt: skip
        fitted = self._fit_all(jobs)
        for (_, said), label in zip(fitted, classes.tolist()):
            for category, message in said:
                warnings.warn(f"class {label!r}: {message}", category, stacklevel=2)
        with restored_on_failure(self):
            self.classes_ = classes
            self.hmms_ = [model for model, _ in fitted]
            self.class_prior_, self.class_count_ = prior, class_count
            self.vocabulary_ = None if words is None else list(words)
            self._take_features(self.hmms_[0])
        return self

    def _models(self, classes: NDArray[Any]) -> list[Any]:
        """A model for each class, not fitted."""
        labels = classes.tolist()
        if isinstance(self.hmm, dict):
            lacking, extra = [c for c in labels if c not in self.hmm], [c for c in self.hmm if c not in labels]
            if lacking or extra:
                what = f"none for {lacking[0]!r}" if lacking else f"one for {extra[0]!r}, which is not in y"
                raise ValueError(f"hmm, a dict, must have a model for each class of y and no others, got {what}")
            templates = [self.hmm[label] for label in labels]
        else:
            templates = [self._template()] * len(labels)
        for template in templates:
            if not isinstance(template, TakesSequences) or not hasattr(template, "score_sequences"):
                raise TypeError(
                    "hmm must be a hidden Markov model of pluri.sequences, a dict of them or None, got "
                    f"{type(template).__name__}"
                )
        models = [_copy_of(template) for template in templates]
        if self.random_state is not None:
            seeds = as_generator(self.random_state).integers(2**31, size=len(models))
            for model, seed in zip(models, seeds.tolist()):
                model.set_params(random_state=seed)
        return models

    def _fit_all(self, jobs: list[tuple[Any, ...]]) -> list[tuple[Any, list[tuple[type[Warning], str]]]]:
        """Fitted models, and what was said meanwhile; what Ctrl-C leaves is kept if no class is without a model."""
        if effective_n_jobs(self.n_jobs) > 1:
            return list(Parallel(n_jobs=self.n_jobs)(delayed(_fit_class)(*job) for job in jobs))
        fitted: list[tuple[Any, list[tuple[type[Warning], str]]]] = []
        for job in jobs:
            try:
                fitted.append(_fit_class(*job))
            except Interrupted as stop:
                if stop.result is None or len(fitted) < len(jobs) - 1:
                    raise
                hold(stop, f"{stop}; it was the last class, and the classifier has this model of it")
                fitted.append((stop.result, []))
        return fitted

    def _take_features(self, model: Any) -> None:
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _copy_of(template: Any) -> Any:
    """A model with the settings of another, and with the starting values that were set on it by hand."""
    model = clone(template)
    for name in template._hand_set() if hasattr(template, "_hand_set") else ():
        stored = name if name in vars(template) else f"_{name}"  # a property reads other shapes than it takes
        setattr(model, stored, vars(template)[stored])
    return model


def _knows_symbols(model: Any) -> bool:
    """Whether a model reads symbols from a list that `n_features` tells the length of."""
    return "n_features" in model.get_params(deep=False) and bool(get_tags(model).input_tags.categorical)


def _share_symbols(models: list[Any], rows: Any) -> None:
    """Tell models of symbols, in place, how many all classes together use: one not seen in a class is no error."""
    for model in models:
        if _knows_symbols(model) and model.n_features is None and np.asarray(rows).dtype.kind in "biuf":
            largest = np.nanmax(np.asarray(rows, dtype=np.float64), initial=0.0)
            model.set_params(n_features=int(largest) + 1 if np.isfinite(largest) else None)


def _fit_class(
    model: Any, label: Any, rows: Any, lengths: Integers, weight: Array | None
) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """Fit the model of one class, in place; errors name the class, and warnings are given back."""
    weights = {} if weight is None else {"sequence_weight": weight}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model.fit(rows, lengths=lengths, **weights)
        except (ValueError, FloatingPointError) as error:
            kind = FloatingPointError if isinstance(error, FloatingPointError) else ValueError
            raise kind(f"class {label!r} ({len(lengths)} sequences, {lengths.sum()} samples): {error}") from error
    return model, [(warning.category, str(warning.message)) for warning in said]


def _class_probabilities(given: Any, classes: NDArray[Any], class_count: Array) -> Array:
    """Probabilities of the classes, as `class_prior` says."""
    if isinstance(given, str):
        check_value(given, "class_prior", Only("learn", "uniform"))
        return class_count / class_count.sum() if given == "learn" else np.full(len(classes), 1.0 / len(classes))
    if isinstance(given, Mapping):
        if set(given) != set(classes.tolist()):
            raise ValueError(
                f"class_prior must have a probability for each class of y, {classes.tolist()}, got {list(given)}"
            )
        given = [given[label] for label in classes.tolist()]
    prior = np.asarray(given, dtype=np.float64)
    if prior.shape != (len(classes),):
        raise ValueError(
            f"class_prior must be 'learn', 'uniform' or a probability for each of {len(classes)} classes, got shape "
            f"{prior.shape}"
        )
    check_distributions("class_prior", prior)
    return prior
