"""Bridges to inference: membranes fitted to traces, and simulators as likelihoods."""
