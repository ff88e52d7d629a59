"""Displays of dynamical systems."""
