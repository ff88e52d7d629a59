"""Gaussian mixtures: by EM, by descent, or sampled; and their density as a target for samplers."""
