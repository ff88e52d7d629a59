"""A hidden Markov model with driven transitions as something that EM can learn.

Rows of the data are those of the emission family with the inputs of the transitions beside them, at the end. Inside,
inputs are measured from their means in units of their standard deviations.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain.driven import DrivenChain, smooth
from pluri.components.family import P
from pluri.engine import Batch, Source
from pluri.engine.aligned import padded_width
from pluri.sequences.driven.logistic_rows import RowPriors, improve_rows, references
from pluri.sequences.learning import HiddenMarkovProblem, HMMParameters, HMMStatistics, refuse_impossible

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class InputScale(NamedTuple):
    """Means and standard deviations (q,) of the inputs, and their largest sizes (q,) in these units."""

    mean: Array
    scale: Array
    reach: Array

    @classmethod
    def of(cls, inputs: Array, offsets: Integers, weight: Array | None) -> InputScale:
        """Of inputs (n_samples, q), without the first of each sequence, which drive nothing."""
        rows = np.full(len(inputs), 1.0) if weight is None else np.repeat(weight, np.diff(offsets))
        rows[offsets[:-1][np.diff(offsets) > 0]] = 0.0
        used, share = inputs[rows > 0], rows[rows > 0]
        if not len(used):
            return cls(np.zeros(inputs.shape[1]), np.ones(inputs.shape[1]), np.zeros(inputs.shape[1]))
        mean = np.average(used, axis=0, weights=share)
        scale = np.sqrt(np.average((used - mean) ** 2, axis=0, weights=share))
        constant = ~(scale > 1e-12 * np.abs(mean))
        scale = np.where(constant, 1.0, scale)
        mean = np.where(constant, used[0], mean)  # exactly: what is left is exactly zero
        return cls(mean, scale, np.abs((used - mean) / scale).max(axis=0))

    def standardized(self, inputs: Array) -> Array:
        """Inputs in these units; missing ones, which come first in their sequences, at the mean."""
        return np.ascontiguousarray(np.nan_to_num((inputs - self.mean) / self.scale, nan=0.0))


@dataclass(frozen=True)
class DrivenParameters(HMMParameters[P]):
    """As of a plain chain, where all inputs are at their means, and coefficients (k, k, q) in standard units."""

    coef: Array


@dataclass(frozen=True)
class DrivenStatistics(HMMStatistics):
    """Expected counts, and the gradient and curvature of `pluri.components.chain.driven.DrivenSums`."""

    gradient: Array
    curvature: Array


@dataclass(frozen=True)
class BesideInputs:
    """An emission family whose rows have `n_inputs` more columns at the end, which it does not look at."""

    family: Any
    n_inputs: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "family":  # asked for while a copy is being made
            raise AttributeError(name)
        return False if name == "encodes" else getattr(self.family, name)

    def prepare(self, X: NDArray[Any]) -> NDArray[Any]:
        """The rows of the family, prepared by it."""
        prepared: NDArray[Any] = self.family.prepare(X[:, : X.shape[1] - self.n_inputs])
        return prepared


@dataclass(frozen=True, kw_only=True)
class DrivenProblem(HiddenMarkovProblem[P]):
    """A `HiddenMarkovProblem` whose transitions depend on the last columns of the data."""

    inputs: InputScale
    priors: RowPriors

    @classmethod
    def over(cls, plain: HiddenMarkovProblem[P], inputs: InputScale, priors: RowPriors) -> DrivenProblem[P]:
        """The problem with the emissions, start and settings of a plain one."""
        fields = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)}
        fields["emission"] = BesideInputs(plain.emission, len(inputs.mean))
        return cls(**fields, inputs=inputs, priors=priors)

    def initialize(self, source: Source, rng: np.random.Generator) -> DrivenParameters[P]:
        """Starting values of the plain chain, and no effect of the inputs."""
        plain = super().initialize(source, rng)
        k = self.n_components
        return DrivenParameters(**vars(plain), coef=np.zeros((k, k, len(self.inputs.mean))))

    def split(self, X: NDArray[Any]) -> tuple[NDArray[Any], Array]:
        """Prepared rows of the emission family, and inputs in standard units."""
        q = len(self.inputs.mean)
        inputs = np.asarray(X[:, X.shape[1] - q :], dtype=np.float64)
        return self.emission.prepare(X), self.inputs.standardized(inputs)

    def expect(self, params: HMMParameters[P], batch: Batch) -> DrivenStatistics:
        """Expected counts of a batch of whole sequences; log densities and posteriors are held, but no pairs."""
        assert isinstance(params, DrivenParameters)
        chain = DrivenChain.from_probabilities(params.start, params.transition, params.coef)
        weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
        X, inputs = self.split(batch.X)
        log_emission = np.empty((batch.n_samples, padded_width(self.n_components)))
        self.emission.log_prob(params.emission, X, log_emission)
        result = smooth(chain, log_emission, inputs, batch.offsets, weight)
        refuse_impossible(result.scores, weight)
        counted = weight > 0
        sums = result.sums
        return DrivenStatistics(
            log_likelihood=float(weight[counted] @ result.scores[counted]),
            start=sums.starts,
            transition=sums.pairs,
            occupancy=sums.starts + sums.pairs.sum(axis=0),
            emission=self.emission.accumulate(params.emission, X, result.posterior),
            gradient=sums.gradient,
            curvature=sums.curvature,
        )

    def maximize(self, stats: HMMStatistics, params: HMMParameters[P]) -> DrivenParameters[P]:
        """Start and emissions as of a plain chain; a step up for the transitions."""
        assert isinstance(params, DrivenParameters)
        assert isinstance(stats, DrivenStatistics)
        held = dataclasses.replace(self, update_transition=False)
        plain = HiddenMarkovProblem.maximize(held, stats, params)
        transition, coef = params.transition, params.coef
        if self.update_transition:
            transition, coef = improve_rows(
                stats.transition, stats.gradient, stats.curvature, transition, coef, self.priors
            )
        return DrivenParameters(plain.start, transition, plain.emission, plain.occupancy, coef)

    def log_prior(self, params: HMMParameters[P]) -> float:
        """Log prior of everything that the M-step updates."""
        assert isinstance(params, DrivenParameters)
        penalty = 0.5 * self.priors.alpha * float((params.coef**2).sum()) if self.update_transition else 0.0
        return super().log_prior(params) - penalty

    def pack(self, params: HMMParameters[P]) -> Array:
        """As of a plain chain, then the coefficients."""
        assert isinstance(params, DrivenParameters)
        return np.concatenate([params.coef.ravel(), super().pack(params)])

    def unpack(self, vector: Array, like: HMMParameters[P]) -> DrivenParameters[P]:
        """The inverse of `pack`."""
        assert isinstance(like, DrivenParameters)
        size = like.coef.size
        plain = super().unpack(vector[size:], like)
        coef = vector[:size].reshape(like.coef.shape) if self.update_transition else like.coef
        return DrivenParameters(plain.start, plain.transition, plain.emission, plain.occupancy, coef)


def with_reference(transition: Array, coef: Array) -> Array:
    """The same effects, with those of the reference of each row at zero and nothing where no transition is."""
    relative = coef - coef[np.arange(len(coef)), references(transition)][:, None]
    return np.where((transition > 0)[:, :, None], relative, 0.0)
