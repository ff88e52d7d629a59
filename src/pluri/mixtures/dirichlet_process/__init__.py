"""Mixtures with an unknown number of components under a Dirichlet process prior: samplers, variational Bayes, model."""

from pluri.mixtures.dirichlet_process.collapsed_gibbs import CollapsedGibbs
from pluri.mixtures.dirichlet_process.estimator import DirichletProcessMixture
from pluri.mixtures.dirichlet_process.slice_gibbs import SliceGibbs

__all__ = ["CollapsedGibbs", "DirichletProcessMixture", "SliceGibbs"]
