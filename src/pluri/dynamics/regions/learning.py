"""How both flows learn: from sequences to transitions, chains, and fitted attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.regions.fitted import LAYOUT, judge, keep_every, priors_of, store
from pluri.dynamics.regions.gibbs import RegionGibbs
from pluri.dynamics.regions.queries import WITH_TASKS
from pluri.dynamics.regions.records import Position
from pluri.dynamics.regions.starts import starting_position
from pluri.dynamics.regions.synthesis import FlowSynthesis
from pluri.dynamics.regions.transitions import Transitions, task_labels
from pluri.inference import mcmc
from pluri.priors import Gamma
from pluri.validation import Allowed, Flag, Made, Only, Stored, Whole, as_generator, check_parameters

Integers = NDArray[np.int64]

PRECISION = Made(Gamma, "a prior (Gamma)") | Only(None)


class Embedding:
    """What `embedding` may be."""

    def holds(self, value: Any) -> bool:
        """Whether it goes both ways, or is None."""
        return value is None or (hasattr(value, "transform") and hasattr(value, "inverse_transform"))

    def __str__(self) -> str:
        return "an object with transform and inverse_transform or None"


#: What the parameters of both flows may be.
PARAMETERS: Mapping[str, Allowed] = {
    "n_regimes": Whole(1),
    "fit_intercept": Flag(),
    "relevance_prior": PRECISION,
    "noise_prior": PRECISION,
    "embedding": Embedding(),
}


class LearnsFlows(FlowSynthesis, mcmc.Sampled):
    """The part of a flow by regions that learns it by Gibbs sampling."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = WITH_TASKS
    _fitted_layout: ClassVar[Mapping[str, Stored]] = LAYOUT
    _input_tags: ClassVar[Mapping[str, bool]] = {"allow_nan": True}

    n_regimes: int
    fit_intercept: bool
    n_draws: int
    n_warmup: int
    n_chains: int
    thin: int
    n_jobs: int | None
    verbose: int

    def _learn(
        self,
        X: Any,
        y: Any,
        lengths: ArrayLike | None,
        groups: ArrayLike | None,
        tasks: ArrayLike | None,
        n_regions: int | None,
    ) -> None:
        """Sample, and store what was found."""
        check_parameters(self)
        data, counts = self._sequences(X, self._boundaries(X, y, lengths, groups), fitting=True)
        labels = task_labels(tasks, counts)
        names, numbers = (np.zeros(1, dtype=np.int64), np.zeros(len(counts), dtype=np.int64)) if labels is None else (
            np.unique(labels, return_inverse=True)
        )  # fmt: skip
        rng = as_generator(self.random_state)
        found = Transitions.of(data.astype(np.float64), counts, numbers, names.tolist())
        kernel = RegionGibbs(
            found.starts, found.ends, found.offsets, int(self.n_regimes), n_regions, found.scatter,
            bool(self.fit_intercept), priors_of(self), keep_every(self),
        )  # fmt: skip
        n_begun = 0

        def start(stream: np.random.Generator) -> Position:
            nonlocal n_begun
            n_begun += 1
            return starting_position(stream, kernel, scattered=n_begun > 1)

        trace = mcmc.sample(
            kernel, start, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup, n_chains=self.n_chains,
            thin=self.thin, random_state=rng, n_jobs=self.n_jobs, backend="threads", verbose=int(self.verbose),
            warn=False,
        )  # fmt: skip
        self.tasks_, self.n_tasks_ = names, len(names)
        store(self, trace, found)
        judge(self, trace, found)
