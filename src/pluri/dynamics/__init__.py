"""Dynamical systems: hidden states that move on from step to step, seen through noise, counts or a learned map."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.dynamics.counts.distribution import GeneralizedCount
    from pluri.dynamics.counts.regression import GeneralizedCountRegression
    from pluri.dynamics.counts.systems import CountDynamicalSystem, PoissonDynamicalSystem

__all__ = ["CountDynamicalSystem", "GeneralizedCount", "GeneralizedCountRegression", "PoissonDynamicalSystem"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "counts.distribution": ["GeneralizedCount"],
        "counts.regression": ["GeneralizedCountRegression"],
        "counts.systems": ["CountDynamicalSystem", "PoissonDynamicalSystem"],
    },
)
