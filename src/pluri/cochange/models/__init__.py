"""Models of which files change together."""
