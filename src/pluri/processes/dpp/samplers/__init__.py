"""Ways to draw subsets: from a spectrum, item by item, from a few candidates, and along a Markov chain."""
