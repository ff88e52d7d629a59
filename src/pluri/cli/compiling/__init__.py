"""``pluri compile``: everything compiled ahead of its first use, by a small fit of every model."""
