"""Going on with topics week after week: forgetting what is old, and an alarm when new documents do not fit."""
