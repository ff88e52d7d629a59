"""Clusters and coordinates from eigenvectors: of a Gram matrix (spectral k-means), of a random walk (diffusion maps)."""
