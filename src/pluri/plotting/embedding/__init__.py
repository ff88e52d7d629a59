"""Pictures of maps, of what lies on straight ways through them, and of dimensions."""
