"""Displays of dynamical systems."""
"""Pictures of dynamical systems: states, forecasts, counts."""
