"""Displays of dictionaries and of pictures restored with them."""
