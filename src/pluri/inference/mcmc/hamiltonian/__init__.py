"""Kernels that follow the gradient: trajectories of a given length, and those that turn back by themselves."""
