"""Counts that vary less or more than Poisson counts: their distribution, a regression, dynamical systems."""
