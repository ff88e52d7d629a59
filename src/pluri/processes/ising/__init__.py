"""Labels on grids, Ising and Potts: a posterior, and mean field, belief propagation, Gibbs and exact sums for it."""

from pluri.processes.ising.bethe import Beliefs, bethe_marginals
from pluri.processes.ising.check import MeanFieldCheck, check_mean_field
from pluri.processes.ising.estimator import IsingDenoiser
from pluri.processes.ising.exact import exact_marginals
from pluri.processes.ising.gibbs import LabelGibbs
from pluri.processes.ising.grid import LabelField

__all__ = [
    "Beliefs",
    "IsingDenoiser",
    "LabelField",
    "LabelGibbs",
    "MeanFieldCheck",
    "bethe_marginals",
    "check_mean_field",
    "exact_marginals",
]
