"""Hidden Markov model with categorical emissions, sampled: a posterior over states instead of a point estimate.

The start, transition and symbol probabilities have Dirichlet priors and are integrated out
(`pluri.sequences.sampled.collapsed_gibbs`). Concentrations well below 1 say that a state has few symbols, and is
followed by few others.

References
----------
Goldwater and Griffiths (2007), A fully Bayesian approach to unsupervised part-of-speech tagging, ACL.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.inference import mcmc
from pluri.priors import LogUniform, log_determinant
from pluri.progress.callbacks import with_callbacks
from pluri.sequences.emissions.categorical import CategoricalEmission, CategoricalParameters
from pluri.sequences.queries import ALGORITHMS
from pluri.sequences.sampled.collapsed_gibbs import LEARNED, ConcentrationPriors, Concentrations, SymbolSequences
from pluri.sequences.sampled.hidden_states_gibbs import HiddenStatesGibbs, posterior_means
from pluri.sequences.sampled.sampled_hmm import SampledHMM
from pluri.validation import (
    Allowed,
    Flag,
    Number,
    Only,
    Stored,
    Whole,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.sequences import offsets_of

#: Where a concentration begins if it is only said to be learned.
FIRST_CONCENTRATION = 0.1


class BayesianCategoricalHMM(SampledHMM):
    """Categorical hidden Markov model by collapsed Gibbs sampling.

    `fit` samples the states of the data; the fitted probabilities are posterior means, with which the model answers
    `predict`, `score` and the rest like any other.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    transition_concentration, emission_concentration : float, LogUniform or "learn", default=0.1
        Dirichlet concentrations of the transition rows and of the symbols of a state: fixed, or sampled under a
        prior, which is ``LogUniform(1e-4, 10)`` for "learn". Sampled ones stay where they begin in the first half of
        the warm-up, and while the temperature is not 1.
    start_concentration : float, default=1.0
        Dirichlet concentration of the start distribution.
    n_draws : int, default=500
        Draws kept of each chain.
    n_warmup : int, default=500
        Sweeps of each chain before the first draw, thrown away.
    thin : int, default=1
        Sweeps from one draw to the next.
    n_chains : int, default=1
        Number of chains; results are those of the best one.
    annealing : float, array or None, default=None
        Temperature of the first sweep: it falls geometrically to 1 over the first three quarters of the warm-up. An
        array gives the temperatures of the first sweeps themselves, at most `n_warmup` of them. None: 1 throughout.
    n_features, unseen, algorithm, implementation
        See `CategoricalHMM`.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of the chains and of `sample`.
    verbose : int, default=0
        1 shows a progress bar.
    n_jobs : int or None, default=None
        Number of chains that run at a time, in threads; -1 is all cores. The results do not depend on it.

    Attributes
    ----------
    startprob_, transmat_, emissionprob_ : arrays
        Posterior means over the draws of the best chain.
    labels_ : array of shape (n_samples,)
        Most frequent state of each step of the data among the draws of the best chain. On little data states may
        swap their names along the chain, which blurs all averages: look at `best_labels_` then.
    best_labels_ : array of shape (n_samples,)
        States of the best chain's sweep with the highest log joint probability, `objective_`.
    transition_concentration_, emission_concentration_ : float
        Posterior means.
    trace_ : `pluri.inference.mcmc.Trace`
        Draws of ``states``, ``transition_concentration`` and ``emission_concentration``; among its statistics are
        ``log_density``, log p(states, symbols), and ``log_likelihood``, log p(symbols | states). The states of every
        draw are kept, one byte each (two from 257 states on): n_chains * n_draws * n_samples bytes in memory and in a
        saved file, 500 MB for a million samples, one chain and 500 draws.
    best_chain_ : int
        The chain with the highest mean log density of its draws.
    converged_ : bool
        Whether the log density of the best chain had stopped drifting, by `pluri.inference.mcmc.judge`.
    n_iter_ : int
        Number of sweeps of a chain.
    objective_ : float
    state_occupancy_ : array of shape (n_components,)
        Mean number of steps in each state.
    vocabulary_, n_symbols_, log_det_, n_features_in_
        See `CategoricalHMM`.

    Examples
    --------
    >>> from pluri.sequences import BayesianCategoricalHMM
    >>> sentences = [["the", "dog", "runs"], ["the", "cat", "sleeps"], ["a", "dog", "sleeps"], ["a", "cat", "runs"]]
    >>> model = BayesianCategoricalHMM(n_components=3, n_chains=4, random_state=0).fit(sentences)
    >>> groups = model.best_labels_.reshape(4, 3)
    >>> bool((groups == groups[0]).all())
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "start_concentration": Number(above=0),
        "unseen": Only("error", "missing"),
        "algorithm": Only(*ALGORITHMS),
        "verbose": Whole(0) | Flag(),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "labels_": Stored("n_samples_", whole=True, least=0, below="n_components"),
        "best_labels_": Stored("n_samples_", whole=True, least=0, below="n_components"),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        transition_concentration: float | LogUniform | str = 0.1,
        emission_concentration: float | LogUniform | str = 0.1,
        start_concentration: float = 1.0,
        n_draws: int = 500,
        n_warmup: int = 500,
        thin: int = 1,
        n_chains: int = 1,
        annealing: float | ArrayLike | None = None,
        n_features: int | None = None,
        unseen: str = "error",
        algorithm: str = "viterbi",
        implementation: str = "scaling",
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.transition_concentration = transition_concentration
        self.emission_concentration = emission_concentration
        self.start_concentration = start_concentration
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_chains = n_chains
        self.annealing = annealing
        self.n_features = n_features
        self.unseen = unseen
        self.algorithm = algorithm
        self.implementation = implementation
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _emission(self, given: dict[str, Any]) -> CategoricalEmission:
        return CategoricalEmission(self._symbols())

    def _concentrations(self) -> tuple[Concentrations, ConcentrationPriors]:
        """Where the concentrations begin, and the priors of those that are learned."""
        names = ("transition_concentration", "emission_concentration")
        given = [self._hyperparameter(name, LEARNED, FIRST_CONCENTRATION) for name in names]
        first = Concentrations(float(self.start_concentration), *(each.value for each in given))
        return first, ConcentrationPriors(*(each.prior for each in given))

    def _temperatures(self) -> tuple[float, ...]:
        """Temperatures of the first sweeps."""
        if self.annealing is None:
            return ()
        first = np.asarray(self.annealing, dtype=np.float64)
        if first.ndim == 0 and first > 0:
            n_steps = 3 * self.n_warmup // 4
            first = first ** (1.0 - np.arange(n_steps) / max(n_steps, 1))
        if first.ndim != 1 or len(first) > self.n_warmup or not (np.isfinite(first) & (first > 0)).all():
            raise ValueError(
                f"annealing must be None, a positive temperature, or at most n_warmup ({self.n_warmup}) positive "
                f"temperatures, got {self.annealing!r}"
            )
        return tuple(first.tolist())

    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Sample the states of X.

        After Ctrl-C the model is that of the draws so far, or of the last sweep if there are none.

        Parameters
        ----------
        X : array of shape (n_samples, n_columns), list of sequences, or `pluri.engine.Source`
            Integers or strings; NaN (or None among strings) marks a missing symbol. A source is read into memory.
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        (concentrations, priors), temperatures = self._concentrations(), self._temperatures()
        with restored_on_failure(self):
            data = self._coded(X, self._boundaries(X, y, lengths, groups))
            kernel = HiddenStatesGibbs(data, self.n_components, concentrations, priors, temperatures)
            trace = self._sample_chains(kernel, X, partial(self._store_draws, kernel))
            self._judge(trace, 0.0, "Annealing may help")
        return self

    def _coded(self, X: Any, lengths: ArrayLike | None) -> SymbolSequences:
        source, _ = self._source(X, lengths, None)
        symbols = self._symbols()
        batches = [lazy.load() for lazy in source.batches()]
        codes = np.concatenate([symbols.encode(batch.X) for batch in batches])
        return SymbolSequences(codes, offsets_of(np.concatenate([batch.lengths for batch in batches])), symbols.offsets)

    def _store_draws(self, kernel: HiddenStatesGibbs, trace: mcmc.Trace) -> None:
        best = self.best_chain_
        end = trace.ends[best].state
        means = posterior_means(kernel, {name: values[best] for name, values in trace.draws.items()})
        self.startprob_ = means.start
        self.transmat_ = means.transition
        self._store_emission(CategoricalParameters(means.emission))
        self.labels_ = means.labels
        self.best_labels_ = end.best["states"]
        self.objective_ = end.best_log_density
        self.log_det_ = log_determinant(self.transmat_)
        self.state_occupancy_ = means.occupancy
