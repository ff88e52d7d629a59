"""Pictures of decisions: learning curves of strategies, and what was asked."""
