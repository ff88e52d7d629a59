"""Hidden Markov model in which each symbol belongs to one state: classes of words from text, without labels.

A word has nearly always the same part of speech. A model that says so (see `symbol_class_sampler.py`) has one class to
find for each symbol instead of one state for each token, which leaves sampling far fewer ways to go wrong.

References
----------
Lee, Haghighi and Barzilay (2010), Simple type-level unsupervised POS tagging, EMNLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.engine import ArraySource
from pluri.inference import mcmc
from pluri.priors import LogUniform, log_determinant
from pluri.progress.callbacks import with_callbacks
from pluri.sequences.emissions.symbols import Symbols, distinct_symbols
from pluri.sequences.queries import ALGORITHMS
from pluri.sequences.sampled.sampled_hmm import SampledHMM
from pluri.sequences.sampled.symbol_class_emission import UNSEEN, SymbolClassEmission, log_newcomer
from pluri.sequences.sampled.symbol_class_gibbs import SymbolClassGibbs, concentrations_of, majority, posterior_means
from pluri.sequences.sampled.symbol_class_sampler import LEARNED, ConcentrationPriors, Concentrations, Corpus, assign
from pluri.validation import (
    Allowed,
    Flag,
    Only,
    Stored,
    Whole,
    check_parameters,
    check_value,
    is_source,
    restored_on_failure,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A drift of this share of the log density is no reason to warn.
NEGLIGIBLE = 1e-3
#: Where concentrations begin that are only said to be learned.
FIRST = Concentrations(transition=0.1, emission=1.0, classes=1.0, features=(0.1,))


class SymbolClassHMM(SampledHMM):
    """Hidden Markov model in which each symbol belongs to one state, by collapsed Gibbs sampling.

    `fit` groups the symbols into classes by what stands before and after them, and by features of the symbols if there
    are any. The fitted probabilities are posterior means given these classes, with which the model answers `predict`,
    `score` and the rest like any other.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    n_warmup, n_draws : int, default=170 and 30
        Sweeps of each chain, in each of which every symbol moves once: those before the first draw, which are thrown
        away, and those that vote on the class of each symbol.
    n_chains : int, default=1
        Number of chains from random classes; the one with the highest mean log joint of its draws is kept.
    transition_concentration : float, LogUniform or "learn", default="learn"
        Dirichlet concentration of the transition rows (the end of a sequence is one of the possible next states):
        fixed, or sampled under a prior, from a third of the sweeps on. "learn" begins at 0.1 under
        ``LogUniform(1e-5, 10)``.
    emission_concentration : float, LogUniform or "learn", default="learn"
        Dirichlet concentration of the probabilities of a state's own symbols. "learn" begins at 1 under
        ``LogUniform(1e-4, 10)``.
    class_concentration : float, LogUniform or "learn", default="learn"
        Dirichlet concentration of the shares of the symbols that the states have. "learn" begins at 1 under
        ``LogUniform(1e-3, 100)``.
    feature_concentration : float, LogUniform or "learn", default="learn"
        Dirichlet concentration of each feature's values in a state. "learn" begins at 0.1 under
        ``LogUniform(1e-5, 10)``, for each feature by itself.
    unseen : {"new", "missing", "error"}, default="new"
        What a symbol is that `fit` did not see: one more symbol, which states with many rare symbols are likely to
        have; a missing value; or a mistake. Its features count in the first two cases.
    algorithm, implementation
        See `CategoricalHMM`; how `predict` decodes matters only for sequences with unseen symbols.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of the chains and of `sample`.
    verbose : int, default=0
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
    objective_ : float
        Mean log probability of data and classes together over the draws of the best chain.
    transition_concentration_, emission_concentration_, class_concentration_ : float
        Means over these draws.
    feature_concentration_ : array of shape (n_columns - 1,)
    n_iter_ : int
        Number of sweeps of a chain.
    trace_ : `pluri.inference.mcmc.Trace`
        Draws of ``classes`` (of the symbols that occur, in their order) and of the concentrations; among its
        statistics are ``log_density``, log p(classes, data), ``log_likelihood``, log p(data | classes), and ``moved``,
        the share of the symbols that changed class.
    best_chain_ : int
        The chain with the highest mean log density of its draws.
    converged_ : bool
        Whether the log density of the best chain had stopped drifting, by `pluri.inference.mcmc.judge`; a drift by a
        tenth of a percent, or by the square root of half the number of symbols, does not count. If not, `fit` warns.
    state_occupancy_ : array of shape (n_components,)
        Number of samples in each state.
    vocabulary_, n_symbols_, log_det_, n_features_in_
        See `CategoricalHMM`.

    See Also
    --------
    pluri.datasets.words.word_features : suffix and shape of words, to put beside them as further columns.

    Examples
    --------
    >>> from pluri.sequences.sampled.symbol_classes import SymbolClassHMM
    >>> sentences = [["the", "dog", "runs"], ["the", "cat", "sleeps"], ["a", "dog", "sleeps"], ["a", "cat", "runs"]]
    >>> model = SymbolClassHMM(n_components=3, n_chains=5, random_state=0).fit(sentences)
    >>> groups = model.labels_.reshape(4, 3)
    >>> bool((groups == groups[0]).all())
    True
    >>> bool((model.predict(["the", "platypus", "runs"]) == groups[0]).all())
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "unseen": Only(*UNSEEN),
        "algorithm": Only(*ALGORITHMS),
        "verbose": Whole(0) | Flag(),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "labels_": Stored("n_samples_", whole=True, least=-1, below="n_components"),
        "emissionprob_": Stored("n_components", "n_words_"),
        "symbol_classes_": Stored("n_words_", whole=True, least=-1, below="n_components"),
        "symbol_features_": Stored("n_words_", "n_columns_", whole=True, least=-1),
        "featureprob_[]": Stored("n_components", None),
    }
    #: In fit; a fitted model answers for rows with holes.
    _input_tags: ClassVar[Mapping[str, bool]] = {"allow_nan": False}

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_warmup: int = 170,
        n_draws: int = 30,
        n_chains: int = 1,
        transition_concentration: float | LogUniform | str = "learn",
        emission_concentration: float | LogUniform | str = "learn",
        class_concentration: float | LogUniform | str = "learn",
        feature_concentration: float | LogUniform | str = "learn",
        unseen: str = "new",
        algorithm: str = "map",
        implementation: str = "scaling",
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.n_chains = n_chains
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

    def _concentrations(self, n_features: int) -> tuple[Concentrations, ConcentrationPriors]:
        """Where the concentrations begin, and the priors of those that are learned."""
        given = []
        for name, first, prior in zip(("transition", "emission", "class", "feature"), FIRST.as_tuple(), LEARNED):
            assert prior is not None
            given.append(self._hyperparameter(f"{name}_concentration", prior, first))
        a, b, g, e = (each.value for each in given)
        return Concentrations(a, b, g, (e,) * n_features), ConcentrationPriors(*(each.prior for each in given))

    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Sample the classes of the symbols of X.

        After Ctrl-C the model is that of the draws so far, or of the last sweep if there are none.

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
        check_parameters(self)
        self._concentrations(0)
        with restored_on_failure(self):
            codes, counts = self._coded(X, self._boundaries(X, y, lengths, groups))
            seen, types, features = distinct_symbols(codes, self._symbols())
            corpus = Corpus.from_codes(types, counts, features, np.array(self.n_symbols_[1:], dtype=np.int64))
            n_held = min(self.n_warmup, (self.n_warmup + self.n_draws) // 3)
            kernel = SymbolClassGibbs(corpus, self.n_components, *self._concentrations(features.shape[1]), n_held)
            trace = self._sample_chains(kernel, X, partial(self._store_draws, corpus, seen, codes))
            # Nor is what the log density of so many settled numbers varies by: the draws only vote on classes.
            slight_rise = max(NEGLIGIBLE * abs(self.objective_), float(np.sqrt(len(seen) / 2)))
            self._judge(trace, slight_rise, "Its classes may be those of a chain that was still finding better ones")
        return self

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

    def _store_draws(self, corpus: Corpus, seen: Integers, codes: Integers, trace: mcmc.Trace) -> None:
        """Set the posterior means given the classes; `seen` (V,) are the symbols that occur."""
        best, k, n_symbols = self.best_chain_, self.n_components, self.n_symbols_[0]
        self.objective_ = float(trace.stats["log_density"][best].mean())
        learned = concentrations_of({name: draws[best].mean(axis=0) for name, draws in trace.draws.items()})
        self.class_concentration_, self.feature_concentration_ = learned.classes, np.array(learned.features)
        classes = majority(trace["classes"][best], k)
        counts = assign(corpus, classes, k).counts
        self.symbol_classes_ = np.full(n_symbols, -1, dtype=np.int64)
        self.symbol_classes_[seen] = classes
        self.symbol_features_ = np.full((n_symbols, codes.shape[1] - 1), -1, dtype=np.int64)
        self.symbol_features_[codes[:, 0]] = codes[:, 1:]
        self.labels_ = self.symbol_classes_[codes[:, 0]]
        means = posterior_means(corpus, counts, classes, learned)
        self.startprob_, self.transmat_, self.featureprob_ = means.start, means.transition, means.features
        self.emissionprob_ = np.zeros((k, n_symbols))
        self.emissionprob_[:, seen] = means.emission
        self.state_occupancy_ = counts.tokens.astype(np.float64)
        self.log_det_ = log_determinant(self.transmat_)

    def _tables(self) -> list[Array]:
        return [np.asarray(self.emissionprob_), *self.featureprob_]

    def _symbols(self) -> Symbols:
        words = self._words()
        # What to do with a symbol that fit has not seen is the emission's decision.
        return Symbols(tuple(self.n_symbols_), None if words is None else tuple(words), "missing")

    def _emission(self, given: dict[str, Any]) -> SymbolClassEmission:
        check_value(self.unseen, "unseen", self._parameters["unseen"])
        types = np.bincount(self.symbol_classes_[self.symbol_classes_ >= 0], minlength=self.n_components)
        newcomer = log_newcomer(types, self.state_occupancy_, self.emission_concentration_, self.class_concentration_)
        return SymbolClassEmission(
            self._symbols(),
            classes=self.symbol_classes_,
            features=self.symbol_features_,
            newcomer=newcomer,
            unseen=self.unseen,
        )

    def _check_fitted_state(self) -> None:
        super()._check_fitted_state()
        for column, table in enumerate(getattr(self, "featureprob_", ())):
            if self.symbol_features_[:, column].max(initial=-1) >= table.shape[1]:
                raise ValueError(f"symbol_features_ must be below {table.shape[1]} in column {column}")
