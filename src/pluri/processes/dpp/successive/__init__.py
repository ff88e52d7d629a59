"""Subsets that follow each other: diverse in themselves and against the one before."""
