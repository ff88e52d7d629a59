"""Gibbs sampling of labels on grids, as a kernel that `pluri.inference.mcmc.sample` runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.kernel import CountAfterWarmup
from pluri.processes.ising.grid import LabelField

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LabelState:
    """Where a chain is, and what it has seen.

    Attributes
    ----------
    labels : (n_images, depth, height, width), int8 or int16
    log_density : log p(labels, y), up to the normaliser of the prior
    conditional : (n_images, depth, height, width, K): summed conditional probabilities of `n_sweeps` sweeps
    """

    labels: NDArray[Any]
    log_density: float
    conditional: Array
    n_sweeps: int = 0

    @property
    def position(self) -> dict[str, NDArray[Any]]:
        """The labels by name."""
        return {"labels": self.labels}


@dataclass(frozen=True)
class LabelGibbs:
    """One sweep over all pixels: each label drawn anew given its neighbours and what was observed.

    Parameters
    ----------
    field : LabelField
        The posterior to sample.
    counting : bool, default=True
        Whether the state sums up what is seen; not during a warm-up.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.ising.gibbs import LabelGibbs
    >>> from pluri.processes.ising.grid import LabelField
    >>> kernel = LabelGibbs(LabelField(np.zeros((1, 1, 8, 8, 2)), agreement=0.5))
    >>> rng = np.random.default_rng(0)
    >>> state = kernel.init(rng, {"labels": np.zeros((1, 1, 8, 8))})
    >>> state, info = kernel.step(rng, state)
    >>> state.labels.shape, 0 < info["changed"] < 1
    ((1, 1, 8, 8), True)
    """

    field: LabelField
    counting: bool = True

    def start(self, rng: np.random.Generator) -> dict[str, Any]:
        """Every pixel drawn by itself, so that the first sweeps have no long way to go."""
        noise = -np.log(-np.log(rng.random(self.field.log_likelihood.shape)))
        return {"labels": (self.field.log_likelihood + noise).argmax(axis=-1)}

    def record(self, position: Mapping[str, Any]) -> dict[str, Array]:
        """What to keep of each sweep: the share of each label."""
        return {"share": (position["labels"][..., None] == np.arange(self.field.n_labels)).mean(axis=(0, 1, 2, 3))}

    def init(self, rng: np.random.Generator, position: Mapping[str, Any]) -> LabelState:
        """State at the labels ``position["labels"]``."""
        labels = np.asarray(position["labels"])
        k = self.field.n_labels
        if labels.shape != self.field.shape or not np.isin(labels, np.arange(k)).all():
            raise ValueError(
                f"labels must be whole numbers below {k} in an array of shape {self.field.shape}, got shape "
                f"{labels.shape}"
            )
        labels = labels.astype(np.int8 if k <= 127 else np.int16)
        log_density = self.field.log_density(labels)
        if not np.isfinite(log_density):
            raise ValueError("labels must be possible under the noise model, got a log density of -inf")
        return LabelState(labels, log_density, np.zeros(self.field.log_likelihood.shape))

    def step(self, rng: np.random.Generator, state: LabelState) -> tuple[LabelState, dict[str, float]]:
        """One sweep; `changed` is the share of labels that changed."""
        from pluri.processes.ising._kernels import sweep_labels

        labels, conditional = state.labels.copy(), state.conditional.copy()  # the sweep changes both
        uniforms = rng.random(labels.shape)
        changed, gain = sweep_labels(
            self.field.log_likelihood,
            self.field.agreement,
            uniforms,
            labels,
            conditional,
            np.empty(self.field.n_labels),
        )
        seen = (conditional, state.n_sweeps + 1) if self.counting else (state.conditional, 0)
        return LabelState(labels, state.log_density + gain, *seen), {
            "accepted": 1.0,
            "acceptance": 1.0,
            "changed": changed / labels.size,
        }

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """What is seen in the warm-up does not count."""
        return CountAfterWarmup()
