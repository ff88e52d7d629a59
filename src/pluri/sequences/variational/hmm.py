r"""Variational Bayes for hidden Markov models: what the families share.

The posterior of states and parameters is approximated by q(states) q(start) q(transition) q(emission), and what is
maximised is the evidence lower bound

    ELBO = log Z - KL(q(start) | prior) - KL(q(transition) | prior) - KL(q(emission) | prior)  <=  log p(X),

where Z is what the forward pass gives with exp(E[log parameter]) in place of the probabilities (they sum to less than
one). This has the form "log-likelihood plus log prior", so that the EM loop runs it as it is: the "parameters" are the
hyper-parameters of q, the E-step is forward-backward, the M-step adds expected counts to the prior's.

References
----------
MacKay (1997), Ensemble learning for hidden Markov models. Beal (2003), Variational algorithms for approximate Bayesian
inference, chapter 3.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from pluri.components.family import ComponentFamily, P
from pluri.engine import Batch, Source
from pluri.engine.first_rows import initial_rows
from pluri.inference import EMResult
from pluri.sequences.fitting import DeadStateWarning
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.learning import ChainPrior, HiddenMarkovProblem, HMMParameters, HMMStatistics
from pluri.validation import Stored

Array = NDArray[np.float64]


def expected_log(concentration: Array) -> Array:
    """E[log p] under Dirichlet distributions with these concentrations along the last axis."""
    return digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))


def dirichlet_divergence(posterior: Array, prior: Array) -> float:
    """KL(Dirichlet(posterior) | Dirichlet(prior)), summed over rows."""
    normalizers = gammaln(posterior.sum(axis=-1)) - gammaln(prior.sum(axis=-1))
    terms = (posterior - prior) * expected_log(posterior) - gammaln(posterior) + gammaln(prior)
    return float(np.sum(normalizers) + np.sum(terms))


@dataclass(frozen=True, kw_only=True)
class VariationalPrior(ChainPrior):
    """Concentrations of the start (k,) and of the transition rows (k, k), and the emission family's prior record."""

    start_concentration: Array
    transition_concentration: Array
    emission: Any


@dataclass(frozen=True, kw_only=True)
class VariationalProblem(HiddenMarkovProblem[P]):
    """A hidden Markov model whose parameters are the hyper-parameters of q.

    `HMMParameters.start` and `.transition` hold Dirichlet concentrations instead of probabilities, and so do the
    starting values `start` and `transition`. The emission family gives E[log p(x | state)] as its log density and
    minus its divergence from the prior as its log prior.
    """

    start_prior: Array
    transition_prior: Array

    def initialize(self, source: Source, rng: np.random.Generator) -> HMMParameters[P]:
        """Given concentrations as they are; the others as if the data had been seen with random states."""
        k = self.n_components
        rows = initial_rows(source, self.emission.prepare)
        start, transition = self.start, self.transition
        if start is None:
            start = self.start_prior + rng.dirichlet(np.ones(k))
        if transition is None:
            transition = self.transition_prior + rng.dirichlet(np.ones(k), size=k) * (len(rows) / k)
        return HMMParameters(start, transition, self.emission.initialize(rows, k, rng), np.full(k, np.nan))

    def expect(self, params: HMMParameters[P], batch: Batch) -> HMMStatistics:
        """Expected counts under q(states); the log-likelihood is log Z."""
        start, transition = np.exp(expected_log(params.start)), np.exp(expected_log(params.transition))
        return super().expect(dataclasses.replace(params, start=start, transition=transition), batch)

    def maximize(self, stats: HMMStatistics, params: HMMParameters[P]) -> HMMParameters[P]:
        """Prior plus expected counts, for whatever may be updated."""
        return HMMParameters(
            self.start_prior + stats.start if self.update_start else params.start,
            self.transition_prior + stats.transition if self.update_transition else params.transition,
            self.emission.maximize(stats.emission, params.emission),
            stats.occupancy,
        )

    def log_prior(self, params: HMMParameters[P]) -> float:
        """Minus the divergence of q(parameters) from the prior."""
        chain = dirichlet_divergence(params.start, self.start_prior)
        chain += dirichlet_divergence(params.transition, self.transition_prior)
        return self.emission.log_prior(params.emission) - chain

    def pack(self, params: HMMParameters[P]) -> Array:
        """Logarithms of the concentrations, then the emission's own unconstrained vector."""
        chain = np.concatenate([np.log(params.start), np.log(params.transition).ravel()])
        return np.concatenate([chain, self.emission.pack(params.emission)])

    def unpack(self, vector: Array, like: HMMParameters[P]) -> HMMParameters[P]:
        """The inverse of `pack`."""
        k = self.n_components
        return HMMParameters(
            np.exp(vector[:k]) if self.update_start else like.start,
            np.exp(vector[k : k + k * k]).reshape(k, k) if self.update_transition else like.transition,
            self.emission.unpack(vector[k + k * k :], like.emission),
            like.occupancy,
        )


