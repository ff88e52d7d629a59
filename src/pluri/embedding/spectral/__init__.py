"""Clusters and coordinates from eigenvectors: of a Gram matrix (k-means), of a random walk (diffusion maps)."""
