"""Kernels that align sequences, and machines that learn with them."""
