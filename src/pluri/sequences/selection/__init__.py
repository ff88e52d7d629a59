"""Choosing settings by cross-validation over whole sequences: folds, scorers, pipelines, and the search."""
