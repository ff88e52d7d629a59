"""Learning determinantal point processes from observed subsets.

`DPPKernelLearner` learns a whole kernel, dense or of low rank, from subsets alone; `ConditionalDPP` learns from
features which items are good when the similarity is known; `fit_kernel_parameters` and `sample_kernel_parameters` learn
the few parameters of a kernel function. `LatentInhibition` finds hidden places of neurons from which of them fire
together; `DPPVariableSelection` is a regression whose prior avoids correlated variables.
"""

from pluri.processes.dpp.learning.conditional import ConditionalDPP
from pluri.processes.dpp.learning.kernel_learner import DPPKernelLearner
from pluri.processes.dpp.learning.kernel_posterior import (
    KernelParameterFit,
    fit_kernel_parameters,
    sample_kernel_parameters,
)
from pluri.processes.dpp.learning.likelihood import (
    log_likelihood_gradient,
    mean_log_likelihood,
    subset_log_probabilities,
)
from pluri.processes.dpp.learning.observations import SubsetCounts, count_subsets
from pluri.processes.dpp.learning.spikes import LatentInhibition
from pluri.processes.dpp.learning.variable_selection import DPPVariableSelection

__all__ = [
    "ConditionalDPP",
    "DPPKernelLearner",
    "DPPVariableSelection",
    "KernelParameterFit",
    "LatentInhibition",
    "SubsetCounts",
    "count_subsets",
    "fit_kernel_parameters",
    "log_likelihood_gradient",
    "mean_log_likelihood",
    "sample_kernel_parameters",
    "subset_log_probabilities",
]
