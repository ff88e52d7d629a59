"""Determinantal point processes: random subsets whose items are good and different.

Sample them exactly, condition them, find the most probable subset, learn their kernels
(:mod:`pluri.processes.dpp.learning`), follow them through time.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.processes.dpp.approximations.nystrom import (
        ApproximationError,
        NystromDPP,
        approximation_error,
        nystrom_features,
    )
    from pluri.processes.dpp.approximations.ridge import RidgeDPP
    from pluri.processes.dpp.approximations.ridge_approximation import (
        RidgeApproximation,
        ridge_by_em,
        ridge_from_eigenvectors,
    )
    from pluri.processes.dpp.continuous.diverse_simplex import DirichletDPP
    from pluri.processes.dpp.continuous.domains import Box, NormalBase
    from pluri.processes.dpp.continuous.gaussian import GaussianContinuousDPP, gaussian_eigenvalues
    from pluri.processes.dpp.continuous.point_gibbs import PointGibbs
    from pluri.processes.dpp.continuous.process import ContinuousDPP
    from pluri.processes.dpp.finite import DPP
    from pluri.processes.dpp.fixed_size import KDPP
    from pluri.processes.dpp.kernel_checks import check_kernel
    from pluri.processes.dpp.kernel_forms import DenseKernel, FeatureKernel, FunctionKernel, KernelForm, as_subset
    from pluri.processes.dpp.samplers.chain import DPPMarkovChain, draw_by_chain
    from pluri.processes.dpp.samplers.chain_kernels import AddDelete, Exchange
    from pluri.processes.dpp.samplers.intermediate import IntermediateSampler, draw_intermediate
    from pluri.processes.dpp.samplers.sequential import draw_sequentially, draw_sequentially_low_rank
    from pluri.processes.dpp.search.greedy import MapResult, greedy_map
    from pluri.processes.dpp.search.local_search import local_search
    from pluri.processes.dpp.search.relaxation import RelaxedMap, relaxed_map, softmax_gradient, softmax_relaxation
    from pluri.processes.dpp.search.set_constraints import (
        Budget,
        Cardinality,
        PartitionMatroid,
        SetConstraint,
        Unconstrained,
    )
    from pluri.processes.dpp.selection.coreset import Coreset, coreset
    from pluri.processes.dpp.selection.seeding import diverse_seeds
    from pluri.processes.dpp.selection.selector import DPPSelector
    from pluri.processes.dpp.spectrum import Spectrum
    from pluri.processes.dpp.structured.process import StructuredDPP
    from pluri.processes.dpp.subset_distribution import Entropy, SubsetDistribution
    from pluri.processes.dpp.successive.markov import MarkovDPP
    from pluri.processes.dpp.successive.sequential import SequentialDPP
    from pluri.processes.dpp.successive.sequential_learning import SequentialDPPLearner
    from pluri.processes.dpp.symmetric_polynomials import log_elementary, log_elementary_table, log_elementary_without
    from pluri.processes.dpp.tracking.comparison import Comparison, compare_streams, inner_similarity, jaccard_overlap
    from pluri.processes.dpp.tracking.separate import SeparateDPP
    from pluri.processes.dpp.tracking.state import Stamp, WeightedSubsets
    from pluri.processes.dpp.tracking.time_varying import TimeVaryingDPP

__all__ = [
    "DPP",
    "KDPP",
    "AddDelete",
    "ApproximationError",
    "Box",
    "Budget",
    "Cardinality",
    "Comparison",
    "ContinuousDPP",
    "Coreset",
    "DPPMarkovChain",
    "DPPSelector",
    "DenseKernel",
    "DirichletDPP",
    "Entropy",
    "Exchange",
    "FeatureKernel",
    "FunctionKernel",
    "GaussianContinuousDPP",
    "IntermediateSampler",
    "KernelForm",
    "MapResult",
    "MarkovDPP",
    "NormalBase",
    "NystromDPP",
    "PartitionMatroid",
    "PointGibbs",
    "RelaxedMap",
    "RidgeApproximation",
    "RidgeDPP",
    "SeparateDPP",
    "SequentialDPP",
    "SequentialDPPLearner",
    "SetConstraint",
    "Spectrum",
    "Stamp",
    "StructuredDPP",
    "SubsetDistribution",
    "TimeVaryingDPP",
    "Unconstrained",
    "WeightedSubsets",
    "approximation_error",
    "as_subset",
    "check_kernel",
    "compare_streams",
    "coreset",
    "diverse_seeds",
    "draw_by_chain",
    "draw_intermediate",
    "draw_sequentially",
    "draw_sequentially_low_rank",
    "gaussian_eigenvalues",
    "greedy_map",
    "inner_similarity",
    "jaccard_overlap",
    "local_search",
    "log_elementary",
    "log_elementary_table",
    "log_elementary_without",
    "nystrom_features",
    "relaxed_map",
    "ridge_by_em",
    "ridge_from_eigenvectors",
    "softmax_gradient",
    "softmax_relaxation",
]


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "approximations.nystrom": ["ApproximationError", "NystromDPP", "approximation_error", "nystrom_features"],
        "approximations.ridge": ["RidgeDPP"],
        "approximations.ridge_approximation": ["RidgeApproximation", "ridge_by_em", "ridge_from_eigenvectors"],
        "continuous.diverse_simplex": ["DirichletDPP"],
        "continuous.domains": ["Box", "NormalBase"],
        "continuous.gaussian": ["GaussianContinuousDPP", "gaussian_eigenvalues"],
        "continuous.point_gibbs": ["PointGibbs"],
        "continuous.process": ["ContinuousDPP"],
        "finite": ["DPP"],
        "fixed_size": ["KDPP"],
        "kernel_checks": ["check_kernel"],
        "kernel_forms": ["DenseKernel", "FeatureKernel", "FunctionKernel", "KernelForm", "as_subset"],
        "samplers.chain": ["DPPMarkovChain", "draw_by_chain"],
        "samplers.chain_kernels": ["AddDelete", "Exchange"],
        "samplers.intermediate": ["IntermediateSampler", "draw_intermediate"],
        "samplers.sequential": ["draw_sequentially", "draw_sequentially_low_rank"],
        "search.greedy": ["MapResult", "greedy_map"],
        "search.local_search": ["local_search"],
        "search.relaxation": ["RelaxedMap", "relaxed_map", "softmax_gradient", "softmax_relaxation"],
        "search.set_constraints": ["Budget", "Cardinality", "PartitionMatroid", "SetConstraint", "Unconstrained"],
        "selection.coreset": ["Coreset", "coreset"],
        "selection.seeding": ["diverse_seeds"],
        "selection.selector": ["DPPSelector"],
        "spectrum": ["Spectrum"],
        "structured.process": ["StructuredDPP"],
        "subset_distribution": ["Entropy", "SubsetDistribution"],
        "successive.markov": ["MarkovDPP"],
        "successive.sequential": ["SequentialDPP"],
        "successive.sequential_learning": ["SequentialDPPLearner"],
        "symmetric_polynomials": ["log_elementary", "log_elementary_table", "log_elementary_without"],
        "tracking.comparison": ["Comparison", "compare_streams", "inner_similarity", "jaccard_overlap"],
        "tracking.separate": ["SeparateDPP"],
        "tracking.state": ["Stamp", "WeightedSubsets"],
        "tracking.time_varying": ["TimeVaryingDPP"],
    },
)
