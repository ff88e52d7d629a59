"""Topics over time: shares of each period, topics that emerge or fade, and words that drift."""
