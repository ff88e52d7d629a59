"""Comparing models by their chains: the evidence by bridge sampling, prediction by leave-one-out cross-validation."""

from pluri.inference.comparison.bridge import BridgeEvidence, bridge_sampling
from pluri.inference.comparison.leave_one_out import LeaveOneOut, loo

__all__ = ["BridgeEvidence", "LeaveOneOut", "bridge_sampling", "loo"]
