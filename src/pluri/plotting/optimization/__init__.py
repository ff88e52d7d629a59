"""Pictures of searches: what a model expects, how far a search has come, and how a temperature fell."""
