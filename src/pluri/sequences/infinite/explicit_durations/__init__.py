"""Infinite hidden semi-Markov models: states whose durations have a distribution of their own."""
