"""Covering elements by sets: the cheapest sets that hold everything, and the few that hold most."""
