"""A few rows of a stream that together are worth most, chosen in one pass, behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from pluri.decisions.selection.row_selector import MOST_ROWS
from pluri.decisions.selection.set_function import Array, IntArray
from pluri.decisions.selection.streaming.row_functions import (
    CoverageOfColumns,
    LogVolume,
    NearestOfReference,
    RowFunction,
    SquareRootsOfTotals,
)
from pluri.decisions.selection.streaming.sieves import Sieves
from pluri.processes.dpp.selection.chosen_rows import ChosenRows
from pluri.processes.dpp.selection.row_choice import default_length_scale, sparse_rows
from pluri.processes.dpp.similarity import as_similarity
from pluri.validation import Allowed, Number, Only, Stored, Whole, check_parameters
from pluri.validation.estimator import Estimator

#: Rows of `fit` that are looked at together.
BLOCK = 1024
#: Functions of similarities, rather than of columns.
OF_SIMILARITIES = ("facility_location", "log_det")
#: Parameters that a stream cannot change on its way.
KEPT = ("size", "function", "kernel", "epsilon")


class StreamSelector(ChosenRows, OneToOneFeatureMixin, TransformerMixin, Estimator):
    r"""Choose rows that together are worth most from a stream, of which only few are kept.

    Each row is seen once, in the order they come [1]_; batches of any sizes choose the same rows. At most
    ``size * log(2 size) / epsilon`` rows are kept, and the choice reaches :math:`1/2 - \epsilon` of the best one among
    all rows that came; `certificate_` says how much it reaches at least, which is usually more.

    Parameters
    ----------
    size : int, default=10
        Number of rows at most.
    function : {"facility_location", "log_det", "coverage", "features"}, default="facility_location"
        What a choice is worth: similarity of reference rows to the nearest chosen one, where the rows of the first call
        stand for all that come later; log det(I + K) of the similarities of the chosen rows; how many columns are not
        zero in some chosen row; the square roots of the columns' totals, summed.
    kernel : {"rbf", "cosine", "linear", "exponential_cosine"} or callable, default="rbf"
        Similarity of rows, for the first two functions; a callable takes two sets of rows.
    kernel_params : dict, optional
        Parameters of the kernel; the length scale of "rbf" is by default that of `pluri.decisions.GreedySelector` for
        the rows of the first call.
    epsilon : float, default=0.1
        Ratio of neighbouring guesses of the optimum minus one: smaller keeps more rows and reaches more.

    Attributes
    ----------
    selected_ : ndarray of int
        Chosen rows, in the order they came: their numbers in the stream.
    rows_ : ndarray or CSR array of shape (n_chosen, n_features)
        The chosen rows.
    gains_, values_ : ndarray of shape (n_chosen,)
        What each added, and the value after it.
    upper_bound_ : float
        No other choice among all rows that came has a higher value.
    certificate_ : float
        Share of the bound that the choice reaches; the optimum may be nearer.
    n_kept_ : int
        Rows in memory, for all guesses together (and those of the first call for "facility_location").
    n_samples_fit_ : int
        Rows that came.
    n_features_in_ : int

    See Also
    --------
    GreedySelector : chooses better among rows that are all in memory.

    References
    ----------
    .. [1] A. Badanidiyuru et al., "Streaming submodular maximization: massive data summarization on the fly", KDD 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import StreamSelector
    >>> selector = StreamSelector(2, "log_det", kernel_params={"length_scale": 1.0})
    >>> for batch in ([[0.0], [0.1]], [[0.2], [5.0]], [[5.1], [0.0]]):
    ...     selector = selector.partial_fit(batch)
    >>> selector.selected_, selector.rows_.ravel()
    (array([0, 3]), array([0., 5.]))
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "size": Whole(1),
        "function": Only("facility_location", "log_det", "coverage", "features"),
        "epsilon": Number(above=0, below=1),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "selected_": Stored("n_chosen", whole=True, least=0, below="n_samples_fit_"),
        "gains_": Stored("n_chosen"),
        "values_": Stored("n_chosen"),
        "_alone": Stored("size", least=0),
        "_guesses": Stored("n_sieves", whole=True),
        "_items": Stored("n_sieves", "size", whole=True, least=-1, below="n_samples_fit_"),
        "_gains": Stored("n_sieves", "size"),
        "_passed": Stored("n_sieves", "size", least=0),
        "_kept_items": Stored("n_kept", whole=True, least=0, below="n_samples_fit_"),
    }

    selected_: IntArray
    rows_: Any
    gains_: Array
    values_: Array

    def __init__(
        self,
        size: int = 10,
        function: str = "facility_location",
        *,
        kernel: str | Callable[..., Any] = "rbf",
        kernel_params: dict[str, Any] | None = None,
        epsilon: float = 0.1,
    ) -> None:
        self.size = size
        self.function = function
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.epsilon = epsilon

    @property
    def _chosen(self) -> IntArray:
        return self.selected_

    def fit(self, X: Any, y: object = None) -> Self:
        """Choose among rows, in one pass over them.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
        y : ignored
        """
        rows = self._checked(X, reset=True)
        sieves = self._begin(rows)
        function = self._row_function()
        for begin in range(0, rows.shape[0], BLOCK):
            sieves.add(function, rows[begin : begin + BLOCK], _stacked)
        return self._store(sieves)

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """More rows come.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
        y : ignored
        """
        new = not hasattr(self, "selected_")
        rows = self._checked(X, reset=new)
        sieves = self._begin(rows) if new else self._sieves()
        function = self._row_function()
        for begin in range(0, rows.shape[0], BLOCK):
            sieves.add(function, rows[begin : begin + BLOCK], _stacked)
        return self._store(sieves)

    def _checked(self, X: Any, reset: bool) -> Any:
        check_parameters(self)
        sparse_too = self._takes_sparse()
        if not sparse_too and sparse.issparse(X):
            raise sparse_rows()
        rows = validate_data(self, X, accept_sparse="csr" if sparse_too else False, dtype=np.float64, reset=reset)
        if not reset and sparse.issparse(rows) != sparse.issparse(self.rows_):
            was = "sparse" if sparse.issparse(self.rows_) else "dense"
            raise TypeError(
                f"X must be {was} as in the first call, got {'dense' if was == 'sparse' else 'sparse'} rows"
            )
        return sparse.csr_array(rows) if sparse.issparse(rows) else rows

    def _takes_sparse(self) -> bool:
        return self.function not in OF_SIMILARITIES or self.kernel != "rbf"

    def _begin(self, rows: Any) -> Sieves:
        """Before the first row: what stands for all rows is fixed."""
        if not isinstance(self.kernel_params, Mapping | None):
            raise ValueError(f"kernel_params must be a dict or None, got {self.kernel_params!r}")
        given = dict(self.kernel_params or {})
        if self.function in OF_SIMILARITIES and isinstance(self.kernel, str) and self.kernel == "rbf":
            given.setdefault("length_scale", default_length_scale(rows, self.size))
        if self.function == "facility_location" and rows.shape[0] > MOST_ROWS:
            raise ValueError(
                f"X must have at most {MOST_ROWS} rows that stand for all, got {rows.shape[0]}: give some rows to "
                "partial_fit first, and the others after them"
            )
        self._kernel_params = given
        self._begun = {name: getattr(self, name) for name in KEPT}
        self._reference = rows if self.function == "facility_location" else None
        return Sieves(self.size, float(self.epsilon), np.zeros(self.size))

    def _row_function(self) -> RowFunction:
        if self.function not in OF_SIMILARITIES:
            return CoverageOfColumns() if self.function == "coverage" else SquareRootsOfTotals()
        kernel = as_similarity(self.kernel, **self._kernel_params)
        return LogVolume(kernel) if self.function == "log_det" else NearestOfReference(kernel, self._reference)

    def _sieves(self) -> Sieves:
        """As they were after the last call."""
        for name, first in self._begun.items():
            if getattr(self, name) != first:
                raise ValueError(
                    f"{name} must stay what it was in the first call ({first!r}), got {getattr(self, name)!r}: "
                    "fit begins anew"
                )
        arrays = {"guesses": self._guesses, "items": self._items, "gains": self._gains, "passed": self._passed}
        kept = {int(item): self._kept_rows[[place]] for place, item in enumerate(self._kept_items)}
        return Sieves.of(self.size, float(self.epsilon), self._alone, arrays, kept, self.n_samples_fit_)

    def _store(self, sieves: Sieves) -> Self:
        best = sieves.best()
        self.selected_ = np.array(best.items, dtype=np.int64)
        self.gains_ = np.array(best.gains, dtype=np.float64)
        self.values_ = np.cumsum(self.gains_)
        nothing = np.zeros((0, self.n_features_in_))
        self._kept_items = np.array(sorted(sieves.rows), dtype=np.int64)
        if sieves.rows:
            self._kept_rows = _stacked([sieves.rows[item] for item in self._kept_items.tolist()])
        else:
            self._kept_rows = nothing
        self.rows_ = self._kept_rows[np.searchsorted(self._kept_items, self.selected_)]
        self.upper_bound_ = sieves.upper_bound()
        self.certificate_ = best.value / self.upper_bound_ if self.upper_bound_ > 0 else 1.0
        self._alone = sieves.alone
        for name, array in sieves.arrays().items():
            setattr(self, f"_{name}", array)
        self.n_kept_ = len(self._kept_items)
        self.n_samples_fit_ = sieves.n_seen
        return self

    def _check_fitted_state(self) -> None:
        if not hasattr(self, "_kept_rows"):
            return
        held = set(self._kept_items.tolist())
        if self._kept_rows.shape != (len(self._kept_items), self.n_features_in_) or len(held) < len(self._kept_items):
            raise ValueError(f"_kept_rows must have a row for each of {len(self._kept_items)} items that are kept")
        if not set(self._items[self._items >= 0].tolist()) <= held:
            raise ValueError("_items must be rows that are kept")
        if self.rows_.shape != (len(self.selected_), self.n_features_in_):
            raise ValueError(f"rows_ must have a row for each of {len(self.selected_)} chosen ones")
        if self._reference is not None and self._reference.shape[1] != self.n_features_in_:
            raise ValueError(f"_reference must have {self.n_features_in_} columns, got {self._reference.shape[1]}")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.positive_only = self.function == "features"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _stacked(rows: list[Any]) -> Any:
    return sparse.csr_array(sparse.vstack(rows)) if sparse.issparse(rows[0]) else np.concatenate(rows)
