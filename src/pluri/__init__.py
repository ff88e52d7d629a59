"""Latent-variable models whose parts stay distinct."""
