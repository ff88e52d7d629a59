"""Mixtures of experts: regressions whose weights depend on the input, as many of them as the data ask for."""

from pluri.mixtures.experts.gibbs import ExpertsGibbs, ExpertsPrior
from pluri.mixtures.experts.infinite import InfiniteMixtureOfExperts
from pluri.processes.stick_draws import probit_stick_weights

__all__ = ["ExpertsGibbs", "ExpertsPrior", "InfiniteMixtureOfExperts", "probit_stick_weights"]
