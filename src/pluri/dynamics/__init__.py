"""Dynamical systems: hidden states that move on from step to step, seen through noise, counts or a learned map."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.dynamics.regions import LatentDynamics, MultiTaskDynamics, RegionGibbs

__all__ = ["LatentDynamics", "MultiTaskDynamics", "RegionGibbs"]

__getattr__, __dir__ = lazy_names(__name__, {"regions": ["LatentDynamics", "MultiTaskDynamics", "RegionGibbs"]})
