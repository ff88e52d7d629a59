"""Pictures of dynamical systems."""
