"""Hidden Markov models whose number of states is learned."""
