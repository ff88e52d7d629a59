"""Numerics: the tree as arrays, and compiled loops over them that all networks share."""
