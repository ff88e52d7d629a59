"""``pluri neurons``: scripts of the neuron simulator, at a prompt, in a batch, or beside a page."""
