"""Observation models that only hidden Markov models have; those that mixtures share are in `pluri.components`."""
