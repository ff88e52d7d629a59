"""What users may pass as a prior over rows of probabilities: an object, or the concentration of a Dirichlet."""

from __future__ import annotations

from numpy.typing import ArrayLike

from pluri.priors.dirichlet import Dirichlet
from pluri.priors.protocol import RowPrior
from pluri.validation import check_broadcast


def as_row_prior(name: str, value: ArrayLike | RowPrior, shape: tuple[int, ...] | None = None) -> RowPrior:
    """A prior object as it is; a number or array that fits `shape` as the concentration of a Dirichlet prior."""
    if isinstance(value, RowPrior):
        return value
    try:
        prior = Dirichlet(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a finite number, an array or a prior over rows, got {value!r}") from error
    if shape is not None:
        check_broadcast(name, value, shape)
    return prior
