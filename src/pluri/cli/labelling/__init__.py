"""``pluri label``: labels by hand, on a page of this computer."""
