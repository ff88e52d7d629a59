"""Targets that Numba compiles: densities behind an address, chains of many steps in one call, and their slices."""
