"""Mixtures of exponential-family PCAs, plain and diversified."""

from pluri.mixtures.exponential_family_pca.mixture import ExponentialFamilyPCAMixture

__all__ = ["ExponentialFamilyPCAMixture"]
