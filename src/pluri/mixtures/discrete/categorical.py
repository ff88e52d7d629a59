"""Categorical mixture (latent class analysis): p(x) = sum_z pi_z prod_f b_zf(x_f), each column with its own categories.

References
----------
.. [1] Lazarsfeld and Henry (1968). Latent Structure Analysis. Houghton Mifflin.
.. [2] Goodman (1974). Exploratory latent structure analysis using both identifiable and unidentifiable models.
   Biometrika 61, 215-231.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.components.categorical_columns import CategoricalColumnsFamily, ProductCategoricalParameters
from pluri.components.categories import (
    UNSEEN,
    Categories,
    column_values,
    given_categories,
    joined_categories,
    learn_categories,
)
from pluri.components.diverse_tables import ProductCategoricalKernel, columns_of
from pluri.components.weighted_sums import WeightedSums
from pluri.engine import Source
from pluri.mixtures.discrete.mixture import DiscreteMixture, check_repelling_prior, smoothed_prior
from pluri.mixtures.discrete.prepared_source import PreparedSource
from pluri.mixtures.mixture import Prior
from pluri.priors import RowPrior, as_row_prior
from pluri.validation import Allowed, Only, check_distributions

Array = NDArray[np.float64]


class CategoricalMixture(DiscreteMixture):
    """Latent class analysis: columns of categories, independent given the class of the row.

    Parameters
    ----------
    n_components : int, default=1
        Number of classes.
    categories : list of arrays or None, default=None
        What each column may hold, whole numbers or strings; the values that `fit` sees if None.
    unseen : {"new", "missing", "error"}, default="new"
        What a value is, in a row that is scored or predicted, that is not among the categories: a new one, of which
        every class has the probability ``1 / (n + V + 1)`` after n rows with V categories in the column, so that
        held-out rows can be scored whatever they hold; a missing value; or a mistake. It says nothing about the class.
        The probabilities of the categories are not lowered for it, which would cost a row about ``1 / n`` nats for
        each column. `partial_fit` refuses values that the first batch has not shown, unless they are "missing": name
        them in `categories`.
    probabilities_prior : float, prior object, or list of these for each column, default=1.0
        Dirichlet concentration of the probabilities; above 1 smooths, below 1 asks for sparse classes.
    smoothing : float, default=1e-3
        Each class is given so many rows more, that look like the average of all rows (and one of each category).
    weight_prior, tol, max_iter, n_init, init_params, weights_init
        See `BernoulliMixture`.
    probabilities_init : list of arrays of shape (n_components, n_categories), optional
        Starting values for each column.
    diversity : float or `pluri.priors.DeterminantalPrior`, optional
        Weight of the determinantal prior that keeps the classes apart. A number uses the Bhattacharyya kernel of
        products of categorical distributions; a prior of your own sees the tables of all columns side by side, a row
        for each class.
    split_merge, acceleration, warm_start, random_state, verbose, checkpoint, engine, n_jobs
        See `BernoulliMixture`.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
    probabilities_ : list of arrays of shape (n_components, n_categories)
        One for each column.
    categories_ : list of arrays
        Category v of column f is ``categories_[f][v]``.
    converged_, n_iter_, lower_bound_, lower_bounds_, objective_, history_, occupancy_, n_features_in_
        See `BernoulliMixture`.

    Examples
    --------
    >>> from pluri.mixtures import CategoricalMixture
    >>> X = [["red", 1], ["red", 1], ["red", 2], ["blue", 3], ["blue", 3], ["blue", None]]
    >>> model = CategoricalMixture(n_components=2, random_state=0).fit(X)
    >>> labels = model.predict(X)
    >>> bool((labels[:3] == labels[0]).all() and (labels[3:] == labels[5]).all())
    True
    >>> [known.tolist() for known in model.categories_]
    [['blue', 'red'], [1, 2, 3]]
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {**DiscreteMixture._parameters, "unseen": Only(*UNSEEN)}

    _takes_sparse = False
    _input_tags: ClassVar[Mapping[str, bool]] = {"categorical": True, "string": True}

    def __init__(
        self,
        n_components: int = 1,
        *,
        categories: Sequence[ArrayLike] | None = None,
        unseen: str = "new",
        probabilities_prior: Any = 1.0,
        smoothing: float = 1e-3,
        weight_prior: Prior = 1.0,
        tol: float = 1e-4,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: ArrayLike | None = None,
        probabilities_init: Sequence[ArrayLike] | None = None,
        diversity: Any = None,
        split_merge: int = 0,
        acceleration: str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.categories = categories
        self.unseen = unseen
        self.probabilities_prior = probabilities_prior
        self.smoothing = smoothing
        self.weight_prior = weight_prior
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.probabilities_init = probabilities_init
        self.diversity = diversity
        self.split_merge = split_merge
        self.acceleration = acceleration
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    # Rows become one-hot once, at the door -----------------------------------------------------------------------

    def _posterior(self, X: Any) -> tuple[Array, Array]:
        if self.unseen != "new":
            return super()._posterior(X)
        check_is_fitted(self, "weights_")
        rows, new = self._categories().encode_with_new(self._raw_rows(X, False))
        posterior, scores = self._posterior_of(rows)
        return posterior, scores + new @ self._log_probability_of_new()

    def _log_probability_of_new(self) -> Array:
        """Log probability of a value of each column that is not among its categories: (n_features,).

        As `_average_row` has it: one more of each category, and of what was not seen.
        """
        seen = np.nansum(getattr(self, "occupancy_", 0.0))
        return -np.log(seen + np.array(self._categories().sizes) + 1.0)

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        rows = self._raw_rows(X, fitting)
        if fitting:
            self._learn_categories(learn_categories(rows) if self.categories is None else None)
        return self._categories().encode(rows)

    def _raw_rows(self, X: Any, fitting: bool) -> NDArray[Any]:
        if isinstance(X, list | tuple) and any(isinstance(value, str) for row in X if np.ndim(row) for value in row):
            X = np.array([list(row) for row in X], dtype=object)  # NumPy would turn numbers beside words into words
        elif hasattr(X, "dtypes") and hasattr(X, "astype") and not all(_is_plain(kind) for kind in X.dtypes):
            X = X.astype(object)  # columns of several kinds, each as it is
        rows = self._validated(X, fitting, dtype=None, ensure_all_finite=False)
        if rows.dtype.kind == "c":
            raise ValueError("Complex data not supported: X must hold whole numbers or strings")
        return np.asarray(rows)

    def _learn_categories(self, learned: tuple[NDArray[Any], ...] | None) -> None:
        known = given_categories(self.categories, int(self.n_features_in_)) if learned is None else learned
        for f, values in enumerate(known):
            if len(values) == 0:
                raise ValueError(f"X must have at least one value in column {f}, got only missing ones")
        self.categories_ = list(known)

    def _categories(self) -> Categories:
        return Categories(tuple(self.categories_), self.unseen)

    def _checked_source(self, source: Source) -> Source:
        source = super()._checked_source(source)
        if self.categories is None:
            learned: tuple[NDArray[Any], ...] = tuple(self.categories_)
            for lazy in source.batches():
                learned = joined_categories(learned, learn_categories(lazy.load().X))
            self._learn_categories(learned)
        return PreparedSource(source, self._categories().encode)

    def impute(self, X: Any) -> NDArray[Any]:
        """Fill in missing values by the most probable category, given what is observed of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN or None marks a missing value. One that `fit` did not see is left as it is, or taken for missing if
            ``unseen="missing"``.

        Returns
        -------
        array of shape (n_samples, n_features)

        Examples
        --------
        >>> from pluri.mixtures import CategoricalMixture
        >>> X = [["red", "hot"], ["red", "hot"], ["red", "mild"], ["blue", "cold"], ["blue", "cold"]]
        >>> CategoricalMixture(n_components=2, random_state=0).fit(X).impute([["blue", None], [None, "hot"]]).tolist()
        [['blue', 'cold'], ['red', 'hot']]
        """
        posterior = self.predict_proba(X)
        filled = np.array(self._raw_rows(X, False))
        categories = self._categories()
        new = categories.encode_with_new(filled)[1]
        for f, table in enumerate(self.probabilities_):
            gone = column_values(filled[:, f], f)[1]
            if self.unseen == "missing":
                gone = gone | new[:, f]
            filled[gone, f] = categories.decode(f, (posterior[gone] @ table).argmax(axis=1))
        return filled

    # Parameters -------------------------------------------------------------------------------------------------

    def _family(self, source: Source | None) -> CategoricalColumnsFamily:
        categories = self._categories()
        sizes, columns = categories.sizes, columns_of(categories.sizes)
        pseudo_row = self._pseudo_row(source, _as_they_are)
        priors = []
        for base, column in zip(self._column_priors(sizes), columns):
            extra = None if pseudo_row is None else pseudo_row[column]
            priors.append(smoothed_prior(base, (self.n_components, column.stop - column.start), extra))
        repulsion = self._repulsion(ProductCategoricalKernel(sizes))
        if repulsion is not None:
            self._check_room(repulsion, float(np.sum(np.log(sizes))))
            for prior, size in zip(priors, sizes):
                check_repelling_prior(prior, (self.n_components, size))
        given = None if source is None or self.probabilities_init is None else self._tables("probabilities_init", sizes)
        return CategoricalColumnsFamily(categories, tuple(priors), given, self.init_params, repulsion)

    def _average_row(self, sums: WeightedSums) -> Array:
        counts = sums.total[0] + 1.0  # a category that was not seen so far may still come
        for column in columns_of(self._categories().sizes):
            counts[column] /= counts[column].sum()
        return counts

    def _column_priors(self, sizes: tuple[int, ...]) -> list[RowPrior]:
        given = self.probabilities_prior
        values = given if isinstance(given, list | tuple) else [given] * len(sizes)
        if len(values) != len(sizes):
            raise ValueError(
                f"probabilities_prior must be one prior, or one for each of {len(sizes)} columns, got {len(values)}"
            )
        return [
            as_row_prior("probabilities_prior", value, (self.n_components, size)) for value, size in zip(values, sizes)
        ]

    def _tables(self, name: str, sizes: tuple[int, ...]) -> Array:
        """The columns' tables side by side, checked."""
        tables = [np.asarray(table, dtype=np.float64) for table in getattr(self, name)]
        shapes = [(self.n_components, size) for size in sizes]
        if [table.shape for table in tables] != shapes:
            raise ValueError(f"{name} must be tables of the shapes {shapes}, got {[table.shape for table in tables]}")
        for table in tables:
            check_distributions(name, table)
        return np.concatenate(tables, axis=1)

    def _component_parameters(self, family: CategoricalColumnsFamily) -> ProductCategoricalParameters:
        return ProductCategoricalParameters(self._tables("probabilities_", family.categories.sizes))

    def _store_components(self, parameters: ProductCategoricalParameters) -> None:
        columns = columns_of(self._categories().sizes)
        self.probabilities_ = [np.ascontiguousarray(parameters.probabilities[:, column]) for column in columns]

    def _center_texts(self, component: int) -> list[str]:
        """The likeliest category of each column, and its probability."""
        best = [int(table[component].argmax()) for table in self.probabilities_]
        return [
            f"{self.categories_[f][v]} ({table[component, v]:.2f})"
            for f, (v, table) in enumerate(zip(best, self.probabilities_))
        ]


def _is_plain(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "biuf"


def _as_they_are(X: Any) -> Any:
    return X
