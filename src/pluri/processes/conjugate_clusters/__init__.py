"""Clusters of conjugate likelihoods as arrays: predictive densities, draws of parameters, means under posteriors."""