class VariationalHMM(HiddenMarkovModel):
    """Base of the hidden Markov models fitted by variational Bayes; not to be used by itself.

    Attributes ``x_prior_`` and ``x_posterior_`` are hyper-parameters of prior and q. A letter left out of
    `init_params` keeps those that are set. Everything one can ask of a fitted model is answered with the posterior
    means, as hmmlearn does.
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "startprob_prior_": Stored("n_components", least=0),
        "startprob_posterior_": Stored("n_components", least=0),
        "transmat_prior_": Stored("n_components", "n_components", least=0),
        "transmat_posterior_": Stored("n_components", "n_components", least=0),
    }

    startprob_prior: Any
    transmat_prior: Any

    # What a family provides -------------------------------------------------------------------------------------

    def _emission_prior(self, source: Source) -> Any:
        """The prior's record; hyper-parameters that were not given come from the data."""
        raise NotImplementedError  # abstract

    def _variational_emission(self, prior: Any, given: dict[str, Any]) -> ComponentFamily[Any, Any]:
        """The emission family for learning; `given` are posterior attributes to start from."""
        raise NotImplementedError  # abstract

    def _emission_posterior(self) -> Any:
        """The record of the emission's posterior attributes."""
        raise NotImplementedError  # abstract

    def _store_emission_prior(self, prior: Any) -> None:
        """Set the prior's attributes from its record."""
        raise NotImplementedError  # abstract

    # ------------------------------------------------------------------------------------------------------------

    @property
    def lower_bound_(self) -> float:
        """Evidence lower bound of the last iteration (`objective_`)."""
        return self.objective_

    def _chain_prior(self) -> ChainPrior:
        return ChainPrior()  # the variational one needs the data: see _learn

    def _kept(self, letter: str, attribute: str) -> Any:
        """A hyper-parameter that was set and that `init_params` leaves alone; None if there is none."""
        return None if letter in self.init_params else getattr(self, attribute, None)

    def _hand_set(self) -> dict[str, Any]:
        return self._given()

    def _given(self) -> dict[str, Any]:
        names = {"s": "startprob_posterior_", "t": "transmat_posterior_"} | self._emission_attributes
        given = {name: self._kept(letter, name) for letter, name in names.items()}
        return {name: value for name, value in given.items() if value is not None}

    def _concentration(self, letter: str, name: str, shape: tuple[int, ...]) -> Array:
        kept = self._kept(letter, f"{name}_prior_")
        prior = getattr(self, f"{name}_prior") if kept is None else kept
        return as_concentration(f"{name}_prior", prior, shape)

    def _learn(
        self,
        source: Source,
        prior: ChainPrior,
        *,
        n_samples: int | None,
        on_iteration: Callable[[Any], bool] | None = None,
        start: HMMParameters[Any] | None = None,
    ) -> None:
        self._check_settings()
        k = self.n_components
        resolved = VariationalPrior(
            start_concentration=self._concentration("s", "startprob", (k,)),
            transition_concentration=self._concentration("t", "transmat", (k, k)),
            emission=self._emission_prior(source),
        )
        if start is None and self.warm_start and hasattr(self, "history_"):
            unknown = np.full(k, np.nan)
            start = HMMParameters(
                self.startprob_posterior_, self.transmat_posterior_, self._emission_posterior(), unknown
            )
        super()._learn(source, resolved, n_samples=n_samples, on_iteration=on_iteration, start=start)
        self.startprob_prior_ = resolved.start_concentration
        self.transmat_prior_ = resolved.transition_concentration
        self._store_emission_prior(resolved.emission)

    def _problem(self, prior: ChainPrior, given: dict[str, Any]) -> VariationalProblem[Any]:
        assert isinstance(prior, VariationalPrior)
        k = self.n_components
        shapes = {"startprob_posterior_": (k,), "transmat_posterior_": (k, k)}
        start, transition = (
            as_concentration(name, given[name], shape) if name in given else None for name, shape in shapes.items()
        )
        return VariationalProblem(
            n_components=k,
            emission=self._variational_emission(prior.emission, given),
            prior=prior,
            update_start="s" in self.params,
            update_transition="t" in self.params,
            start=start,
            transition=transition,
            in_log_space=self.implementation == "log",
            start_prior=prior.start_concentration,
            transition_prior=prior.transition_concentration,
        )

    def _store(self, parameters: HMMParameters[Any]) -> None:
        self.startprob_posterior_ = parameters.start
        self.transmat_posterior_ = parameters.transition
        self.startprob_ = parameters.start / parameters.start.sum()
        self.transmat_ = parameters.transition / parameters.transition.sum(axis=1, keepdims=True)
        self._store_emission(parameters.emission)

    def _warn(self, result: EMResult[HMMParameters[Any]]) -> None:
        with warnings.catch_warnings():
            # A state that is not needed falls back to its prior: that is how this model chooses their number.
            warnings.simplefilter("ignore", DeadStateWarning)
            super()._warn(result)

    def _check_fitted_state(self) -> None:
        super()._check_fitted_state()
        if hasattr(self, "startprob_posterior_"):
            self._emission_posterior()

    def _warn_of_few(self, n_observed: int | None) -> None:
        """Nothing to warn of: what the data do not tell stays as the prior has it."""


def as_concentration(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Dirichlet concentrations of this shape, from None (1 / row length), a number, an array or a prior object."""
    if value is None:
        return np.full(shape, 1.0 / shape[-1])
    if hasattr(value, "pseudo_counts"):
        value = value.pseudo_counts(shape) + 1.0
    return as_positive(name, value, shape)


def as_positive(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """An array of positive numbers that broadcasts to this shape."""
    array = np.asarray(value, dtype=np.float64)
    try:
        array = np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ValueError(f"{name} must broadcast to shape {shape}, got shape {array.shape}") from None
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{name} must be finite and positive, got a smallest value of {array.min()}")
    return array
