"""Displays of dynamical systems."""
"""Pictures of dynamical systems: states, forecasts, counts."""
"""Pictures of dynamical systems."""
