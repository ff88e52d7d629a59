"""Hidden Markov model with categorical emissions fitted by variational Bayes.

q of the symbol probabilities is a Dirichlet distribution for each state (and column); see
`pluri.sequences.variational.hmm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.engine import Source
from pluri.engine.aligned import padded_width
from pluri.sequences.categorical import CategoricalHMM
from pluri.sequences.emissions.categorical import CategoricalEmission, CategoricalParameters, CategoricalStatistics
from pluri.sequences.variational.hmm import VariationalHMM, as_concentration, dirichlet_divergence, expected_log

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SymbolConcentrations(CategoricalParameters):
    """Dirichlet concentrations in place of probabilities: table (V_total, k); `columns` are the first rows of each."""

    columns: Integers

    @property
    def tables(self) -> list[Array]:
        """One (k, V) array for each column."""
        return [self.table[a:b].T for a, b in pairwise(self.columns)]

    @cached_property
    def log_table(self) -> Array:
        """E[log p], padded with -inf to the width of the compiled functions."""
        k = self.table.shape[1]
        padded = np.full((len(self.table), padded_width(k)), -np.inf)
        padded[:, :k] = np.concatenate([expected_log(table).T for table in self.tables])
        return padded


@dataclass(frozen=True, kw_only=True)
class VariationalCategoricalEmission(CategoricalEmission):
    """The categorical observation model with Dirichlet posteriors; `table` are concentrations to start from."""

    concentrations: SymbolConcentrations

    def initialize(self, X: Integers, n_components: int, rng: np.random.Generator) -> SymbolConcentrations:
        """Prior plus the symbols dealt out to the states at random."""
        if self.table is not None:
            return SymbolConcentrations(self.table, self.concentrations.columns)
        shares = [rng.dirichlet(np.ones(size), size=n_components).T for size in self.symbols.sizes]
        dealt = np.concatenate(shares) * (len(X) / n_components)
        return SymbolConcentrations(self.concentrations.table + dealt, self.concentrations.columns)

    def maximize(self, stats: CategoricalStatistics, parameters: CategoricalParameters) -> CategoricalParameters:
        if not self.update:
            return parameters
        prior = self.concentrations
        return SymbolConcentrations(prior.table + stats.counts[:, : prior.table.shape[1]], prior.columns)

    def log_prior(self, parameters: CategoricalParameters) -> float:
        assert isinstance(parameters, SymbolConcentrations)
        pairs = zip(parameters.tables, self.concentrations.tables)
        return -sum(dirichlet_divergence(posterior, prior) for posterior, prior in pairs)

    def unpack(self, vector: Array, like: CategoricalParameters) -> CategoricalParameters:
        if not self.update:
            return like
        return SymbolConcentrations(np.exp(vector).reshape(like.table.shape), self.concentrations.columns)


class VariationalCategoricalHMM(VariationalHMM, CategoricalHMM):
    """Categorical hidden Markov model fitted by variational Bayes: hmmlearn's, with pluri's loop around it.

    Parameters
    ----------
    n_components : int, default=1
        Number of states; those that the data do not ask for are left with their prior.
    startprob_prior, transmat_prior : float, array or prior object, default=None
        Dirichlet concentration of the start distribution and of the transition rows; 1 / n_components if None.
        `transmat_prior` also takes `pluri.priors.Sticky`.
    emissionprob_prior : float or array, default=None
        Dirichlet concentration of the symbol probabilities, a list of arrays if X has several columns;
        1 / n_symbols if None.
    n_features, unseen
        See `CategoricalHMM`.
    algorithm, random_state, verbose, implementation
        See `GaussianHMM`.
    n_iter : int, default=100
        Largest number of iterations of a run.
    tol : float, default=1e-6
        A run ends when the evidence lower bound gains less than this.
    params, init_params : str, default="ste"
        Which posteriors are updated, and which are set up first: s (start), t (transitions), e (symbols). Set the
        ``_prior_`` and ``_posterior_`` attributes of the others before `fit`.
    n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_prior_, startprob_posterior_ : arrays of shape (n_components,)
    transmat_prior_, transmat_posterior_ : arrays of shape (n_components, n_components)
    emissionprob_prior_, emissionprob_posterior_ : arrays of shape (n_components, n_symbols)
        Dirichlet concentrations; lists of arrays, one for each column, if X has several columns.
    startprob_, transmat_, emissionprob_ : arrays
        Posterior means.
    lower_bound_ : float
        Evidence lower bound, the objective of `history_`.
    history_, converged_, n_iter_, log_det_, state_occupancy_, vocabulary_, n_symbols_, n_features_in_
        See `CategoricalHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import VariationalCategoricalHMM
    >>> X = np.tile([0, 0, 0, 1, 1, 1], 40)[:, None]
    >>> model = VariationalCategoricalHMM(n_components=8, n_init=5, random_state=0).fit(X)
    >>> int((model.state_occupancy_ > 1).sum())
    6
    """

    _emission_attributes = {"e": "emissionprob_posterior_"}  # noqa: RUF012

    def __init__(
        self,
        n_components: int = 1,
        startprob_prior: Any = None,
        transmat_prior: Any = None,
        emissionprob_prior: Any = None,
        n_features: int | None = None,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-6,
        verbose: int = 0,
        params: str = "ste",
        init_params: str = "ste",
        implementation: str = "scaling",
        *,
        unseen: str = "error",
        n_init: int = 1,
        warm_start: bool = False,
        acceleration: str | None = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.emissionprob_prior = emissionprob_prior
        self.n_features = n_features
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.implementation = implementation
        self.unseen = unseen
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _concentrations_of(self, name: str, value: Any) -> SymbolConcentrations:
        """A value for each column, or one for all of them, as one table."""
        symbols = self._symbols()
        values = value if isinstance(value, list | tuple) and len(symbols.sizes) > 1 else [value] * len(symbols.sizes)
        if len(values) != len(symbols.sizes):
            raise ValueError(f"{name} must have an array for each of {len(symbols.sizes)} columns, got {len(values)}")
        shapes = [(self.n_components, size) for size in symbols.sizes]
        tables = [as_concentration(name, one, shape) for one, shape in zip(values, shapes)]
        return SymbolConcentrations(np.concatenate([table.T for table in tables]), symbols.offsets)

    def _emission_prior(self, source: Source) -> SymbolConcentrations:
        kept = self._kept("e", "emissionprob_prior_")
        return self._concentrations_of("emissionprob_prior", self.emissionprob_prior if kept is None else kept)

    def _variational_emission(
        self, prior: SymbolConcentrations, given: dict[str, Any]
    ) -> VariationalCategoricalEmission:
        return VariationalCategoricalEmission(
            self._symbols(),
            update="e" in self.params,
            table=self._emission_posterior().table if "emissionprob_posterior_" in given else None,
            concentrations=prior,
        )

    def _emission_posterior(self) -> SymbolConcentrations:
        return self._concentrations_of("emissionprob_posterior_", self.emissionprob_posterior_)

    def _emission(self, given: dict[str, Any]) -> CategoricalEmission:
        return CategoricalEmission(self._symbols())

    def _store_emission(self, parameters: CategoricalParameters) -> None:
        assert isinstance(parameters, SymbolConcentrations)
        self.emissionprob_posterior_ = _one_or_list(parameters)
        means = [table / table.sum(axis=1, keepdims=True) for table in parameters.tables]
        super()._store_emission(CategoricalParameters(np.concatenate([mean.T for mean in means])))

    def _store_emission_prior(self, prior: SymbolConcentrations) -> None:
        self.emissionprob_prior_ = _one_or_list(prior)


def _one_or_list(concentrations: SymbolConcentrations) -> ArrayLike:
    tables = [np.ascontiguousarray(table) for table in concentrations.tables]
    return tables[0] if len(tables) == 1 else tables
