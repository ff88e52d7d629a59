"""The most probable topics and shares: `em` (learning and new documents), `maximum_problem` (its steps)."""
