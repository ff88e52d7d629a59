"""Pictures of chains, particles and approximations."""
