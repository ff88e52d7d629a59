"""Flat topics whose words and number a person may change: merge, drop, split, pin and reduce."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import check_documents
from pluri.topics.editing import regrouping
from pluri.topics.editing.history import topic_step
from pluri.topics.editing.named import checked_name, joined_examples, joined_names
from pluri.topics.editing.parts import parts_of_topic
from pluri.topics.flat_topics import FlatTopicModel
from pluri.validation import Number, RandomState, Whole, as_generator, check_count, check_value, restored_on_failure
from pluri.validation.interruption import interruptible

Array = NDArray[np.float64]


class EditableTopics(FlatTopicModel):
    """Base of flat models whose topics may be merged, dropped, split and pinned.

    Each edit changes `components_`, `topic_word_`, `topic_weight_` and the priors together, so that everything that is
    asked afterwards (shares, scores, words, pages) is of the topics as they then are. `n_components`, where there is
    one, follows. :meth:`undo` takes edits back, one after another; learning from further documents keeps the topics as
    they are and forgets how to.
    """

    topic_word_prior_: Any
    random_state: Any

    @interruptible(method=True)
    def merge(self, topics: Sequence[int], *, name: str | None = None) -> Self:
        """Make one topic of several: their tokens, shares and priors are added.

        Parameters
        ----------
        topics : sequence of int
            At least two. The merged topic has the place of the first; later ones move up.
        name : str, optional
            Of the merged topic; by default that of its largest part that has one.

        Returns
        -------
        self
        """
        places = sorted({self._topic_number(topic, "topics") for topic in topics})
        if len(places) < 2:
            raise ValueError(f"topics must be at least two different topics, got {list(topics)!r}")
        others = [[topic] for topic in range(len(self.topic_word_)) if topic not in places]
        edit = {"edit": "merge", "topics": places} | ({} if name is None else {"name": name})
        with restored_on_failure(self):
            self._regroup([places, *others], edit)
            if name is not None:
                self.topic_names_ = self._names_so_far()
                self.topic_names_[places[0]] = checked_name(name)
        return self

    @interruptible(method=True)
    def reduce(self, n_topics: int, *, cost: Literal["jensen_shannon", "likelihood"] = "jensen_shannon") -> Self:
        """Merge topics until so many are left, always the two that lose least.

        Parameters
        ----------
        n_topics : int
        cost : {"jensen_shannon", "likelihood"}, default="jensen_shannon"
            What a merger loses; see :func:`pluri.topics.agglomeration.agglomerate`.

        Returns
        -------
        self
        """
        from pluri.topics.agglomeration.mergers import mergers_of

        check_count(n_topics, "n_topics")
        mergers = mergers_of(self, cost)
        if n_topics > mergers.n_topics:
            raise ValueError(f"n_topics must be at most the number of topics ({mergers.n_topics}), got {n_topics}")
        groups = mergers.groups(n_topics)
        return self._regroup(groups, {"edit": "reduce", "n_topics": int(n_topics), "groups": groups})

    @interruptible(method=True)
    def drop(self, topic: int, X: Any = None) -> Self:
        """Take a topic away; its tokens go to the topics that explain them best without it.

        Parameters
        ----------
        topic : int
            Later topics move up.
        X : array-like or sparse matrix of shape (n_documents, n_words), optional
            Documents, by which tokens then go to the other topics of their documents. Without them they go by their
            words alone.

        Returns
        -------
        self
        """
        place, n_topics = self._topic_number(topic), len(self.topic_word_)
        if n_topics == 1:
            raise ValueError("topic must not be the only one, got a model of one topic")
        counts = self._word_counts()
        moved = self._moved(place, counts, X)
        became = np.where(np.arange(n_topics) == place, -1, np.arange(n_topics) - (np.arange(n_topics) > place))
        step = topic_step(self, became, np.zeros(n_topics, dtype=bool))
        total, gone = counts[place].sum(), self.topic_weight_[place]
        gained = gone * moved.sum(axis=1) / total if total > 0 else np.zeros(n_topics - 1)
        self._remember({"edit": "drop", "topic": place}, step)
        self._store_topics(
            np.delete(self.components_, place, axis=0) + moved,
            np.zeros(n_topics - 1, dtype=bool),
            np.delete(self.topic_weight_, place) + gained,
            np.delete(self._prior_vector(), place),
            _rows_left(self.topic_word_prior_, place),
        )
        for attribute in ("topic_names_", "examples_"):
            if hasattr(self, attribute):
                left = list(getattr(self, attribute))
                del left[place]
                setattr(self, attribute, left)
        return self

    @interruptible(method=True)
    def split(self, topic: int, X: Any, *, into: int = 2, random_state: RandomState = None) -> Self:
        """Divide a topic: the tokens that documents have of it are given to new topics, found among them alone.

        Parameters
        ----------
        topic : int
            It keeps its number for the largest part; the others come after all topics.
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Documents to look for parts in.
        into : int, default=2
            Number of parts.
        random_state : int, Generator, RandomState or None
            By default that of the model.

        Returns
        -------
        self
        """
        place = self._topic_number(topic)
        check_value(into, "into", Whole(2))
        documents = check_documents(self, X, reset=False, whom="split", empty="ignore")
        rng = as_generator(self.random_state if random_state is None else random_state)
        parts = parts_of_topic(self, place, documents, int(into), rng)
        n_topics, counts, prior = len(self.topic_word_), self._word_counts(), self._word_prior()
        rows = regrouping.divided(counts[place], parts)
        share = parts.sum(axis=1) / parts.sum()
        kept = np.arange(n_topics) != place
        step = topic_step(self, np.arange(n_topics), kept)
        self._remember({"edit": "split", "topic": place, "into": int(into)}, step)

        def widened(values: Array, own: Array) -> Array:
            values = np.concatenate([values, own[1:]])
            values[place] = own[0]
            return values

        eta = np.asarray(self.topic_word_prior_)
        if eta.ndim == 2:
            eta = widened(eta, np.repeat(eta[place][None], into, axis=0))
        own_prior = np.broadcast_to(prior, self.components_.shape)[place]
        self._store_topics(
            widened(self.components_, rows + own_prior),
            np.concatenate([kept, np.zeros(into - 1, dtype=bool)]),
            widened(self.topic_weight_, self.topic_weight_[place] * share),
            widened(self._prior_vector(), self._prior_vector()[place] * share),
            eta,
        )
        if hasattr(self, "topic_names_"):
            self.topic_names_ = [*self._names_so_far(), *[None] * (into - 1)]
            self.topic_names_[place] = None
        if hasattr(self, "examples_"):
            examples = [*self.examples_, *([] for _ in range(into - 1))]
            examples[place] = []
            self.examples_ = examples
        return self

    @interruptible(method=True)
    def pin(self, topic: int, words: Iterable[Any], *, strength: float = 100.0) -> Self:
        """Tell a topic words that it must have, as if each had been seen in it `strength` times more.

        Parameters
        ----------
        topic : int
        words : iterable of str or int
            Words, or columns.
        strength : float, default=100.0

        Returns
        -------
        self
        """
        from pluri.topics.lda.guided import column_of_word

        place = self._topic_number(topic)
        if isinstance(words, str):
            raise ValueError(f"words must be a list of words, got the string {words!r}")
        check_value(strength, "strength", Number(above=0))
        n_topics, n_words = self.topic_word_.shape
        known = getattr(self, "vocabulary_", getattr(self, "feature_names_in_", None))
        columns = None if known is None else {str(word): column for column, word in enumerate(known)}
        listed = list(words)
        chosen = sorted({column_of_word(word, columns, n_words, "words") for word in listed})
        if not chosen:
            raise ValueError("words must have at least one word, got none")
        kept = np.arange(n_topics) != place
        told = [word if isinstance(word, str) else int(word) for word in listed]
        edit = {"edit": "pin", "topic": place, "words": told, "strength": float(strength)}
        self._remember(edit, topic_step(self, np.arange(n_topics), kept))
        components = self.components_.copy()
        components[place, chosen] += strength
        eta = np.asarray(self.topic_word_prior_)
        if self._seeds_in_prior:
            eta = np.array(np.broadcast_to(eta, (n_topics, n_words)))
            eta[place, chosen] += strength
        self._store_topics(components, kept, self.topic_weight_, self._prior_vector(), eta)
        return self

    #: Whether eta may differ between topics, so that pinned words are told from counted ones.
    _seeds_in_prior = True

    def _word_prior(self) -> Array:
        """The part of `components_` that is prior: a number, or an array that fits."""
        return np.asarray(self.topic_word_prior_, dtype=np.float64)

    def _word_counts(self) -> Array:
        """Tokens of each word in each topic."""
        return np.maximum(self.components_ - self._word_prior(), 0.0)

    def _undo_steps_of_topics(self) -> list[dict[str, Any]]:
        """Steps that changed more than names."""
        return [step for step in getattr(self, "_undo_steps", []) if "became" in step]

    def _regroup(self, groups: list[list[int]], edit: dict[str, Any]) -> Self:
        """Merge topics in groups; those alone in theirs stay as they are."""
        n_topics = len(self.topic_word_)
        became = regrouping.became_of_groups(groups, n_topics)
        alone = np.bincount(became)[became] == 1
        step = topic_step(self, became, alone)
        eta, examples = np.asarray(self.topic_word_prior_), getattr(self, "examples_", None)
        prior = np.asarray(self._word_prior())
        new_prior = regrouping.largest(prior, became) if prior.ndim == 2 else prior
        components = regrouping.sums(self._word_counts(), became) + new_prior
        components[became[alone]] = self.components_[alone]
        kept = np.zeros(len(components), dtype=bool)
        kept[became[alone]] = True
        weight, alpha = (regrouping.sums(values, became) for values in (self.topic_weight_, self._prior_vector()))
        old = self.topic_weight_
        self._remember(edit, step)
        words = np.empty_like(components)
        words[became[alone]] = self.topic_word_[alone]
        self._store_topics(
            components, kept, weight, alpha, regrouping.largest(eta, became) if eta.ndim == 2 else eta, words
        )
        if hasattr(self, "topic_names_"):
            self.topic_names_ = joined_names(self.topic_names_, old, became)
        if examples is not None:
            self.examples_ = [
                examples[group[0]] if len(group) == 1 else joined_examples([examples[topic] for topic in group])
                for group in sorted(groups, key=min)
            ]
        return self

    def _store_topics(
        self, components: Array, kept: NDArray[np.bool_], weight: Array, alpha: Array, eta: Any, words: Any = None
    ) -> None:
        """Set what was edited; rows that are kept have the distributions that they had."""
        if words is None:
            words = np.empty_like(components)
            if kept.any():
                words[kept] = self.topic_word_[np.flatnonzero(kept)]
        words[~kept] = components[~kept] / components[~kept].sum(axis=1, keepdims=True)
        self.components_, self.topic_word_, self.topic_weight_ = components, words, weight
        self.doc_topic_prior_ = alpha
        self.topic_word_prior_ = float(eta) if np.ndim(eta) == 0 else np.asarray(eta)
        if hasattr(self, "n_components"):
            self.n_components = len(components)

    def _moved(self, place: int, counts: Array, X: Any) -> Array:
        """Where the tokens of a topic that is dropped go."""
        if X is None:
            return regrouping.moved_by_words(counts, self.topic_word_, self.topic_weight_, place)
        from pluri.topics.expected_shares import expected_shares

        documents = check_documents(self, X, whole=False, reset=False, whom="drop", empty="ignore")
        alpha, words = np.maximum(self._prior_vector(), 1e-8), self.topic_word_
        shares = expected_shares(words, alpha, documents)
        without = expected_shares(np.delete(words, place, axis=0), np.delete(alpha, place), documents)
        return regrouping.moved_by_documents(counts, words, self.topic_weight_, place, documents, shares, without)


def _rows_left(eta: Any, place: int) -> Any:
    return np.delete(eta, place, axis=0) if np.ndim(eta) == 2 else eta
