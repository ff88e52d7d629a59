"""Flows by regions: where a path is decides how it goes on."""

from pluri.dynamics.regions.gibbs import RegionGibbs
from pluri.dynamics.regions.records import RegionPriors
from pluri.dynamics.regions.rollouts import HandOver
from pluri.dynamics.regions.single import LatentDynamics
from pluri.dynamics.regions.tasks import MultiTaskDynamics, SharedRegimes

__all__ = ["HandOver", "LatentDynamics", "MultiTaskDynamics", "RegionGibbs", "RegionPriors", "SharedRegimes"]
