"""Dictionaries."""
