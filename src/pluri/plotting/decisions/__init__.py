"""Pictures of decisions: what was chosen, and how good it is known to be."""
