"""Classes of whole sequences of tokens, with probabilities that say when they are not to be trusted."""
