"""What comes after a sequence, averaged over draws of an infinite hidden Markov model."""
