"""Determinantal point processes: random subsets whose items are good and different.

Sample them exactly, condition them, find the most probable subset, learn their kernels
(:mod:`pluri.processes.dpp.learning`), follow them through time.
"""

from pluri.processes.dpp.chain import DPPMarkovChain, draw_by_chain
from pluri.processes.dpp.chain_kernels import AddDelete, Exchange
from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.fixed_size import KDPP
from pluri.processes.dpp.greedy import MapResult, greedy_map
from pluri.processes.dpp.kernel_forms import (
    DenseKernel,
    FeatureKernel,
    FunctionKernel,
    KernelForm,
    as_subset,
    check_kernel,
)
from pluri.processes.dpp.local_search import local_search
from pluri.processes.dpp.relaxation import RelaxedMap, relaxed_map, softmax_gradient, softmax_relaxation
from pluri.processes.dpp.set_constraints import Budget, Cardinality, PartitionMatroid, SetConstraint, Unconstrained
from pluri.processes.dpp.spectrum import Spectrum
from pluri.processes.dpp.subset_law import Entropy, SubsetLaw
from pluri.processes.dpp.symmetric_polynomials import log_elementary, log_elementary_table, log_elementary_without

__all__ = [
    "DPP",
    "KDPP",
    "AddDelete",
    "Budget",
    "Cardinality",
    "DPPMarkovChain",
    "DenseKernel",
    "Entropy",
    "Exchange",
    "FeatureKernel",
    "FunctionKernel",
    "KernelForm",
    "MapResult",
    "PartitionMatroid",
    "RelaxedMap",
    "SetConstraint",
    "Spectrum",
    "SubsetLaw",
    "Unconstrained",
    "as_subset",
    "check_kernel",
    "draw_by_chain",
    "greedy_map",
    "local_search",
    "log_elementary",
    "log_elementary_table",
    "log_elementary_without",
    "relaxed_map",
    "softmax_gradient",
    "softmax_relaxation",
]
