"""Images and logits as one array, one row an object, for optimisers that know nothing of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.neighbors.distributions import Neighbors
from pluri.embedding.neighbors.mixture import Attraction, image_cost, proportion_entropy
from pluri.embedding.neighbors.threads import Threads

Array = NDArray[np.float64]

#: Noise that tells the images of an object apart at the beginning.
APART = 1e-2


@dataclass(frozen=True, eq=False)
class ImageProblem:
    """What is minimised: the cost, the energy of the attraction, and `entropy_price` times the entropy of proportions.

    Attributes
    ----------
    neighbors : Neighbors
    threads : Threads
    n_images, n_dimensions : int
    attraction : Attraction or None
    learns_proportions : whether the array has logits after the coordinates; proportions are equal if not
    entropy_price : float
    """

    neighbors: Neighbors
    threads: Threads
    n_images: int
    n_dimensions: int
    attraction: Attraction | None = None
    learns_proportions: bool = False
    entropy_price: float = 0.0

    @property
    def n_coordinates(self) -> int:
        """Columns of the array that are coordinates."""
        return self.n_images * self.n_dimensions

    def start(self, points: Array, rng: np.random.Generator) -> Array:
        """Images of each object close to its point (n, L), in equal proportions."""
        images = np.repeat(points, self.n_images, axis=0).reshape(len(points), -1)
        if self.n_images > 1:
            images = images + APART * rng.standard_normal(images.shape)
        logits = np.zeros((len(points), self.n_images * self.learns_proportions))
        return np.column_stack([images, logits])

    def split(self, array: Array) -> tuple[Array, Array]:
        """Images (n, B, L) and logits (n, B)."""
        images = array[:, : self.n_coordinates].reshape(len(array), self.n_images, self.n_dimensions)
        logits = array[:, self.n_coordinates :] if self.learns_proportions else np.zeros((len(array), self.n_images))
        return images, logits

    def __call__(self, array: Array) -> tuple[float, Array]:
        """Value and gradient."""
        images, logits = self.split(array)
        cost = image_cost(images, logits, self.neighbors, self.threads)
        value, by_points, by_logits = cost.value, cost.points, cost.logits
        if self.attraction is not None:
            energy, gradient = self.attraction(images)
            value, by_points = value + energy, by_points + gradient
        if self.entropy_price:
            entropy, gradient = proportion_entropy(logits)
            value, by_logits = value + self.entropy_price * entropy, by_logits + self.entropy_price * gradient
        parts = [by_points.reshape(len(array), -1)]
        return value, np.column_stack(parts + [by_logits] * self.learns_proportions)
