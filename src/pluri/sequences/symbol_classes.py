"""Hidden Markov model in which each symbol belongs to one state: classes of words from text, without labels.

A word has nearly always the same part of speech. A model that says so (`pluri.sequences.symbol_class_sampler`) has one
class to find for each symbol instead of one state for each token, which leaves sampling far fewer ways to go wrong.

References
----------
Lee, Haghighi and Barzilay (2010), Simple type-level unsupervised POS tagging, EMNLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.engine import ArraySource
from pluri.engine.executors import count_jobs
from pluri.inference import History, HistoryRow
from pluri.priors import log_determinant
from pluri.progress import open_progress
from pluri.progress.callbacks import fit_callbacks, with_callbacks
from pluri.sequences.categorical import CategoricalHMM
from pluri.sequences.symbol_class_chains import Schedule, SymbolClassChain, run_chains
from pluri.sequences.symbol_class_emission import UNSEEN, SymbolClassEmission, log_newcomer
from pluri.sequences.symbol_class_sampler import BOUNDS, Concentrations, Corpus, assign
from pluri.sequences.symbols import Symbols
from pluri.validation import Stored, as_generator, is_source

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The log joint probability counts as settled when its split R-hat is below this.
SETTLED = 1.1


@dataclass(frozen=True)
class SymbolClassTrace:
    """What the chains went through; a chain that was cut short has NaN for the sweeps it did not do.

    Attributes
    ----------
    log_joint : (n_init, n_sweeps): log probability of data and classes together, after each sweep
    moved : (n_init, n_sweeps): share of the symbols that changed class
    transition_concentration, emission_concentration, class_concentration : (n_init, n_sweeps)
    feature_concentration : (n_init, n_sweeps, n_columns - 1)
    best_chain : index of the chain with the highest mean log joint probability of its last sweeps
    """

    log_joint: Array
    moved: Array
    transition_concentration: Array
    emission_concentration: Array
    class_concentration: Array
    feature_concentration: Array
    best_chain: int

    @classmethod
    def of(cls, chains: list[SymbolClassChain], n_sweeps: int, best_chain: int) -> SymbolClassTrace:
        """Gather the traces of the chains."""
        log_joint = np.full((len(chains), n_sweeps), np.nan)
        moved = log_joint.copy()
        concentrations = np.full((len(chains), n_sweeps, chains[0].concentrations.shape[1]), np.nan)
        for c, chain in enumerate(chains):
            log_joint[c, : chain.n_sweeps] = chain.log_joint
            moved[c, : chain.n_sweeps] = chain.moved / len(chain.classes)
            concentrations[c, : chain.n_sweeps] = chain.concentrations
        transition, emission, classes = (concentrations[:, :, column].copy() for column in range(3))
        return cls(log_joint, moved, transition, emission, classes, concentrations[:, :, 3:].copy(), best_chain)


class SymbolClassHMM(CategoricalHMM):
    """Hidden Markov model in which each symbol belongs to one state, by collapsed Gibbs sampling.

    `fit` groups the symbols into classes by what stands before and after them, and by features of the symbols if there
    are any. The fitted probabilities are posterior means given these classes, with which the model answers `predict`,
    `score` and the rest like any other.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    n_sweeps : int, default=200
        Number of sweeps of a chain: each moves every symbol once.
    n_init : int, default=1
        Number of chains from random classes; the one with the highest mean log joint of its last sweeps is kept.
    keep : int, default=30
        Number of last sweeps that vote on the class of each symbol.
    learn_concentrations : bool, default=True
        Sample the concentrations too, from a third of the sweeps on, under log-uniform priors between bounds.
    transition_concentration : float, default=0.1
        Dirichlet concentration of the transition rows (the end of a sequence is one of the possible next states);
        where sampling starts if `learn_concentrations`, as below.
    emission_concentration : float, default=1.0
        Dirichlet concentration of the probabilities of a state's own symbols.
    class_concentration : float, default=1.0
        Dirichlet concentration of the shares of the symbols that the states have.
    feature_concentration : float, default=0.1
        Dirichlet concentration of each feature's values in a state.
    unseen : {"new", "missing", "error"}, default="new"
        What a symbol is that `fit` did not see: one more symbol, which states with many rare symbols are likely to
        have; a missing value; or a mistake. Its features count in the first two cases.
    algorithm : {"map", "viterbi"}, default="map"
        How `predict` decodes; it matters only for sequences with unseen symbols.
    implementation
        See `CategoricalHMM`.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of the chains and of `sample`.
    verbose : int, default=0
        1 shows a progress bar.
    n_jobs : int or None, default=None
        Number of chains that run at a time, in threads; -1 is all cores. The results do not depend on it.

    Attributes
    ----------
    symbol_classes_ : array of shape (n_symbols,)
        State of each symbol; -1 for numbers below the largest symbol that did not occur.
    symbol_features_ : array of shape (n_symbols, n_columns - 1)
        Code of each symbol in the other columns.
    labels_ : array of shape (n_samples,)
        State of each sample of the data.
    startprob_, transmat_ : arrays of shape (n_components,) and (n_components, n_components)
        Posterior means, of sequences that do not end.
    emissionprob_ : array of shape (n_components, n_symbols)
        Posterior mean; a state without symbols has them all with the same probability, but `predict` never gives it to
        a symbol that has another.
    featureprob_ : list of arrays of shape (n_components, n_values)
        Probability of each value of each further column among a state's symbols.
    log_joint_ : float
        Mean log probability of data and classes together over the last sweeps of the best chain; also `objective_`.
    transition_concentration_, emission_concentration_, class_concentration_ : float
        Means over these sweeps.
    feature_concentration_ : array of shape (n_columns - 1,)
    n_sweeps_ : int
        Number of sweeps of the best chain; also `n_iter_`.
    trace_ : `SymbolClassTrace`
        Log joint probability and concentrations, by chain and sweep.
    history_ : `pluri.inference.History`
        The same by rows: the objective is log p(classes, data), the log-likelihood log p(data | classes).
    converged_ : bool
        Whether the log joint probability of the best chain had stopped drifting (split R-hat below 1.1). A chain need
        not converge to find good classes.
    state_occupancy_ : array of shape (n_components,)
        Number of samples in each state.
    vocabulary_, n_symbols_, log_det_, n_features_in_
        See `CategoricalHMM`.

    See Also
    --------
    pluri.datasets.words.word_features : suffix and shape of words, to put beside them as further columns.

    Examples
    --------
    >>> from pluri.sequences.symbol_classes import SymbolClassHMM
    >>> sentences = [["the", "dog", "runs"], ["the", "cat", "sleeps"], ["a", "dog", "sleeps"], ["a", "cat", "runs"]]
    >>> model = SymbolClassHMM(n_components=3, n_init=5, random_state=0).fit(sentences)
    >>> groups = model.labels_.reshape(4, 3)
    >>> bool((groups == groups[0]).all())
    True
    >>> bool((model.predict(["the", "platypus", "runs"]) == groups[0]).all())
    True
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "labels_": Stored("n_samples_", whole=True, least=-1, below="n_components"),
        "emissionprob_": Stored("n_components", "n_words_"),
        "symbol_classes_": Stored("n_words_", whole=True, least=-1, below="n_components"),
        "symbol_features_": Stored("n_words_", "n_columns_", whole=True, least=-1),
        "featureprob_[]": Stored("n_components", None),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_sweeps: int = 200,
        n_init: int = 1,
        keep: int = 30,
        learn_concentrations: bool = True,
        transition_concentration: float = 0.1,
        emission_concentration: float = 1.0,
        class_concentration: float = 1.0,
        feature_concentration: float = 0.1,
        unseen: str = "new",
        algorithm: str = "map",
        implementation: str = "scaling",
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_sweeps = n_sweeps
        self.n_init = n_init
        self.keep = keep
        self.learn_concentrations = learn_concentrations
        self.transition_concentration = transition_concentration
        self.emission_concentration = emission_concentration
        self.class_concentration = class_concentration
        self.feature_concentration = feature_concentration
        self.unseen = unseen
        self.algorithm = algorithm
        self.implementation = implementation
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _schedule(self) -> Schedule:
        for name in ("n_components", "n_sweeps", "n_init", "keep"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        if self.unseen not in UNSEEN:
            raise ValueError(f"unseen must be one of {UNSEEN}, got {self.unseen!r}")
        return Schedule(int(self.n_sweeps), int(self.keep), bool(self.learn_concentrations))

    def _concentrations(self, n_features: int) -> Concentrations:
        values = {}
        for name, bounds in BOUNDS.items():
            value = getattr(self, f"{name}_concentration")
            low, high = bounds if self.learn_concentrations else (0.0, np.inf)
            if not (np.ndim(value) == 0 and low < value < high):
                raise ValueError(f"{name}_concentration must be a number between {low} and {high}, got {value!r}")
            values[name] = float(value)
        features = (values["feature"],) * n_features
        return Concentrations(values["transition"], values["emission"], values["class"], features)

    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Sample the classes of the symbols of X.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

        Parameters
        ----------
        X : array of shape (n_samples, n_columns), list of sequences, or `pluri.engine.Source`
            Symbols in column 0, integers or strings. Further columns are features of the symbol: a symbol has the same
            value wherever it stands. Missing values are not allowed here. A source is read into memory.
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
        schedule = self._schedule()
        self._concentrations(0)
        n_threads = count_jobs(1 if self.n_jobs is None else self.n_jobs)
        codes, counts = self._coded(X, self._boundaries(X, y, lengths, groups))
        seen, types, features = distinct_symbols(codes, self._symbols())
        corpus = Corpus.from_codes(types, counts, features, np.array(self.n_symbols_[1:], dtype=np.int64))
        with (
            fit_callbacks(self, max_iter=schedule.n_sweeps, n_init=self.n_init, X=X) as hook,
            open_progress(int(self.verbose)) as report,
        ):

            def watch(state: Any) -> bool:
                report(state)
                return bool(hook(state)) if hook is not None else False

            chains, _ = run_chains(
                corpus,
                self.n_components,
                self._concentrations(features.shape[1]),
                schedule,
                as_generator(self.random_state),
                n_chains=self.n_init,
                n_threads=n_threads if hook is None else 1,  # callbacks expect one run after the other
                watch=watch if hook is not None or self.verbose else None,
            )
            best = int(np.argmax([chain.level for chain in chains]))
            self._store_trace(chains, best)
            self._store_classes(corpus, seen, features, chains[best])
            self.labels_ = self.symbol_classes_[codes[:, 0]]
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # in fit; a fitted model answers for rows with holes
        return tags

    def _coded(self, X: Any, lengths: ArrayLike | None) -> tuple[Integers, Integers]:
        """Each column's own codes 0 .. V - 1 (n_samples, n_columns), and the lengths; learns the vocabulary."""
        if is_source(X):
            batches = [lazy.load() for lazy in X.batches()]
            X, lengths = np.concatenate([b.X for b in batches]), np.concatenate([b.lengths for b in batches])
        data, counts = self._sequences(X, lengths, fitting=True)
        self._learn_symbols(ArraySource(data, counts))
        symbols = self._symbols()
        codes = symbols.encode(data) - symbols.offsets[:-1]
        if (codes < 0).any():
            raise ValueError("X must have no missing values in fit, got NaN or None")
        return codes, counts

    def _store_trace(self, chains: list[SymbolClassChain], best: int) -> None:
        chain = chains[best]
        self.trace_ = SymbolClassTrace.of(chains, self.n_sweeps, best)
        self.history_ = History(
            HistoryRow(c, i + 1, float(objective), float(log_likelihood), float(seconds))
            for c, one in enumerate(chains)
            for i, (objective, log_likelihood, seconds) in enumerate(
                zip(one.log_joint, one.log_likelihood, one.seconds)
            )
        )
        self.n_iter_ = self.n_sweeps_ = chain.n_sweeps
        self.converged_ = not chain.r_hat > SETTLED
        self.objective_ = self.log_joint_ = chain.level
        means = chain.mean_concentrations
        self.transition_concentration_ = means.transition
        self.emission_concentration_ = means.emission
        self.class_concentration_ = means.classes
        self.feature_concentration_ = np.array(means.features)

    def _store_classes(self, corpus: Corpus, seen: Integers, features: Integers, chain: SymbolClassChain) -> None:
        """Set the posterior means given the classes; `seen` (V,) are the symbols that occur."""
        k, prior = self.n_components, chain.mean_concentrations
        counts = assign(corpus, chain.classes, k).counts
        self.symbol_classes_ = np.full(self.n_symbols_[0], -1, dtype=np.int64)
        self.symbol_classes_[seen] = chain.classes
        self.symbol_features_ = np.full((self.n_symbols_[0], features.shape[1]), -1, dtype=np.int64)
        self.symbol_features_[seen] = features
        # A part of a Dirichlet vector, divided by its sum, is Dirichlet too: the boundary's column drops out.
        rows = (counts.transition[:, :k] + prior.transition).astype(np.float64)
        rows /= rows.sum(axis=1, keepdims=True)
        self.startprob_, self.transmat_ = rows[k], rows[:k]
        own: Array = (corpus.frequencies + prior.emission) / (counts.tokens + counts.types * prior.emission)[
            chain.classes
        ]
        table = np.zeros((k, self.n_symbols_[0]))
        table[chain.classes, seen] = own
        table[np.ix_(counts.types == 0, seen)] = 1.0 / len(seen)
        self.emissionprob_ = table
        values = np.split(counts.features, np.cumsum(corpus.sizes)[:-1])  # a part for each feature, if there are any
        self.featureprob_ = [
            ((part + e) / (counts.types + len(part) * e)).T.copy() for part, e in zip(values, prior.features)
        ]
        self.state_occupancy_ = counts.tokens.astype(np.float64)
        self.log_det_ = log_determinant(self.transmat_)

    def _tables(self) -> list[Array]:
        return [np.asarray(self.emissionprob_), *self.featureprob_]

    def _symbols(self) -> Symbols:
        words = self._words()
        # What to do with a symbol that fit has not seen is the emission's decision.
        return Symbols(tuple(self.n_symbols_), None if words is None else tuple(words), "missing")

    def _emission(self, given: dict[str, Any]) -> SymbolClassEmission:
        if self.unseen not in UNSEEN:
            raise ValueError(f"unseen must be one of {UNSEEN}, got {self.unseen!r}")
        types = np.bincount(self.symbol_classes_[self.symbol_classes_ >= 0], minlength=self.n_components)
        return SymbolClassEmission(
            self._symbols(),
            classes=self.symbol_classes_,
            features=self.symbol_features_,
            newcomer=log_newcomer(
                types, self.state_occupancy_, self.emission_concentration_, self.class_concentration_
            ),
            unseen=self.unseen,
        )

    def _check_fitted_state(self) -> None:
        super()._check_fitted_state()
        for column, table in enumerate(getattr(self, "featureprob_", ())):
            if self.symbol_features_[:, column].max(initial=-1) >= table.shape[1]:
                raise ValueError(f"symbol_features_ must be below {table.shape[1]} in column {column}")


def distinct_symbols(codes: Integers, symbols: Symbols) -> tuple[Integers, Integers, Integers]:
    """Symbols that occur (V,), number of each sample's among them (n_samples,), and their features (V, F).

    `codes` (n_samples, 1 + F) are the columns' own; a symbol with two values of a feature is refused.
    """
    seen, firsts, types = np.unique(codes[:, 0], return_index=True, return_inverse=True)
    features = codes[firsts, 1:]
    differs = codes[:, 1:] != features[types]
    if differs.any():
        t, f = (int(index) for index in np.argwhere(differs)[0])
        word = symbols.decode(0, codes[t : t + 1, 0])[0]
        values = [symbols.decode(f + 1, code[None])[0] for code in (features[types[t], f], codes[t, f + 1])]
        raise ValueError(
            f"X must have one value of the feature in column {f + 1} wherever symbol {word} stands, got {values[0]} "
            f"and {values[1]}"
        )
    return seen.astype(np.int64), types.astype(np.int64), features
