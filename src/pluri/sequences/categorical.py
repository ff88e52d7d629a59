"""Hidden Markov model with categorical emissions: p(x_t | state i) = product over columns f of b_i,f(x_tf).

With one column this is the classic discrete HMM. With several, the columns are independent given the state (as in
naive Bayes): a word, its suffix and whether it has a capital, say.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from pluri.priors import as_row_prior
from pluri.sequences.emissions.categorical import CategoricalEmission, CategoricalParameters
from pluri.sequences.emissions.symbols import Symbols, are_words, check_symbols, decoded, is_text, learn_vocabulary
from pluri.sequences.fitting import Prior
from pluri.sequences.forecasting import ForecastsObservations
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.imputing import ImputesObservations
from pluri.validation import Only, check_distributions, check_value, is_source

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A larger symbol is a mistake rather than a table that fits in memory.
MOST_SYMBOLS = 10**9


class CategoricalHMM(ForecastsObservations, ImputesObservations, HiddenMarkovModel):
    """Hidden Markov model with categorical emissions: integers or strings, in one column or several.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    startprob_prior, transmat_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the start distribution and of the transition rows; see `GaussianHMM`.
    emissionprob_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the symbol probabilities; above 1 smooths, below 1 asks for sparse states.
    n_features : int or None, default=None
        Number of symbols (of each column); the largest one seen plus one if None. Strings are as many as there are.
    algorithm, random_state, n_iter, tol, verbose, implementation
        See `GaussianHMM`.
    params, init_params : str, default="ste"
        s (start), t (transitions), e (symbol probabilities).
    unseen : {"error", "missing"}, default="error"
        What a symbol is that `fit` did not see: a mistake, or a missing value.
    startprob_init, transmat_init, emissionprob_init : arrays, optional
        Starting values, whatever `init_params` says; see `GaussianHMM`.
    topology, diversity, n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
    transmat_ : array of shape (n_components, n_components)
    emissionprob_ : array of shape (n_components, n_symbols)
        A list of such arrays, one for each column, if X has several columns.
    vocabulary_ : list of arrays, or None
        Sorted words of each column if X holds strings: symbol v of column f is ``vocabulary_[f][v]``.
    n_symbols_ : list of int
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Examples
    --------
    >>> from pluri.sequences import CategoricalHMM
    >>> sentences = [["the", "dog", "runs"], ["the", "cat", "sleeps"], ["a", "dog", "sleeps"]]
    >>> model = CategoricalHMM(n_components=3, n_init=5, random_state=0).fit(sentences * 3)
    >>> states = model.predict(["the", "cat", "runs"])
    >>> len(set(states.tolist()))
    3
    """

    _emission_attributes = {"e": "emissionprob_"}  # noqa: RUF012
    # A constructor parameter here; other families read it off the data.
    n_features: Any = None
    _input_tags: ClassVar[Mapping[str, bool]] = {"categorical": True, "positive_only": True, "string": True}

    def __init__(
        self,
        n_components: int = 1,
        startprob_prior: Prior = 1.0,
        transmat_prior: Prior = 1.0,
        *,
        emissionprob_prior: Prior = 1.0,
        n_features: int | None = None,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "ste",
        init_params: str = "ste",
        implementation: str = "scaling",
        unseen: str = "error",
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
        emissionprob_init: Any = None,
        topology: Any = "ergodic",
        diversity: Any = None,
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
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.emissionprob_init = emissionprob_init
        self.topology = topology
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _sequences(self, X: Any, lengths: ArrayLike | None, *, fitting: bool) -> tuple[NDArray[Any], Integers]:
        if isinstance(X, str | bytes):
            raise TypeError("X must be a list or an array of symbols, got a string: list(X) is its characters")
        if isinstance(X, list | tuple) and X and are_words(X):
            self._check_words([word for word in X if isinstance(word, str | bytes)], fitting)
            X = np.array(X, dtype=object).reshape(-1, 1)  # one sequence of words
        elif isinstance(X, np.ndarray) and X.ndim == 1 and is_text(X):
            X = X.reshape(-1, 1)
        return super()._sequences(X, lengths, fitting=fitting)

    def _check_words(self, X: Sequence[Any], fitting: bool) -> None:
        """Say how a list of strings is read where it could be meant as sequences of characters."""
        if all(len(word) < 2 for word in X):
            return
        cure = "for sequences of characters pass [list(text) for text in X]"
        words = self._words()
        if fitting:
            warnings.warn(
                f"X, a list of {len(X)} strings, is read as one sequence of {len(X)} symbols: {cure}; [X] says that it "
                "is one sequence of words",
                UserWarning,
                stacklevel=6,
            )
        elif words is not None and all(len(word) < 2 for word in words[0]):
            raise ValueError(f"X must hold single characters, as in fit, got a list with longer strings: {cure}")

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        if issparse(X):
            return self._validated(X, fitting)  # which refuses it; old SciPy cannot make an array of one
        array = X if hasattr(X, "dtype") and hasattr(X, "ndim") else np.asarray(X) if not hasattr(X, "iloc") else X
        if is_text(np.asarray(array)):
            words = decoded(np.asarray(array, dtype=object))
            data = self._validated(words, fitting, dtype=None, ensure_all_finite=False)
            if not fitting and self._words() is None:
                raise ValueError("X must hold integers, as in fit, got strings")
            return data
        data = self._validated(X, fitting, dtype="numeric")
        check_symbols(data)
        if not fitting and self._words() is not None:
            raise ValueError("X must hold strings, as in fit, got numbers")
        return data

    def _words(self) -> list[NDArray[Any]] | None:
        return getattr(self, "vocabulary_", None)

    def _source(self, X: Any, lengths: Any, sample_weight: Any, labels: Integers | None = None) -> Any:
        source, n_samples = super()._source(X, lengths, sample_weight, labels)
        check_value(self.unseen, "unseen", Only("error", "missing"))
        if is_source(X) and self.n_features is None:
            raise ValueError("n_features must be given when X is a source of batches, got None")
        self._learn_symbols(None if is_source(X) else source)
        return source, n_samples

    def _learn_symbols(self, source: Any) -> None:
        """Set `vocabulary_` and `n_symbols_` from the data (or from `n_features` if they come in batches)."""
        self.vocabulary_ = None
        if source is None:
            self.n_symbols_ = [int(self.n_features)] * self.n_features_in_
            return
        X = np.concatenate([lazy.load().X for lazy in source.batches()])
        if is_text(X):
            self.vocabulary_ = list(learn_vocabulary(X))
            self.n_symbols_ = [len(words) for words in self.vocabulary_]
            if self.n_features is not None and set(self.n_symbols_) != {self.n_features}:
                raise ValueError(
                    f"n_features must be None for strings, or as many as there are ({self.n_symbols_[0]}), got "
                    f"{self.n_features}"
                )
            return
        largest = np.nanmax(np.where(np.isnan(X), -1, X) if X.dtype.kind == "f" else X, axis=0)
        seen = [int(value) + 1 for value in largest]
        if max(seen) > MOST_SYMBOLS:
            raise ValueError(
                f"X must hold symbols below {MOST_SYMBOLS} (a table has a row for each), got {max(seen) - 1}: number "
                "the symbols from 0, or give them as strings"
            )
        if self.n_features is not None:
            if max(seen) > self.n_features and self.unseen == "error":
                raise ValueError(
                    f"X must hold symbols below n_features ({self.n_features}), got a largest symbol of {max(seen) - 1}"
                )
            seen = [int(self.n_features)] * len(seen)
        self.n_symbols_ = [max(size, 1) for size in seen]

    def _symbols(self) -> Symbols:
        words = self._words()
        sizes = getattr(self, "n_symbols_", None)
        if sizes is None:
            sizes = [table.shape[1] for table in self._tables()]
        if words is not None and [len(known) for known in words] != list(sizes):
            raise ValueError(f"vocabulary_ must have {list(sizes)} words in its columns, got {[len(w) for w in words]}")
        return Symbols(tuple(sizes), None if words is None else tuple(words), self.unseen)

    def _tables(self) -> list[Array]:
        tables = self.emissionprob_ if isinstance(self.emissionprob_, list | tuple) else [self.emissionprob_]
        if len(tables) and np.ndim(tables[0]) == 1:
            tables = [np.asarray(self.emissionprob_)]
        return [np.atleast_2d(np.asarray(table, dtype=np.float64)) for table in tables]

    def _table(self, symbols: Symbols) -> Array:
        tables = self._tables()
        if len(tables) != len(symbols.sizes):
            raise ValueError(
                f"emissionprob_ must have a table for each of {len(symbols.sizes)} columns, got {len(tables)}"
            )
        for table, size in zip(tables, symbols.sizes):
            if table.shape != (self.n_components, size):
                raise ValueError(f"emissionprob_ must have shape ({self.n_components}, {size}), got {table.shape}")
            check_distributions("emissionprob_", table)
        return np.concatenate([table.T for table in tables])

    def _emission(self, given: dict[str, Any]) -> CategoricalEmission:
        symbols = self._symbols()
        if not symbols.sizes:
            raise ValueError("emissionprob_ must have a table for at least one column, got none")
        for size in symbols.sizes:
            prior = as_row_prior("emissionprob_prior", self.emissionprob_prior, (self.n_components, size))
        return CategoricalEmission(
            symbols,
            prior,
            update="e" in self.params,
            table=self._table(symbols) if "emissionprob_" in given else None,
        )

    def _emission_parameters(self, emission: CategoricalEmission) -> CategoricalParameters:
        return CategoricalParameters(self._table(emission.symbols))

    def _store_emission(self, parameters: CategoricalParameters) -> None:
        offsets = self._symbols().offsets
        tables = [np.ascontiguousarray(parameters.table[a:b].T) for a, b in pairwise(offsets)]
        self.emissionprob_ = tables[0] if len(tables) == 1 else tables

    def _n_features_of_parameters(self) -> int:
        return len(self._tables())
