"""Collapsed Gibbs sampling: `gibbs` (the chain), `topic_assignments` (where it is), `fold_in` (new documents)."""
