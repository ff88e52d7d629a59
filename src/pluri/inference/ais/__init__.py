"""Importance sampling, plain and annealed: weighted draws, evidence with an error bar, and bounds from both sides.

``importance_sample`` weighs draws of a proposal; `AnnealedImportanceSampler` walks them from a prior to a target
through temperatures; ``bidirectional`` brackets the evidence between a forward and a reverse run.
"""

from pluri.inference.ais.annealed_importance import AnnealedImportanceSampler, Evidence, log_evidence
from pluri.inference.ais.bidirectional import Sandwich, bidirectional
from pluri.inference.ais.crank_nicolson_moves import CrankNicolsonMoves
from pluri.inference.ais.hamiltonian_moves import HamiltonianMoves
from pluri.inference.ais.importance import ImportanceSampler, importance_sample
from pluri.inference.ais.kernel_moves import FunctionMoves, KernelMoves
from pluri.inference.ais.pareto_tail import fit_generalised_pareto, smooth_log_weights
from pluri.inference.ais.pilot import AnnealingPlan
from pluri.inference.ais.samples import AnnealedSamples, ReverseSamples
from pluri.inference.ais.slice_moves import SliceMoves
from pluri.inference.ais.transitions import IdentityMoves, RandomWalkMoves
from pluri.inference.ais.weighted_samples import Estimate, WeightedSamples

__all__ = [
    "AnnealedImportanceSampler",
    "AnnealedSamples",
    "AnnealingPlan",
    "CrankNicolsonMoves",
    "Estimate",
    "Evidence",
    "FunctionMoves",
    "HamiltonianMoves",
    "IdentityMoves",
    "ImportanceSampler",
    "KernelMoves",
    "RandomWalkMoves",
    "ReverseSamples",
    "Sandwich",
    "SliceMoves",
    "WeightedSamples",
    "bidirectional",
    "fit_generalised_pareto",
    "importance_sample",
    "log_evidence",
    "smooth_log_weights",
]
