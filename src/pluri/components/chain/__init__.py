"""Exact inference on a chain of known parameters, on plain arrays: smoothing, scoring, paths; compiled loops."""
