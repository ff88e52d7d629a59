"""Rows in classes whose usage of atoms is known from other rows (`pluri.factors.dictionaries.usage.code_classes`).

    z_ik ~ Bernoulli(pi_{c_i k}),   s_ik ~ N(0, v_{c_i k} / g),   pi and v known

What is learned is which class a row is of, and how likely the classes are: the same for all rows, sticks of a Dirichlet
process; or depending on where rows are, probit sticks. The precision g, one number, is drawn with the codes: rows may
come in other units than those that the classes were learned from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluri.factors.dictionaries.usage.clusters import Array, Labels, Used
from pluri.factors.dictionaries.usage.code_classes import CodeClasses, log_density
from pluri.factors.dictionaries.usage.dirichlet_process import ClusterState, DirichletProcessUsage
from pluri.factors.dictionaries.usage.probit_sticks import START_SWEEPS, LocatedState, ProbitStickUsage
from pluri.processes.beta_process import LogProbabilities, draw_used
from pluri.processes.stick_draws import choose_rows, log_probit_stick_weights


@dataclass(frozen=True, eq=False)
class KnownClasses:
    """Base of priors with known classes.

    Parameters
    ----------
    classes : CodeClasses
    sticks : DirichletProcessUsage or ProbitStickUsage
        What says how likely classes are; it has as many sticks as there are classes.
    """

    classes: CodeClasses
    sticks: Any
    probabilities: LogProbabilities = field(init=False, repr=False)

    def __post_init__(self) -> None:
        usage = self.classes.usage
        object.__setattr__(self, "probabilities", LogProbabilities(np.log(usage), np.log1p(-usage)))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.sticks.n_samples)

    def begin(self, labels: Labels, rng: np.random.Generator) -> Any:
        """A state with these classes of the rows."""
        raise NotImplementedError  # abstract

    def log_weights(self, state: Any) -> Array:
        """Logarithms of the probabilities of the classes: (n_samples, n_classes), or (1, n_classes) for all rows."""
        raise NotImplementedError  # abstract

    def _followed(self, labels: Labels, state: Any, rng: np.random.Generator) -> Any:
        """The state with new classes, and sticks drawn given them."""
        raise NotImplementedError  # abstract

    def _log_density(self, state: Any) -> float:
        """Log density of classes and sticks."""
        raise NotImplementedError  # abstract

    def _sample(self, rng: np.random.Generator) -> Any:
        """A state drawn from the prior."""
        raise NotImplementedError  # abstract

    def start(self, used: Used, rng: np.random.Generator) -> Any:
        """A state to begin with, if nothing is known of the rows but which atoms they use."""
        scores = np.log(self.classes.shares) + log_density(
            used.astype(np.float64), np.zeros(used.shape), self.classes.usage, np.ones(self.classes.usage.shape)
        )
        return self.begin(choose_rows(rng, scores).astype(np.intp), rng)

    def log_odds(self, state: Any) -> tuple[Array, Labels]:
        """Log odds of the atoms in each class, and the class of each row."""
        return self.probabilities.log_odds, state.labels

    def resample(self, state: Any, used: Used, rng: np.random.Generator, weights: Any = None) -> Any:
        """Draw the class of each row and the sticks; `weights` are those of the rows times the root of g."""
        squares = np.zeros(used.shape) if weights is None else np.asarray(weights, dtype=np.float64) ** 2
        variances = np.ones_like(self.classes.variances) if weights is None else self.classes.variances
        scores = self.log_weights(state) + log_density(
            used.astype(np.float64), squares, self.classes.usage, variances
        )  # fmt: skip
        return self._followed(choose_rows(rng, scores).astype(np.intp), state, rng)

    def log_joint(self, state: Any, used: Used) -> float:
        """Log density of the matrix and the state."""
        on, off = self.probabilities.on[state.labels], self.probabilities.off[state.labels]
        return float(np.where(used == 1, on, off).sum()) + self._log_density(state)

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[Any, Used]:
        """Draw a state and a matrix from the prior."""
        if n_samples != self.n_samples:
            raise ValueError(f"n_samples must be {self.n_samples}, got {n_samples}")
        state = self._sample(rng)
        of_rows = LogProbabilities(self.probabilities.on[state.labels], self.probabilities.off[state.labels])
        return state, draw_used(rng, of_rows, n_samples)


class KnownDirichlet(KnownClasses):
    """Known classes with weights from a Dirichlet process; with one class all rows are alike."""

    sticks: DirichletProcessUsage

    def begin(self, labels: Labels, rng: np.random.Generator) -> ClusterState:
        """A state with these classes of the rows."""
        return self._drawn(labels, self.sticks.first_concentration, rng)

    def log_weights(self, state: ClusterState) -> Array:
        """Logarithms of the probabilities of the classes, (1, n_classes)."""
        return state.log_weights[None]

    def _followed(self, labels: Labels, state: ClusterState, rng: np.random.Generator) -> ClusterState:
        return self._drawn(labels, state.concentration, rng)

    def _drawn(self, labels: Labels, alpha: float, rng: np.random.Generator) -> ClusterState:
        return ClusterState(labels, self.probabilities, *self.sticks.draw_weights(labels, alpha, rng))

    def _log_density(self, state: ClusterState) -> float:
        given = (state.labels, state.log_weights, state.log_rest, state.concentration)
        return self.sticks.log_density_of_clusters(*given)

    def _sample(self, rng: np.random.Generator) -> ClusterState:
        labels, log_weights, log_rest, alpha = self.sticks.sample_weights(self.n_samples, rng)
        return ClusterState(labels, self.probabilities, log_weights, log_rest, alpha)


class KnownProbit(KnownClasses):
    """Known classes with weights that depend on where rows are."""

    sticks: ProbitStickUsage

    def begin(self, labels: Labels, rng: np.random.Generator) -> LocatedState:
        """A state with these classes of the rows."""
        state = LocatedState(labels, self.probabilities, self.sticks.surfaces.sample(self.sticks.n_clusters - 1, rng))
        for _ in range(START_SWEEPS):
            state = self._followed(labels, state, rng)
        return state

    def log_weights(self, state: LocatedState) -> Array:
        """Logarithms of the probabilities of the classes at each location."""
        return self.sticks.log_weights(state)

    def _followed(self, labels: Labels, state: LocatedState, rng: np.random.Generator) -> LocatedState:
        prior = self.sticks.surfaces
        surfaces = prior.resample(state.surfaces, labels, prior.predictors(state.surfaces), rng)
        return LocatedState(labels, self.probabilities, surfaces)

    def _log_density(self, state: LocatedState) -> float:
        weights = self.log_weights(state)[np.arange(self.n_samples), state.labels].sum()
        return float(weights) + self.sticks.surfaces.log_density(state.surfaces)

    def _sample(self, rng: np.random.Generator) -> LocatedState:
        prior = self.sticks.surfaces
        surfaces = prior.sample(self.sticks.n_clusters - 1, rng)
        weights = log_probit_stick_weights(prior.chosen_predictors(surfaces).T)
        return LocatedState(choose_rows(rng, weights).astype(np.intp), self.probabilities, surfaces)
