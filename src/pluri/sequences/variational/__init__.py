"""Hidden Markov models fitted by variational Bayes."""
