"""Pictures of subsets and of the processes that draw them."""
