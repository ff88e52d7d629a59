"""What selectors of rows share: the set function that a name stands for, and what is known of the choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from pluri.decisions.selection.coverage import Coverage, FeatureCoverage
from pluri.decisions.selection.gaussian_functions import LogDeterminant
from pluri.decisions.selection.greedy import Selection
from pluri.decisions.selection.set_function import Array, FunctionOfSets, IntArray, SetFunction
from pluri.decisions.selection.similarity_functions import FacilityLocation, GraphCut
from pluri.processes.dpp.selection.chosen_rows import ChosenRows
from pluri.processes.dpp.selection.row_choice import kernel_of_rows
from pluri.validation import RandomState, Stored
from pluri.validation.estimator import Estimator

#: Functions by name, and whether they are of similarities of rows (rather than of the rows themselves).
NAMED = {"facility_location": True, "graph_cut": True, "log_det": True, "coverage": False, "features": False}
#: Similarities of more rows than this are not written out.
MOST_ROWS = 20_000


class RowSelector(ChosenRows, OneToOneFeatureMixin, TransformerMixin, Estimator):
    """What both selectors share: the function of rows, and what is known of the choice."""

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "selected_": Stored("n_chosen", whole=True, least=0, below="n_samples_fit_"),
        "gains_": Stored("n_chosen"),
        "values_": Stored("n_chosen"),
    }

    function: Any
    kernel: Any
    kernel_params: Any
    verify: bool
    random_state: RandomState
    selected_: IntArray
    gains_: Array
    values_: Array
    upper_bound_: float
    certificate_: float
    n_evaluations_: int

    @property
    def _chosen(self) -> IntArray:
        return self.selected_

    def _set_function(self, X: Any, size: int | None) -> tuple[SetFunction, int]:
        """The function of the rows of X, and how many they are."""
        named = isinstance(self.function, str)
        if named and self.function not in NAMED:
            raise ValueError(
                f"function must be a SetFunction, a callable or one of {sorted(NAMED)}, got {self.function!r}"
            )
        dense = named and NAMED[self.function] and isinstance(self.kernel, str) and self.kernel == "rbf"
        rows = validate_data(self, X, accept_sparse=False if dense else "csr", dtype=np.float64)
        n_rows = int(rows.shape[0])
        if not named:
            if isinstance(self.function, SetFunction):
                if self.function.n_items != n_rows:
                    raise ValueError(f"X must have a row for each of the {self.function.n_items} items, got {n_rows}")
                return self.function, n_rows
            return FunctionOfSets(self.function, n_rows), n_rows
        if not NAMED[self.function]:
            return {"coverage": Coverage, "features": FeatureCoverage}[self.function](rows), n_rows
        similarity = self._similarity(rows, size)
        kinds = {"facility_location": FacilityLocation, "graph_cut": GraphCut}
        if self.function in kinds:
            return kinds[self.function](similarity), n_rows
        return LogDeterminant(similarity.toarray() if sparse.issparse(similarity) else similarity, jitter=1.0), n_rows

    def _similarity(self, rows: Any, size: int | None) -> Any:
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            if rows.shape[0] != rows.shape[1]:
                raise ValueError(f"X must be a square matrix of similarities (kernel='precomputed'), got {rows.shape}")
            if self.kernel_params:
                raise ValueError(f"kernel_params must be None with kernel='precomputed', got {self.kernel_params!r}")
            return rows
        if rows.shape[0] > MOST_ROWS:
            raise ValueError(
                f"X must have at most {MOST_ROWS} rows to write out similarities, got {rows.shape[0]}: give sparse "
                "similarities to near rows with kernel='precomputed'"
            )
        form = kernel_of_rows(rows, self.kernel, self.kernel_params, None, size)
        everything = np.arange(rows.shape[0])
        block: Any = form.block(everything, everything)
        return np.asarray(block.toarray() if sparse.issparse(block) else block)

    def _store(self, found: Selection, function: SetFunction, n_rows: int) -> None:
        self.selected_, self.gains_, self.values_ = found.items, found.gains, found.values
        self.upper_bound_ = float(found.upper_bounds[-1])
        value = found.value if len(found.items) else function.empty_value()
        self.certificate_ = value / self.upper_bound_ if self.upper_bound_ > 0 else float(value >= self.upper_bound_)
        self.n_evaluations_ = found.n_evaluations
        self.n_samples_fit_ = n_rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        named = isinstance(self.function, str)
        by_kernel = named and NAMED.get(self.function, False)
        tags.input_tags.sparse = not (by_kernel and self.kernel == "rbf")
        tags.input_tags.pairwise = bool(by_kernel and self.kernel == "precomputed")
        tags.input_tags.positive_only = named and self.function == "features"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def groups_of_rows(given: ArrayLike, n_rows: int, name: str) -> Any:
    """One group for each row."""
    found = np.asarray(given)
    if found.shape != (n_rows,):
        raise ValueError(f"{name} must name the group of each of the {n_rows} rows, got shape {found.shape}")
    return found
