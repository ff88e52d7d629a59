"""Gaussian mixtures by descent on the manifold of positive definite matrices."""
