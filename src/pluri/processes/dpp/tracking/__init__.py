"""Processes whose items change: weighted subsets that follow them through time."""
