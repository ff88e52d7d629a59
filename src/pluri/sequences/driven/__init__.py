"""Chains and emissions that something drives: topologies, regression and autoregression, inputs of the transitions."""
