"""Determinantal point processes: random subsets whose items are good and different.

Sample them exactly, condition them, find the most probable subset, learn their kernels, follow them through time.
"""

from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.fixed_size import KDPP
from pluri.processes.dpp.kernel_forms import (
    DenseKernel,
    FeatureKernel,
    FunctionKernel,
    KernelForm,
    as_subset,
    check_kernel,
)
from pluri.processes.dpp.spectrum import Spectrum
from pluri.processes.dpp.subset_law import Entropy, SubsetLaw
from pluri.processes.dpp.symmetric_polynomials import log_elementary, log_elementary_table, log_elementary_without

__all__ = [
    "DPP",
    "KDPP",
    "DenseKernel",
    "Entropy",
    "FeatureKernel",
    "FunctionKernel",
    "KernelForm",
    "Spectrum",
    "SubsetLaw",
    "as_subset",
    "check_kernel",
    "log_elementary",
    "log_elementary_table",
    "log_elementary_without",
]
