"""The tree of elements: names, fields, slots, links and connections; it knows nothing of numerics."""
