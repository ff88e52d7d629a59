"""What every topic model can do once it has topics: tell their words, draw them as a graph, and be scored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pluri.engine.extras import import_pandas
from pluri.inference import mcmc
from pluri.topics import checked_state
from pluri.topics.documents import check_documents, words_of_columns
from pluri.topics.editing.history import check_history
from pluri.topics.editing.named import NamedTopics
from pluri.topics.text.keeping import KeepsVectorizer
from pluri.topics.topic_graph import Example, Hierarchy, TopicEdge, TopicGraph, TopicNode
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import kept

if TYPE_CHECKING:
    from pluri.topics.held_out import HeldOut

Array = NDArray[np.float64]
#: Characters of a document that are shown.
EXCERPT = 400
#: Words whose count and prior together are at most so many times that of a word that never occurs are not shown.
ABOVE_PRIOR = 1.5
#: Share of the log density by which chains may differ, about half a percent of the perplexity; and by which a single
#: chain may still rise, some 3 % of it: chains of default length rise by half of that on a thousand short texts.
NEGLIGIBLE, SLOW_RISE = 1e-3, 5e-3


class TopicModel(NamedTopics, KeepsVectorizer, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Base of the topic models.

    A fit sets `topic_word_` (a distribution over words for each topic), `topic_weight_` (share of all tokens) and
    `components_` (what scikit-learn calls so: not normalised).
    """

    topic_word_: Array
    topic_weight_: Array
    components_: Array
    _whole_counts = True

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the topics."""

    @abstractmethod
    def transform(self, X: Any) -> Array:
        """Share of each topic in each document."""

    @abstractmethod
    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        """Log likelihood of each document of checked counts."""

    def _hierarchy(self) -> Hierarchy:
        """Which topics lie below which; a flat model has no edges."""
        n_topics = len(self.topic_word_)
        return Hierarchy(np.zeros(n_topics, dtype=int), np.zeros((0, 2), dtype=int), np.zeros(0))

    def _facts(self) -> dict[str, str]:
        """Short statements about the fit."""
        return {"topics": str(len(self.topic_word_)), "words": str(self.topic_word_.shape[1])}

    @property
    def _n_features_out(self) -> int:
        return len(self.topic_word_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = self._whole_counts
        return tags

    def name_words(self, feature_names: ArrayLike) -> Self:
        """Keep the words of the columns with the model, for its tables, pictures and pages.

        Parameters
        ----------
        feature_names : array-like of str, one for each column; dict; or fitted vectorizer
            As ``CountVectorizer.get_feature_names_out()`` gives them, its ``vocabulary_``, or itself.

        Returns
        -------
        self
        """
        check_is_fitted(self, "topic_word_")
        self.vocabulary_ = self._words(feature_names)
        return self

    def keep_examples(
        self, X: Any, titles: Sequence[str], excerpts: Sequence[str] | None = None, *, n_documents: int = 5
    ) -> Self:
        """Keep the documents that have most of each topic, for pages about the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        titles : sequence of str, one for each document
        excerpts : sequence of str, optional
            Texts; the beginning of each is kept.
        n_documents : int, default=5
            For each topic.

        Returns
        -------
        self
        """
        check_is_fitted(self, "topic_word_")
        check_count(n_documents, "n_documents")
        shares = np.asarray(self.transform(X))
        for name, texts in (("titles", titles), ("excerpts", excerpts)):
            if texts is not None and len(texts) != len(shares):
                raise ValueError(f"{name} must have one string for each of {len(shares)} documents, got {len(texts)}")
        # Lists: a column of a frame that was sorted or cut would be asked by its own index.
        titles, excerpts = list(titles), None if excerpts is None else list(excerpts)
        examples = []
        for column in shares.T:
            best = np.lexsort((np.arange(len(column)), -column))[:n_documents]
            examples.append(
                [
                    (
                        str(titles[row]),
                        "" if excerpts is None else " ".join(str(excerpts[row])[: 2 * EXCERPT].split())[:EXCERPT],
                        float(column[row]),
                        int(row),
                    )
                    for row in best
                    if column[row] > 0
                ]
            )
        self.examples_ = examples
        return self

    def top_words(self, n_words: int = 10, *, feature_names: ArrayLike | None = None) -> list[list[str]]:
        """Most probable words of each topic.

        Words that a topic has only by its prior, because no token of them belongs to it, are left out: those whose
        entry in `components_` (count plus prior) is below 1.5 and at most 1.5 times the least of the row. A topic has
        fewer than `n_words` words if it has no more, and always one.

        Parameters
        ----------
        n_words : int, default=10
            At most so many.
        feature_names : array-like of str, optional
            Words of the columns; by default those given to :meth:`name_words`, or the names of the data frame.

        Returns
        -------
        list of list of str
        """
        check_is_fitted(self, "topic_word_")
        words = self._words(feature_names)
        return [[str(words[column]) for column in order] for order in self._shown_columns(n_words)]

    def topic_table(self, n_words: int = 10, *, feature_names: ArrayLike | None = None, as_frame: bool = False) -> Any:
        """Topics with their share of the tokens, their words, and their names if there are any, the largest first.

        Parameters
        ----------
        n_words : int, default=10
        feature_names : array-like of str, optional
        as_frame : bool, default=False
            A pandas data frame instead of a list of dictionaries.
        """
        words = self.top_words(n_words, feature_names=feature_names)
        order = np.argsort(-self.topic_weight_, kind="stable")
        rows: list[dict[str, Any]] = [
            {"topic": int(topic), "share": float(self.topic_weight_[topic]), "words": " ".join(words[topic])}
            for topic in order
        ]
        for row in rows if hasattr(self, "topic_names_") else ():
            row["name"] = self.topic_names_[row["topic"]]
        if not as_frame:
            return rows
        return import_pandas().DataFrame(rows)

    def topic_graph(self, n_words: int = 10, *, feature_names: ArrayLike | None = None) -> TopicGraph:
        """Topics, their words and the edges between them.

        All topics are in it; see :meth:`TopicGraph.without_empty`.

        Parameters
        ----------
        n_words : int, default=10
            At most so many, as in :meth:`top_words`.
        feature_names : array-like of str, optional

        Returns
        -------
        TopicGraph
        """
        check_is_fitted(self, "topic_word_")
        words = self._words(feature_names)
        hierarchy = self._hierarchy()
        labels = list(hierarchy.labels) if hierarchy.labels is not None else [None] * len(self.topic_word_)
        labels = [given or own for given, own in zip(self._names_so_far(), labels)]
        examples = getattr(self, "examples_", [()] * len(self.topic_word_))
        nodes = tuple(
            TopicNode(
                index=topic,
                depth=int(hierarchy.depth[topic]),
                weight=float(self.topic_weight_[topic]),
                words=tuple(str(words[column]) for column in columns),
                probabilities=tuple(float(self.topic_word_[topic, column]) for column in columns),
                label=labels[topic],
                examples=tuple(Example(*example) for example in examples[topic]),
            )
            for topic, columns in enumerate(self._shown_columns(n_words))
        )
        edges = tuple(
            TopicEdge(int(parent), int(child), float(weight))
            for (parent, child), weight in zip(hierarchy.edges, hierarchy.weight)
        )
        return TopicGraph(type(self).__name__, nodes, edges, self._facts())

    def _check_fitted_state(self) -> None:
        """Raise a ValueError if what was learned does not fit together, as in a file that was changed by hand."""
        if not hasattr(self, "topic_word_"):
            return
        topics = checked_state.distributions("topic_word_", self.topic_word_, (None, None))
        n_topics, n_words = topics.shape
        wanted = getattr(self, "n_features_in_", n_words)
        if n_topics < 1 or wanted != n_words:
            raise ValueError(
                f"topic_word_ must have a column for each of n_features_in_={wanted!r} words, got shape {topics.shape}"
            )
        checked_state.numbers("components_", self.components_, (n_topics, n_words), least=0)
        checked_state.numbers("topic_weight_", self.topic_weight_, (n_topics,), least=0)
        if hasattr(self, "vocabulary_") and np.shape(self.vocabulary_) != (n_words,):
            raise ValueError(f"vocabulary_ must have {n_words} words, got shape {np.shape(self.vocabulary_)}")
        if len(getattr(getattr(self, "vectorizer_", None), "vocabulary_", range(n_words))) != n_words:
            raise ValueError(f"vectorizer_ must have {n_words} words, got {len(self.vectorizer_.vocabulary_)}")
        if len(getattr(self, "examples_", range(n_topics))) != n_topics:
            raise ValueError(f"examples_ must have an entry for each of {n_topics} topics, got {len(self.examples_)}")
        check_history(self, n_topics, n_words)
        self._check_learned(n_topics, n_words)

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        """The same of what this model has learned besides."""

    def check_settings(self) -> None:
        """Raise what `fit` would raise of the settings alone, before there are documents; nothing unless overridden."""

    def held_out(
        self, X: Any, method: str = "completion", *, random_state: RandomState = None, **options: Any
    ) -> HeldOut:
        """How well new documents are predicted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        method : str, default="completion"
            "completion": half of the tokens of each document, given the other half.
            "left_to_right": each token given those before it, which adds up to the whole document.
            Further ones are named by the model.
        random_state : int, Generator or None
            By default that of the model.
        **options
            Of the method. With "completion", `share` is the part of the tokens that is given, drawn at random; or
            `observed` has the tokens that are given, and `X` those to predict
            (see :func:`~pluri.topics.held_out.split_documents`), so that models are compared on the same words.

        Returns
        -------
        HeldOut
            Log likelihood of each document, `per_word` and `perplexity`.
        """
        check_is_fitted(self, "topic_word_")
        counts = check_documents(self, X, reset=False, whom="held_out", empty="ignore")
        if options.get("observed") is not None:
            known = check_documents(self, options["observed"], reset=False, whom="held_out", empty="ignore")
            if known.shape[0] != counts.shape[0]:
                sizes = f"{known.shape[0]} and {counts.shape[0]}"
                raise ValueError(f"observed and X must have equally many documents, got {sizes}")
            options["observed"] = known
        chosen = getattr(self, "random_state", None) if random_state is None else random_state
        return self._held_out(counts, method, as_generator(chosen), **options)

    def score(self, X: Any, y: Any = None) -> float:
        """Log likelihood of the second halves of documents, given the first: their sum."""
        return self.held_out(X).total

    def perplexity(self, X: Any, method: str = "completion", **options: Any) -> float:
        """Exponential of minus the mean log likelihood of a held-out word."""
        return self.held_out(X, method, **options).perplexity

    def _best_columns(self, n_words: int) -> NDArray[np.int_]:
        if not isinstance(n_words, int | np.integer) or n_words < 1:
            raise ValueError(f"n_words must be a whole number of at least 1, got {n_words!r}")
        n_words = min(int(n_words), self.topic_word_.shape[1])
        best = np.empty((len(self.topic_word_), n_words), dtype=int)
        for topic, row in enumerate(self.topic_word_):
            # Only the largest are sorted, equal ones in the order of the columns.
            few = np.flatnonzero(row >= np.partition(row, -n_words)[-n_words])
            best[topic] = few[np.argsort(-row[few], kind="stable")[:n_words]]
        return best

    def _own_words(self) -> NDArray[np.bool_]:
        """Which words each topic has by its tokens, and not by its prior only; at least one."""
        # Models made by hand may have no counts.
        components = np.asarray(getattr(self, "components_", self.topic_word_))
        counted = np.abs(components.sum(axis=1) - 1).max(initial=0.0) > 1e-6
        own = self.topic_word_ > 0
        for row, counts, found in zip(self.topic_word_, components, own):
            least = counts[found].min(initial=np.inf)
            if counted:
                found &= (counts > ABOVE_PRIOR * least) | (counts >= ABOVE_PRIOR)
            elif (low := found & (counts <= least * (1 + 1e-6))).sum() > 1 and (found & ~low).any():
                found &= ~low  # probabilities: several words share the least one
            if not found.any():
                found[row.argmax()] = True
        return own

    def _shown_columns(self, n_words: int) -> list[NDArray[np.int_]]:
        """Columns of the most probable words of each topic, without those that it does not have."""
        best = self._best_columns(n_words)
        return [columns[own[columns]] for columns, own in zip(best, self._own_words())]

    def _words(self, feature_names: ArrayLike | None) -> NDArray[Any]:
        n_words = self.topic_word_.shape[1]
        if feature_names is None:
            known = getattr(self, "vocabulary_", getattr(self, "feature_names_in_", None))
            if known is None:
                return np.array([f"word {column}" for column in range(n_words)])
            feature_names = known
        return words_of_columns(feature_names, n_words)


def n_sweeps(trace: mcmc.Trace) -> int:
    """Sweeps of each chain, by the count of its state: Ctrl-C during the warm-up leaves fewer than were asked for."""
    return min(int(end.state.n_sweeps) for end in trace.ends)


def verdict_of_topics(trace: mcmc.Trace, **numbers: float) -> mcmc.Verdict:
    """Whether chains agree on the log density, and on numbers that were drawn, as far as it matters.

    Parameters
    ----------
    trace : Trace
    **numbers : float
        Further draws to judge by, and differences of their means that do not matter.
    """
    share = NEGLIGIBLE if trace.n_chains > 1 else SLOW_RISE
    negligible = {**numbers, "log_density": share * abs(float(np.mean(trace.stats["log_density"])))}
    return trace.verdict(*negligible, limit=mcmc.LATENT_R_HAT_LIMIT, negligible=negligible)


def warn_if_interrupted(interrupted: bool, name: str, n_done: int) -> None:
    """Say that Ctrl-C ended a fit, and what is left of it."""
    if interrupted:
        kept(f"{name}: interrupted after {n_done} sweeps; the topics so far are kept")
