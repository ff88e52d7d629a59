r"""Naive Bayes with a family for each feature, explicit priors, and an exact Bayesian predictive.

    p(y = c | x) proportional to pi_c prod_j p(x_j | theta_jc),    pi ~ Dirichlet(alpha),

with theta_jc estimated by maximum likelihood, as the posterior mode, or integrated out. See
`pluri.mixtures.naive_bayes.feature_families` for the families and their priors.

References
----------
Murphy (2012), Machine learning: a probabilistic perspective, section 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, validate_data

from pluri.mixtures.naive_bayes.feature_families import (
    BernoulliFeatures,
    CategoricalFeatures,
    Inference,
    log_dirichlet,
    log_dirichlet_evidence,
    modes,
)
from pluri.mixtures.naive_bayes.gaussian_features import GaussianFeatures
from pluri.mixtures.naive_bayes.information import NaiveBayesInformation
from pluri.mixtures.naive_bayes.queries import LogOdds, NaiveBayesQueries, blocks, columns_of
from pluri.priors import Beta
from pluri.validation import Allowed, Made, Number, Only, Stored, Whole, check_parameters
from pluri.validation.estimator import Estimator
from pluri.validation.inputs import refuse_words

__all__ = ["LogOdds", "NaiveBayes"]

Array = NDArray[np.float64]

FAMILIES = ("bernoulli", "gaussian", "categorical")


class NaiveBayes(NaiveBayesQueries, NaiveBayesInformation, ClassifierMixin, Estimator):
    """Naive Bayes classifier for binary, categorical and real features, in any mixture.

    Parameters
    ----------
    family : {"bernoulli", "gaussian", "categorical"} or list of these, default="bernoulli"
        The distribution of every feature, or of each column. Categories are whole numbers from 0
        (`sklearn.preprocessing.OrdinalEncoder` makes them of words).
    inference : {"map", "ml", "bayes"}, default="map"
        Posterior modes, maximum likelihood, or posterior means with the exact predictive of a new row (Student-t for
        Gaussian features).
    weight_prior : float or array of shape (n_classes,), default=1.0
        Dirichlet prior of the class probabilities.
    probabilities_prior : `pluri.priors.Beta` prior or None, default=None
        Prior of the probability of a one in a Bernoulli feature; None is Beta(2, 2), which with "map" adds a one and a
        zero, as ``sklearn.naive_bayes.BernoulliNB(alpha=1)`` does; Beta(1, 1) with "map" is maximum likelihood.
    category_prior : float, default=2.0
        Dirichlet prior of each value of a categorical feature.
    normal_prior : (mean, strength, shape, rate), optional
        Normal-Gamma prior of a Gaussian feature, numbers or one per Gaussian column. By default each column's own mean
        and variance, with the weight of one row.
    binarize : float or None, default=0.0
        A Bernoulli feature is one above this; None: X has zeros and ones already.
    n_categories : int, optional
        Number of values of each categorical feature; by default one more than the largest code seen.
    var_smoothing : float, default=1e-9
        Share of the largest variance of a column that is added to all variances.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_count_, class_prior_ : arrays of shape (n_classes,)
        Weight of the rows of each class, and its estimated probability.
    theta_ : array of shape (n_classes, n_bernoulli)
        P(x_j = 1 | class) of the Bernoulli columns.
    mean_, var_ : arrays of shape (n_classes, n_gaussian)
        Location and squared scale of the Gaussian columns.
    category_prob_ : list of arrays of shape (n_classes, n_values)
        P(value | class) of each categorical column.
    log_likelihood_ : float
        Log p(X, y) at the estimates.
    log_posterior_ : float
        The same plus the log prior density of the estimates ("ml" has no prior).
    log_evidence_ : float
        Log p(X, y) with all parameters integrated out; for "map" and "bayes".

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures import NaiveBayes
    >>> X = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> model = NaiveBayes().fit(X, [0, 0, 0, 1, 1])
    >>> model.theta_
    array([[0.8 , 0.4 , 0.4 ],
           [0.25, 0.75, 0.5 ]])
    >>> model.predict_proba([[1, 1, 1]]).round(4)
    array([[0.6719, 0.3281]])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "class_count_": Stored("n_classes", least=0),
        "class_prior_": Stored("n_classes", simplex=True),
        "_log_class_prior": Stored("n_classes", finite=False),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "inference": Only("map", "ml", "bayes"),
        "probabilities_prior": Made(Beta, "a prior (Beta)") | Only(None),
        "category_prior": Number(above=0),
        "n_categories": Whole(1) | Only(None),
        "var_smoothing": Number(least=0),
    }

    def __init__(
        self,
        family: str | list[str] = "bernoulli",
        inference: str = "map",
        weight_prior: ArrayLike = 1.0,
        probabilities_prior: Beta | None = None,
        category_prior: float = 2.0,
        normal_prior: tuple[Any, Any, Any, Any] | None = None,
        binarize: float | None = 0.0,
        n_categories: int | None = None,
        var_smoothing: float = 1e-9,
    ) -> None:
        self.family = family
        self.inference = inference
        self.weight_prior = weight_prior
        self.probabilities_prior = probabilities_prior
        self.category_prior = category_prior
        self.normal_prior = normal_prior
        self.binarize = binarize
        self.n_categories = n_categories
        self.var_smoothing = var_smoothing

    # Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Count and estimate.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the same as the row twice.
        """
        refuse_words(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        return self._learn(X, y, np.unique(y), sample_weight, afresh=True)

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add rows to those counted before; the result is that of one `fit` to all of them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), optional
            All classes that there will be; needed at the first call.
        sample_weight : array of shape (n_samples,), optional
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be given at the first call of partial_fit, got None")
        refuse_words(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=first)
        check_classification_targets(y)
        known = unique_labels(classes) if classes is not None else self.classes_
        if not first and not np.array_equal(known, self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_}, got {known}")
        return self._learn(X, y, known, sample_weight, afresh=first)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: ArrayLike | None, *, afresh: bool) -> Self:
        self._check_settings()
        families = self._families(X.shape[1])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        if not (classes[codes] == y).all():
            raise ValueError(f"y must hold the classes {classes} only, got {y[classes[codes] != y][0]!r}")
        membership = np.zeros((X.shape[0], len(classes)))
        membership[np.arange(len(y)), codes] = weight
        counted = [self._count(kind, columns_of(X, columns), membership) for kind, columns in families]
        class_count = membership.sum(axis=0)
        if not afresh:
            counted = [old + new for old, new in zip(self._statistics, counted)]
            class_count = self.class_count_ + class_count
        if class_count.sum() == 0:
            raise ValueError("sample_weight must have a positive sum, got 0")
        self._estimate(classes, families, counted, class_count)
        return self

    def _count(self, kind: Any, X: Any, membership: Array) -> Any:
        if isinstance(kind, BernoulliFeatures) or not sparse.issparse(X):
            return kind.count(kind.prepare(X), membership)
        # Blocks of rows: the whole would not fit as a dense array.
        parts = [kind.count(kind.prepare(X[rows]), membership[rows]) for rows in blocks(X.shape[0])]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _estimate(self, classes: Any, families: Any, counted: list[Any], class_count: Array) -> None:
        how: Inference = self.inference  # type: ignore[assignment]
        alpha = self._class_prior(len(classes))
        class_prior = modes(class_count, alpha, "weight_prior", how)
        estimates = [kind.estimate(stats, how) for (kind, _), stats in zip(families, counted)]
        # Nothing is set before everything has been computed: a failed fit leaves the model as it was.
        self.classes_, self.class_count_, self.class_prior_ = classes, class_count, class_prior
        self._layout, self._statistics, self._estimates = families, counted, estimates
        with np.errstate(divide="ignore"):
            self._log_class_prior = np.log(class_prior)
        for (kind, _), estimate in zip(families, estimates):
            if isinstance(kind, BernoulliFeatures):
                self.theta_ = estimate
            elif isinstance(kind, GaussianFeatures):
                self.mean_, self.var_ = estimate.mean, estimate.variance
            else:
                self.category_prob_ = estimate
        counts = np.where(class_count > 0, class_count * np.where(class_prior > 0, self._log_class_prior, 0.0), 0.0)
        triples = [(kind, stats, value) for (kind, _), stats, value in zip(families, counted, estimates)]
        self.log_likelihood_ = float(counts.sum()) + sum(k.log_score(s, value) for k, s, value in triples)
        self.log_posterior_ = self.log_likelihood_
        if how != "ml":
            prior = log_dirichlet(class_prior, alpha) + sum(k.log_prior(value, s) for k, s, value in triples)
            self.log_posterior_ += prior
            evidence = log_dirichlet_evidence(class_count, alpha)
            self.log_evidence_ = evidence + sum(k.log_evidence(s) for k, s, _ in triples)

    # Checks -------------------------------------------------------------------------------------------------------

    def _families(self, n_features: int) -> list[tuple[Any, NDArray[np.int64]]]:
        """Each family that occurs, with its columns."""
        names = [self.family] * n_features if isinstance(self.family, str) else list(self.family)
        if len(names) != n_features:
            raise ValueError(f"family must name a family for each of {n_features} columns, got {len(names)}")
        strangers = sorted({str(name) for name in names} - set(FAMILIES))
        if strangers:
            raise ValueError(f"family must be one of {FAMILIES}, or a list of these, got {strangers[0]!r}")
        kinds: dict[str, Any] = {
            "bernoulli": BernoulliFeatures(self.probabilities_prior or Beta(2.0, 2.0), self.binarize),
            "gaussian": GaussianFeatures(self.normal_prior, float(self.var_smoothing)),
            "categorical": CategoricalFeatures(float(self.category_prior), self.n_categories),
        }
        places = {name: np.flatnonzero(np.array(names) == name) for name in FAMILIES}
        return [(kinds[name], columns) for name, columns in places.items() if len(columns)]

    def _class_prior(self, n_classes: int) -> Array:
        alpha = np.asarray(self.weight_prior, dtype=np.float64)
        if alpha.shape not in ((), (n_classes,)) or not (alpha > 0).all() or not np.isfinite(alpha).all():
            raise ValueError(
                f"weight_prior must be a positive number, or one for each of {n_classes} classes, got {alpha}"
            )
        return np.broadcast_to(alpha, (n_classes,))

    def _check_settings(self) -> None:
        check_parameters(self)
        if self.normal_prior is not None:
            if len(self.normal_prior) != 4:
                raise ValueError(f"normal_prior must be (mean, strength, shape, rate), got {self.normal_prior!r}")
            _, strength, shape, rate = (np.asarray(value, dtype=np.float64) for value in self.normal_prior)
            if not ((strength > 0).all() and (shape > 0.5).all() and (rate > 0).all()):
                raise ValueError(
                    "normal_prior must have a positive strength and rate, and a shape above 0.5, got "
                    f"{self.normal_prior!r}"
                )

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.family == "categorical"
        return tags

    def _check_fitted_state(self) -> None:
        if hasattr(self, "class_count_") and np.shape(self.classes_) != np.shape(self.class_count_):
            raise ValueError(f"classes_ must be {len(self.class_count_)}, got {len(self.classes_)}")
