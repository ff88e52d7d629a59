"""What a prior of the usage of atoms must be able to do.

``used`` is the binary matrix of which row uses which atom, (n_samples, n_components) of int8. A prior has a state (the
probabilities, clusters of rows, ...), which a sweep of the Gibbs sampler draws anew given `used`. Given that state,
rows and atoms are independent, and all that the rest of the sampler needs to know are the log odds of each atom.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Used = NDArray[np.int8]


class UsagePrior(Protocol):
    """Which atoms a row may use, given everything else."""

    def start(self, used: Used, rng: np.random.Generator) -> Any:
        """A state to begin with, for a matrix to begin with."""

    def log_odds(self, state: Any) -> tuple[Array, NDArray[np.intp]]:
        """Log odds of each atom for each group of rows, (n_groups, n_components), and the group of each row."""

    def resample(self, state: Any, used: Used, rng: np.random.Generator) -> Any:
        """One Gibbs update of everything that belongs to the prior, given the matrix."""

    def log_joint(self, state: Any, used: Used) -> float:
        """Log density of the matrix and the state."""

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[Any, Used]:
        """Draw a state and a matrix from the prior."""
