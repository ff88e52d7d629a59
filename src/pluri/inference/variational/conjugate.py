r"""Conjugate-exponential models, and batch coordinate ascent for them on any engine.

A model has global variables beta with a conjugate prior of natural parameter alpha, and local variables z_n of each
observation: p(x, z, beta) = p(beta | alpha) prod_n p(x_n, z_n | beta). With q(beta | lambda) in the prior's family and
the local factors at their optimum phi_n(lambda), the bound's best lambda is alpha + sum_n E_q[t(z_n, x_n)].
The sums are additive statistics, so that `pluri.inference.expectation_maximization` runs the algorithm as it is: the
local factors are its E-step, the sum its M-step.

References
----------
Hoffman, Blei, Wang and Paisley (2013), Stochastic variational inference, JMLR 14.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, Source, map_reduce
from pluri.inference.em import EMResult, expectation_maximization

#: Natural parameters of q(beta), or expected statistics: arrays by name.
Natural = Mapping[str, NDArray[np.float64]]


class ConjugateModel(Protocol):
    """A conjugate-exponential model; all its hooks are pure functions."""

    def initialize(self, source: Source, rng: np.random.Generator) -> Natural:
        """Natural parameters of q(beta) to start from; all randomness comes from `rng`."""
        ...

    def global_prior(self) -> Natural:
        """Natural parameters alpha of the prior, under the same names."""
        ...

    def local_step(self, batch: Batch, params: Natural) -> tuple[Natural, float]:
        """Local factors at their optimum given q(beta): summed E_q[t(z_n, x_n)], and their part of the bound.

        The local part is sum_n E_q[log p(x_n, z_n | beta)] - E_q[log q(z_n)].
        """
        ...

    def global_elbo(self, params: Natural) -> float:
        """The rest of the bound: minus the divergence of q(beta) from the prior."""
        ...


@dataclass(frozen=True)
class _Summed:
    """Statistics and local bound of some batches."""

    stats: Natural
    log_likelihood: float

    def __add__(self, other: _Summed) -> _Summed:
        stats = {name: value + other.stats[name] for name, value in self.stats.items()}
        return _Summed(stats, self.log_likelihood + other.log_likelihood)


@dataclass(frozen=True)
class ConjugateProblem:
    """A `ConjugateModel` as `expectation_maximization` takes it: batch coordinate ascent, on any engine.

    The "log-likelihood" of its history is the local part of the bound, the "log prior" the global part.

    Examples
    --------
    See `conjugate_coordinate_ascent`.
    """

    model: ConjugateModel

    def initialize(self, source: Source, rng: np.random.Generator) -> Natural:
        """Where a run starts."""
        return self.model.initialize(source, rng)

    def expect(self, params: Natural, batch: Batch) -> _Summed:
        """Local factors of one batch."""
        return _Summed(*self.model.local_step(batch, params))

    def maximize(self, stats: _Summed, params: Natural) -> Natural:
        """Prior plus expected statistics."""
        return natural_target(self.model.global_prior(), stats.stats, 1.0)

    def log_prior(self, params: Natural) -> float:
        """The global part of the bound."""
        return self.model.global_elbo(params)


def conjugate_coordinate_ascent(
    model: ConjugateModel, data: Any, *, rng: np.random.Generator, **options: Any
) -> EMResult[Natural]:
    """Batch coordinate ascent for a conjugate-exponential model.

    Parameters
    ----------
    model : ConjugateModel
    data : array of shape (n_samples, n_features) or Source
    rng : numpy.random.Generator
    **options
        As for `pluri.inference.expectation_maximization`: `max_iter`, `tol` (absolute), `n_init`, `engine`, ...

    Examples
    --------
    A Poisson rate with a Gamma(2, 1) prior has no local variables: one step gives the exact posterior, and the bound
    is the log evidence.

    >>> import numpy as np
    >>> from scipy.special import digamma, gammaln
    >>> from pluri.inference.variational import conjugate_coordinate_ascent
    >>> class Rate:
    ...     prior = {"shape": np.array(2.0), "rate": np.array(1.0)}
    ...     def initialize(self, source, rng):
    ...         return self.prior
    ...     def global_prior(self):
    ...         return self.prior
    ...     def local_step(self, batch, q):
    ...         x, mean_log = batch.X, digamma(q["shape"]) - np.log(q["rate"])
    ...         bound = (x * mean_log - q["shape"] / q["rate"] - gammaln(x + 1)).sum()
    ...         return {"shape": x.sum(), "rate": float(len(x))}, bound
    ...     def global_elbo(self, q):
    ...         a, b, a0, b0 = q["shape"], q["rate"], 2.0, 1.0
    ...         kl = (a - a0) * digamma(a) - gammaln(a) + gammaln(a0) + a0 * np.log(b / b0) + a * (b0 - b) / b
    ...         return -kl
    >>> counts = np.array([[3.0], [5.0], [4.0]])
    >>> result = conjugate_coordinate_ascent(Rate(), counts, rng=np.random.default_rng(0), max_iter=5)
    >>> float(result.params["shape"]), float(result.params["rate"]), round(result.objective, 4)
    (14.0, 4.0, -6.6133)
    """
    return expectation_maximization(ConjugateProblem(model), as_source(data), rng=rng, **options)


def natural_target(prior: Natural, stats: Natural, scale: float) -> Natural:
    """lambda^ = alpha + scale * statistics; ValueError unless both have the same names."""
    if stats.keys() != prior.keys():
        raise ValueError(f"local_step must give statistics named {sorted(prior)}, got {sorted(stats)}")
    return {name: prior[name] + scale * stats[name] for name in prior}


def evidence_lower_bound(
    model: ConjugateModel, source: Source, params: Natural, *, engine: Any = None, n_jobs: int | None = None
) -> float:
    """The bound over a whole data set, with the local factors at their optimum."""
    local = map_reduce(partial(_local_bound, model, params), source, engine=engine, n_jobs=n_jobs)
    return local + float(model.global_elbo(params))


def _local_bound(model: ConjugateModel, params: Natural, batch: Batch) -> float:
    return float(model.local_step(batch, params)[1])


def as_source(data: Any) -> Source:
    """A source as it is; an array or a sparse matrix as one of large batches."""
    if isinstance(data, Source):
        return data
    if getattr(data, "ndim", 0) != 2 or data.shape[0] == 0:
        raise ValueError(
            "data must be a Source or have 2 dimensions (n_samples, n_features) and at least one row, got shape "
            f"{np.shape(data)}"
        )
    return _Rows(data)


@dataclass(frozen=True)
class _Rows:
    """An array or a sparse matrix as a source of large batches."""

    X: Any

    def batches(self) -> Iterator[Batch]:
        size = 2**14
        return (Batch(self.X[begin : begin + size]) for begin in range(0, self.X.shape[0], size))
