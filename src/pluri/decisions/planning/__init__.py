"""Information planning: which variable of a fitted model to observe next, and what it is worth."""
