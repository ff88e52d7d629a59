"""The Bernoulli mixture whose clusters are sampled, with weights and probabilities integrated out."""

from pluri.mixtures.bayesian_bernoulli.estimator import BayesianBernoulliMixture

__all__ = ["BayesianBernoulliMixture"]
