"""Labels on grids, Ising and Potts: mean field, messages, strips, Gibbs and exact sums for their posterior."""

from pluri.processes.ising.bethe import Beliefs, bethe_marginals
from pluri.processes.ising.check import MeanFieldCheck, check_mean_field
from pluri.processes.ising.estimator import IsingDenoiser
from pluri.processes.ising.exact import exact_marginals
from pluri.processes.ising.gibbs import LabelGibbs
from pluri.processes.ising.grid import LabelField
from pluri.processes.ising.strips import BeliefCheck, check_beliefs, strip_marginals

__all__ = [
    "BeliefCheck",
    "Beliefs",
    "IsingDenoiser",
    "LabelField",
    "LabelGibbs",
    "MeanFieldCheck",
    "bethe_marginals",
    "check_beliefs",
    "check_mean_field",
    "exact_marginals",
    "strip_marginals",
]
