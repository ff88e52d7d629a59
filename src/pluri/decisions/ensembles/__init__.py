"""Ensembles: how different their members are, and what that is worth."""
