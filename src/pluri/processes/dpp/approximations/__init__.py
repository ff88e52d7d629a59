"""Kernels of low rank that stand for large ones: by landmarks, and with a ridge."""
