"""Pictures of topics."""
