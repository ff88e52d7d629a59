"""``pluri cochange``: which files change together."""
