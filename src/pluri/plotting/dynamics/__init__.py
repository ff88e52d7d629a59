"""Pictures of dynamical systems: states, forecasts, counts."""
