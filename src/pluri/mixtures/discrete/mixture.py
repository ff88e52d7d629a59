"""What the mixtures of discrete distributions share: smoothing towards the average row, starting values, diversity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.starting_shares import INIT_PARAMS
from pluri.components.weighted_sums import WeightedSums, averages, pooled_sums
from pluri.engine import Source
from pluri.mixtures.mixture import DIVERSITY, MixtureModel
from pluri.priors import DeterminantalPrior, Dirichlet, PseudoCountPrior, RowPrior
from pluri.validation import Allowed, Number, Only, check_distributions

Array = NDArray[np.float64]


class DiscreteMixture(MixtureModel):
    """Base of the mixtures of Bernoulli, Poisson, multinomial and categorical distributions, not used by itself."""

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **MixtureModel._parameters,
        "init_params": Only(*INIT_PARAMS),
        "smoothing": Number(least=0),
        "diversity": DIVERSITY,
    }

    _takes_sparse = True

    init_params: str
    smoothing: float
    weights_init: ArrayLike | None
    diversity: Any
    _average: Array | None

    def _starting_weights(self) -> Array | None:
        if self.weights_init is None:
            return None
        weights = np.asarray(self.weights_init, dtype=np.float64)
        if weights.shape != (self.n_components,):
            raise ValueError(f"weights_init must have shape ({self.n_components},), got {weights.shape}")
        check_distributions("weights_init", weights)
        return weights

    def _pseudo_row(self, source: Source | None, prepare: Callable[[Any], Any]) -> Array | None:
        """The average of all rows times `smoothing`, which every component is given; None without smoothing."""
        if self.smoothing == 0:
            return None
        if source is not None:
            self._average = self._average_row(pooled_sums(source, prepare))
        average = getattr(self, "_average", None)
        return None if average is None else float(self.smoothing) * np.asarray(average)

    def _average_row(self, sums: WeightedSums) -> Array:
        """What all rows together look like."""
        return averages(sums)[0]

    def _repulsion(self, kernel: Any) -> DeterminantalPrior | None:
        """The diversity prior; a number is the weight of one with this kernel."""
        value = self.diversity
        if value is None:
            return None
        if isinstance(value, DeterminantalPrior):
            return value if value.weight > 0 else None
        return DeterminantalPrior(kernel, float(value)) if value > 0 else None

    def _check_room(self, repulsion: Any, log_rank: float) -> None:
        """Refuse more components than the kernel can tell apart: `log_rank` is the log of that number."""
        if repulsion is not None and np.log(self.n_components) > log_rank + 1e-9:
            raise ValueError(
                f"n_components must be at most {round(np.exp(log_rank))} with diversity: that many laws can be told "
                f"apart by these features, got {self.n_components}"
            )

    def _checked_init(self, name: str, n_features: int, most: float = np.inf) -> Array | None:
        """Starting values (k, D) that the user gives, between 0 and `most`."""
        given = getattr(self, name)
        if given is None:
            return None
        values = np.asarray(given, dtype=np.float64)
        shape = (self.n_components, n_features)
        if values.shape != shape or not ((values >= 0) & (values <= most) & np.isfinite(values)).all():
            bound = "finite and non-negative" if most == np.inf else f"between 0 and {most:g}"
            raise ValueError(f"{name} must have shape {shape} and be {bound}, got {given!r}")
        return values

    def _fitted_rows(self, name: str) -> Array:
        """A fitted attribute (k, D), as long as it fits `n_components`."""
        values = np.atleast_2d(np.asarray(getattr(self, name), dtype=np.float64))
        if len(values) != self.n_components:
            raise ValueError(f"{name} must have {self.n_components} rows (n_components), got {len(values)}")
        return values


def smoothed_prior(base: RowPrior, shape: tuple[int, int], pseudo_row: Array | None) -> RowPrior:
    """A prior on rows of this shape with the pseudo-counts of the smoothing added."""
    if pseudo_row is None:
        return base
    if not isinstance(base, PseudoCountPrior):
        raise ValueError(f"smoothing must be 0 for a prior without pseudo-counts, such as {base!r}")
    concentration = base.pseudo_counts(shape) + 1.0 + pseudo_row
    same = (concentration == concentration[0]).all()
    return Dirichlet(concentration[0] if same else concentration, floor=base.floor)


def check_repelling_prior(prior: RowPrior, shape: tuple[int, int]) -> None:
    """Refuse a sparse prior, whose density has no maximum inside the simplex, beside a determinantal one."""
    if not isinstance(prior, PseudoCountPrior) or (prior.pseudo_counts(shape) < 0).any():
        raise ValueError(
            "probabilities_prior must have concentrations of at least 1 beside a DeterminantalPrior (diversity)"
        )
