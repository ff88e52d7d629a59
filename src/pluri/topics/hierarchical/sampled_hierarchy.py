"""What the hierarchies that are learned by sampling share: the likeliest draw is the model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.inference import mcmc
from pluri.topics.documents import Tokens, check_documents, tokens_of
from pluri.topics.held_out import HeldOut, empirical_likelihood
from pluri.topics.held_out.halves import halves, score_words
from pluri.topics.sampled_topics import SampledTopics
from pluri.validation import RandomState, as_generator, check_count, restored_on_failure

Array = NDArray[np.float64]


class SampledHierarchy(SampledTopics):
    """Base: chains of a Gibbs sampler, of which the draw with the highest joint density is kept."""

    _backend = "threads"

    @abstractmethod
    def _kernel(self, tokens: Tokens) -> Any:
        """The sampler, with checked settings."""

    @abstractmethod
    def _start(self, kernel: Any) -> Any:
        """Where chains begin, as `pluri.inference.mcmc.sample` takes it."""

    @abstractmethod
    def _store(self, tokens: Tokens, position: Any, trace: mcmc.Trace) -> None:
        """Keep what the likeliest draw says."""

    @abstractmethod
    def _prepared(self) -> Any:
        """The fitted model, which can `draw` word distributions and score documents from `left_to_right`."""

    @abstractmethod
    def _place(self, X: Any) -> Array:
        """Share of each topic in each document of checked counts."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample, and keep the likeliest draw.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Whole counts.
        y : ignored

        Returns
        -------
        self
        """
        with restored_on_failure(self):
            tokens = tokens_of(check_documents(self, X))
            kernel = self._kernel(tokens)
            trace = self._sample(kernel, self._start(kernel))
            states = [end.state for end in trace.ends]
            self.best_chain_ = int(np.argmax([state.best_log_density for state in states]))
            self.best_log_joint_ = float(states[self.best_chain_].best_log_density)
            self._store(tokens, states[self.best_chain_].best, trace)
        return self

    @abstractmethod
    def _node_prior(self) -> Any:
        """Prior counts of the words of each node: a number, or an array of shape (n_topics, 1)."""

    def _store_counts(self, tokens: Tokens, nodes: NDArray[Any], n_nodes: int) -> None:
        """Topics from the node of each token."""
        counts = np.bincount(nodes * tokens.n_words + tokens.words, minlength=n_nodes * tokens.n_words)
        counts = counts.reshape(n_nodes, tokens.n_words)
        self._store_topics(counts)
        sizes = counts.sum(axis=1)
        self.topic_weight_ = np.asarray(sizes / sizes.sum() if sizes.sum() else np.full(n_nodes, 1.0 / n_nodes))
        self.n_topics_ = n_nodes

    def _store_topics(self, counts: NDArray[np.int64]) -> None:
        self.components_ = counts + self._node_prior()
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)

    def __getstate__(self) -> dict[str, Any]:
        """What is put in a file: of the topics, the counts that are not zero instead of all probabilities."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "components_" in state:
            counts = np.rint(self.components_ - self._node_prior()).astype(np.int32)
            if np.array_equal(counts + self._node_prior(), self.components_):
                del state["components_"], state["topic_word_"]
                places = np.flatnonzero(counts)
                state["word_counts"] = {
                    "shape": counts.shape, "counts": counts.ravel()[places],
                    "places": places.astype(np.int32) if counts.size < 2**31 else places,
                }  # fmt: skip
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up what a file has."""
        kept = state.get("word_counts")
        super().__setstate__({name: value for name, value in state.items() if name != "word_counts"})
        if kept is not None:
            counts = np.zeros(kept["shape"], dtype=np.int64)
            counts.ravel()[kept["places"]] = kept["counts"]
            self._store_topics(counts)

    def check_settings(self) -> None:
        """Raise what `fit` would raise of the settings alone, before there are documents."""
        self._kernel(tokens_of(sparse.csr_matrix(np.ones((2, 3)))))

    def transform(self, X: Any) -> Array:
        """Share of each topic in each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        array of shape (n_documents, n_topics)
            Rows sum to one; an empty document has the prior mean.
        """
        self._prepared()
        return self._place(check_documents(self, X, reset=False, whom="transform", empty="ignore"))

    def sample(
        self, n_samples: int = 1, length: int = 100, *, random_state: RandomState = None
    ) -> tuple[sparse.csr_matrix, NDArray[Any]]:
        """Make up documents.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        length : int, default=100
            Words of each.
        random_state : int, Generator or None
            By default that of the model.

        Returns
        -------
        X : csr matrix of shape (n_samples, n_words)
        origin : array of shape (n_samples, ...)
            Where each comes from: the nodes of its path, -1 for those of a new branch; or its shares of topics.
        """
        prepared = self._prepared()
        check_count(n_samples, "n_samples")
        check_count(length, "length", 0)
        rng = as_generator(self.random_state if random_state is None else random_state)
        words, origin = prepared.draw(rng, n_samples)
        return sparse.csr_matrix(rng.multinomial(length, words).astype(np.float64)), origin

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        """By "completion" (share, observed), "left_to_right" (n_particles) or "empirical" (n_samples)."""
        prepared = self._prepared()
        if method == "completion":
            observed, scored = halves(X, rng, **options)
            return score_words(self._place(observed), self.topic_word_, scored)
        if method == "left_to_right":
            check_count(options.get("n_particles", 1), "n_particles")
            score: HeldOut = prepared.left_to_right(X, rng, **options)
            return score
        if method == "empirical":
            n_samples = check_count(options.pop("n_samples", 1000), "n_samples")
            return empirical_likelihood(prepared.draw(rng, n_samples, **options)[0], X)
        raise ValueError(f"method must be 'completion', 'left_to_right' or 'empirical', got {method!r}")
