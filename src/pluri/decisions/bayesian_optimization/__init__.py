"""Bayesian optimisation: where to evaluate an expensive function next."""
