"""Pictures of dynamical systems: states, forecasts, regimes, counts, flows."""
