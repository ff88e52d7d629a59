"""Rare classes: borders cleaned of links, probabilities carried to another prior, decisions by their costs."""
