"""Searches for the most probable subset: greedy, local, and by a smooth relaxation."""
