"""Exponential-family PCA: latent directions of binary, count and real data."""

from pluri.factors.exponential_family.families import (
    BernoulliFamily,
    BinomialFamily,
    Family,
    PoissonFamily,
    as_family,
)
from pluri.factors.exponential_family.gaussian_family import GaussianFamily
from pluri.factors.exponential_family.pca import ExponentialFamilyPCA

__all__ = [
    "BernoulliFamily",
    "BinomialFamily",
    "ExponentialFamilyPCA",
    "Family",
    "GaussianFamily",
    "PoissonFamily",
    "as_family",
]
