"""``pluri topics``: topics of documents."""
