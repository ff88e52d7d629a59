"""Processes whose items are structures: paths and trees of parts, far too many to list."""
