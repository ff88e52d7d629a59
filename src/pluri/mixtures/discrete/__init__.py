"""Mixtures of counts, categories, and zeros and ones, fitted by EM."""
