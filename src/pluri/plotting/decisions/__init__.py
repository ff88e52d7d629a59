"""Pictures of decisions: what was chosen or asked, how good it is known to be, and how searches went."""
