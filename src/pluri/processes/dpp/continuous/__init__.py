"""Processes over points of a continuous space."""
