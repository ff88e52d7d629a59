"""Kernels that propose a move and accept it or not."""
