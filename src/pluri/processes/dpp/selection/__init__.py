"""Choosing rows of data: a selector, a coreset, and seeds for clusters."""
