"""Hidden Markov model with categorical emissions, sampled: a posterior over states instead of a point estimate.

The start, transition and symbol probabilities have Dirichlet priors and are integrated out
(`pluri.sequences.collapsed_gibbs`). Concentrations well below 1 say that a state has few symbols, and is followed by
few others.

References
----------
Goldwater and Griffiths (2007), A fully Bayesian approach to unsupervised part-of-speech tagging, ACL.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pluri.engine.executors import count_jobs
from pluri.inference import History, HistoryRow
from pluri.priors import log_determinant
from pluri.progress import open_progress
from pluri.progress.callbacks import fit_callbacks, with_callbacks
from pluri.sequences.categorical import CategoricalEmission, CategoricalHMM, CategoricalParameters
from pluri.sequences.collapsed_gibbs import LARGEST, SMALLEST, Concentrations, SymbolSequences
from pluri.sequences.gibbs_chains import GibbsChain, Schedule, run_chains
from pluri.sequences.inputs import offsets_of
from pluri.sequences.queries import ALGORITHMS
from pluri.validation import Stored, as_generator, restored_on_failure

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The log joint probability counts as settled when its split R-hat is below this.
SETTLED = 1.1


@dataclass(frozen=True)
class GibbsTrace:
    """What the chains went through; a chain that was cut short has NaN for the sweeps it did not do.

    Attributes
    ----------
    log_joint : (n_chains, n_sweeps): log probability of states and symbols together, after each sweep
    transition_concentration, emission_concentration : (n_chains, n_sweeps)
    temperature : (n_sweeps,)
    burn_in : number of sweeps before the first that may be kept
    best_chain : index of the chain with the highest mean log joint probability after the burn-in
    r_hat : (n_chains,): split R-hat of the kept log joint probabilities of each chain
    """

    log_joint: Array
    transition_concentration: Array
    emission_concentration: Array
    temperature: Array
    burn_in: int
    best_chain: int
    r_hat: Array

    @classmethod
    def of(cls, chains: list[GibbsChain], schedule: Schedule, best_chain: int) -> GibbsTrace:
        """Gather the traces of the chains."""

        def table(name: str) -> Array:
            values = np.full((len(chains), schedule.n_sweeps), np.nan)
            for row, chain in zip(values, chains):
                row[: len(chain.log_joint)] = getattr(chain, name)
            return values

        return cls(
            table("log_joint"),
            table("transition_concentration"),
            table("emission_concentration"),
            schedule.temperatures,
            schedule.burn_in,
            best_chain,
            np.array([chain.r_hat for chain in chains]),
        )


class BayesianCategoricalHMM(CategoricalHMM):
    """Categorical hidden Markov model by collapsed Gibbs sampling.

    `fit` samples the states of the data; the fitted probabilities are posterior means, with which the model answers
    `predict`, `score` and the rest like any other.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    transition_concentration, emission_concentration : float, default=0.1
        Dirichlet concentrations of the transition rows and of the symbols of a state; where sampling starts if
        `learn_concentrations`.
    start_concentration : float, default=1.0
        Dirichlet concentration of the start distribution; never learned.
    learn_concentrations : bool, default=False
        Sample the transition and emission concentrations too, under a log-uniform prior on [1e-4, 10]. They stay
        where they are in the first half of the burn-in, and while the temperature is not 1.
    n_samples : int, default=500
        Number of sweeps to keep in each chain.
    burn_in : int, default=500
        Number of sweeps to throw away first.
    thin : int, default=1
        Keep every `thin`-th sweep after the burn-in.
    n_chains : int, default=1
        Number of chains; results are those of the best one.
    annealing : float, array or None, default=None
        Temperature of the first sweep: it falls geometrically to 1 over the first three quarters of the burn-in. An
        array gives the temperatures of the first sweeps themselves, at most `burn_in` of them. None: 1 throughout.
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
        Posterior means over the kept samples of the best chain.
    labels_ : array of shape (n_samples,)
        Most frequent state of each step of the data among the kept samples of the best chain. On little data states
        may swap their names along the chain, which blurs all averages: look at `best_labels_` then.
    best_labels_ : array of shape (n_samples,)
        States of the best chain's sample with the highest log joint probability, `objective_`.
    transition_concentration_, emission_concentration_ : float
        Posterior means.
    trace_ : `GibbsTrace`
        Log joint probability and concentrations, by chain and sweep.
    history_ : `pluri.inference.History`
        The same by rows: the objective is log p(states, symbols), the log-likelihood log p(symbols | states).
    converged_ : bool
        Whether the log joint probability of the best chain had stopped drifting (split R-hat below 1.1).
    n_iter_ : int
        Number of sweeps of the best chain.
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

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "labels_": Stored("n_samples_", whole=True, least=0, below="n_components"),
        "best_labels_": Stored("n_samples_", whole=True, least=0, below="n_components"),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        transition_concentration: float = 0.1,
        emission_concentration: float = 0.1,
        start_concentration: float = 1.0,
        learn_concentrations: bool = False,
        n_samples: int = 500,
        burn_in: int = 500,
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
        self.learn_concentrations = learn_concentrations
        self.n_samples = n_samples
        self.burn_in = burn_in
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

    def _concentrations(self) -> Concentrations:
        for name in ("start", "transition", "emission"):
            value = getattr(self, f"{name}_concentration")
            learned = self.learn_concentrations and name != "start"
            low, high = (SMALLEST, LARGEST) if learned else (0.0, np.inf)
            if not (np.ndim(value) == 0 and (low < value < high)):
                raise ValueError(f"{name}_concentration must be a number between {low} and {high}, got {value!r}")
        return Concentrations(
            float(self.start_concentration), float(self.transition_concentration), float(self.emission_concentration)
        )

    def _check_settings(self) -> None:
        least = {"n_components": 1, "n_samples": 1, "burn_in": 0, "thin": 1, "n_chains": 1, "verbose": 0}
        for name, lowest in least.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or (isinstance(value, bool) and lowest) or value < lowest:
                raise ValueError(f"{name} must be an integer of at least {lowest}, got {value!r}")
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {ALGORITHMS}, got {self.algorithm!r}")

    def _schedule(self) -> Schedule:
        temperatures = np.ones(self.burn_in + self.n_samples * self.thin)
        if self.annealing is not None:
            first = np.asarray(self.annealing, dtype=np.float64)
            if first.ndim == 0 and first > 0:
                n_steps = 3 * self.burn_in // 4
                first = first ** (1.0 - np.arange(n_steps) / max(n_steps, 1))
            if first.ndim != 1 or len(first) > self.burn_in or not (np.isfinite(first) & (first > 0)).all():
                raise ValueError(
                    "annealing must be None, a positive temperature, or at most burn_in "
                    f"({self.burn_in}) positive temperatures, got {self.annealing!r}"
                )
            temperatures[: len(first)] = first
        return Schedule(temperatures, self.burn_in, self.thin, bool(self.learn_concentrations))

    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Sample the states of X.

        After Ctrl-C the model is that of the sweeps so far.

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
        self._check_settings()
        schedule, concentrations = self._schedule(), self._concentrations()
        n_threads = count_jobs(1 if self.n_jobs is None else self.n_jobs)
        with restored_on_failure(self):
            data = self._coded(X, self._boundaries(X, y, lengths, groups))
            with (
                fit_callbacks(self, max_iter=schedule.n_sweeps, n_init=self.n_chains, X=X) as hook,
                open_progress(int(self.verbose)) as report,
            ):

                def watch(state: Any) -> bool:
                    report(state)
                    return bool(hook(state)) if hook is not None else False

                chains, interrupted = run_chains(
                    data,
                    self.n_components,
                    concentrations,
                    schedule,
                    as_generator(self.random_state),
                    n_chains=self.n_chains,
                    n_threads=n_threads if hook is None else 1,  # callbacks expect one run after the other
                    watch=watch if hook is not None or self.verbose else None,
                )
                self._store_chains(chains, schedule)
            self._warn_of_chains(interrupted)
        return self

    def _warn_of_chains(self, interrupted: bool) -> None:
        if not (interrupted or self.converged_):
            warnings.warn(
                f"the log joint probability still drifts after burn_in={self.burn_in} sweeps (split R-hat "
                f"{self.trace_.r_hat[self.trace_.best_chain]:.2f}): raise burn_in or n_samples, or use annealing",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _coded(self, X: Any, lengths: ArrayLike | None) -> SymbolSequences:
        source, _ = self._source(X, lengths, None)
        symbols = self._symbols()
        batches = [lazy.load() for lazy in source.batches()]
        codes = np.concatenate([symbols.encode(batch.X) for batch in batches])
        return SymbolSequences(codes, offsets_of(np.concatenate([batch.lengths for batch in batches])), symbols.offsets)

    def _store_chains(self, chains: list[GibbsChain], schedule: Schedule) -> None:
        best = max(range(len(chains)), key=lambda index: chains[index].rank)
        chain = chains[best]
        self.startprob_ = chain.start
        self.transmat_ = chain.transition
        self._store_emission(CategoricalParameters(chain.emission))
        self.labels_ = chain.labels
        self.best_labels_ = chain.best_labels
        self.objective_ = chain.best_log_joint
        counted = chain.kept if chain.kept.any() else slice(-1, None)
        self.transition_concentration_ = float(chain.transition_concentration[counted].mean())
        self.emission_concentration_ = float(chain.emission_concentration[counted].mean())
        self.trace_ = GibbsTrace.of(chains, schedule, best)
        self.history_ = History(
            HistoryRow(c, i + 1, objective, log_likelihood, seconds)
            for c, one in enumerate(chains)
            for i, (objective, log_likelihood, seconds) in enumerate(
                zip(one.log_joint.tolist(), one.log_likelihood.tolist(), one.seconds.tolist())
            )
        )
        self.converged_ = not chain.r_hat > SETTLED
        self.n_iter_ = len(chain.log_joint)
        self.log_det_ = log_determinant(self.transmat_)
        self.state_occupancy_ = chain.occupancy
