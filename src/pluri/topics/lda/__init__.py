"""Latent Dirichlet allocation, and the ways of learning it."""
