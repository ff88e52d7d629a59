"""Hidden Markov models whose latent values are sampled: states of all steps, or classes of all symbols."""
