"""Semidefinite programmes by perceptron learning: strictly feasible points at any time, with a certified gap."""

from pluri.optimize.sdp.matrices import LowRank
from pluri.optimize.sdp.maxcut import Cut, MaxCutBound, maxcut_round, maxcut_sdp
from pluri.optimize.sdp.rescaling import positive_definite_perceptron
from pluri.optimize.sdp.result import SDPProgress, SDPResult
from pluri.optimize.sdp.sdpa import SDPProblem, read_sdpa
from pluri.optimize.sdp.solver import lmi_feasible_point, solve_sdp

__all__ = [
    "Cut",
    "LowRank",
    "MaxCutBound",
    "SDPProblem",
    "SDPProgress",
    "SDPResult",
    "lmi_feasible_point",
    "maxcut_round",
    "maxcut_sdp",
    "positive_definite_perceptron",
    "read_sdpa",
    "solve_sdp",
]
