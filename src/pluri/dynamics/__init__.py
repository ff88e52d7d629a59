"""Dynamical systems: hidden states that move on from step to step, seen through noise, counts or a learned map."""
