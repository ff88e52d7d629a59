"""Learning from labels: a classifier of the samples of sequences, by counting and EM."""
