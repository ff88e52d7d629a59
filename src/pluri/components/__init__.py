"""Distributions of observations that hidden Markov models and mixtures share: densities, weighted statistics, updates.

A `ComponentFamily` knows how rows are distributed given the component (or state) that they come from. What decides
which component comes when is the business of the model that uses it.
"""

from pluri.components.family import ComponentFamily

__all__ = ["ComponentFamily"]
