"""Clusters that live on from one batch of data to the next."""
