"""Choosing subsets with a guarantee: set functions, greedy searches with certificates, sensors, covers."""
