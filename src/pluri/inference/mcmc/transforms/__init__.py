"""Constrained numbers, vectors and matrices as functions of free ones, and spaces made of them."""
