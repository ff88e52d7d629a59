"""Names of topics, and the list of all edits with a way back: what every topic model has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.topics.editing.history import name_step, take_back
from pluri.validation.interruption import interruptible

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicNode


#: Documents that a merged topic shows.
MOST_EXAMPLES = 5


class NamedTopics:
    """Mixin: topics that can be given names.

    `topic_names_` has the name of each topic, or None; `edits_` what was done, in the form of the file of edits
    (:func:`pluri.topics.apply_edits`). Both are saved with the model; a new fit forgets them.
    """

    topic_names_: list[str | None]
    edits_: list[dict[str, Any]]
    _undo_steps: list[dict[str, Any]]

    @interruptible(method=True)
    def rename(self, topic: int, name: str | None) -> Self:
        """Give a topic a name, which tables, pictures and pages then show.

        Parameters
        ----------
        topic : int
        name : str or None
            None takes its name away.

        Returns
        -------
        self
        """
        place = self._topic_number(topic)
        names = self._names_so_far()
        names[place] = checked_name(name)
        return self._name_all(names, {"edit": "rename", "topic": place, "name": name})

    @interruptible(method=True)
    def label_with(self, name_topic: Callable[[TopicNode], str | None], *, n_words: int = 10) -> Self:
        """Give all topics names that a function makes up: of one's own, or of a language model that it asks.

        Parameters
        ----------
        name_topic : callable
            Called with a :class:`~pluri.topics.TopicNode` for each topic: `words`, `probabilities`, `weight` (share of
            the tokens) and, after :meth:`keep_examples`, `examples`. It returns the name; None leaves the topic as it
            is. If it fails, no name is changed.
        n_words : int, default=10
            Words that it is told.

        Returns
        -------
        self

        Examples
        --------
        >>> from pluri.topics import LatentDirichletAllocation
        >>> X = [[4, 4, 0, 0], [0, 0, 4, 4]] * 20
        >>> model = LatentDirichletAllocation(2, inference="gibbs", random_state=0).fit(X)
        >>> model = model.name_words(["ice", "goal", "vote", "law"])
        >>> sorted(model.label_with(lambda topic: " and ".join(sorted(topic.words[:2]))).topic_names_)
        ['goal and ice', 'law and vote']
        """
        check_is_fitted(self, "topic_word_")
        if not callable(name_topic):
            raise TypeError(f"name_topic must be a function of a topic, got {type(name_topic).__name__}")
        names = self._names_so_far()
        for node in self.topic_graph(n_words).nodes:  # type: ignore[attr-defined]
            name = name_topic(node)
            if not (name is None or (isinstance(name, str) and name.strip())):
                raise ValueError(f"name_topic must return a text that is not empty, or None, got {name!r}")
            names[node.index] = names[node.index] if name is None else name.strip()
        return self._name_all(names, {"edit": "label", "names": list(names)})

    @interruptible(method=True)
    def undo(self) -> Self:
        """Take the last edit back: names, words, sizes and priors are again what they were.

        Returns
        -------
        self
        """
        check_is_fitted(self, "topic_word_")
        if not getattr(self, "_undo_steps", []):
            raise ValueError("undo must follow an edit of this fit, got none that is left")
        step = self._undo_steps[-1]
        take_back(self, step)
        self.edits_, self._undo_steps = self.edits_[:-1], self._undo_steps[:-1]
        return self

    def _names_so_far(self) -> list[str | None]:
        """Names so far, in a list of its own."""
        n_topics = len(self.topic_word_)  # type: ignore[attr-defined]
        return list(getattr(self, "topic_names_", [None] * n_topics))

    def _name_all(self, names: list[str | None], edit: dict[str, Any]) -> Self:
        self._remember(edit, name_step(self))
        self.topic_names_ = names
        return self

    def _remember(self, edit: dict[str, Any], step: dict[str, Any]) -> None:
        """Write an edit down; lists are replaced, so that a copy of the model made before keeps its own."""
        self.edits_ = [*getattr(self, "edits_", []), edit]
        self._undo_steps = [*getattr(self, "_undo_steps", []), step]

    def _topic_number(self, topic: Any, name: str = "topic") -> int:
        """A topic's number, checked."""
        check_is_fitted(self, "topic_word_")
        n_topics = len(self.topic_word_)  # type: ignore[attr-defined]
        whole = isinstance(topic, int | np.integer) and not isinstance(topic, bool)
        if not whole or not 0 <= topic < n_topics:
            raise ValueError(f"{name} must be a whole number from 0 to {n_topics - 1}, got {topic!r}")
        return int(topic)


def checked_name(name: Any) -> str | None:
    """A name, or None."""
    if not (name is None or (isinstance(name, str) and name.strip())):
        raise ValueError(f"name must be a text that is not empty, or None, got {name!r}")
    return name


def joined_names(names: list[str | None], weight: NDArray[np.float64], became: NDArray[np.int64]) -> list[str | None]:
    """Of topics that were merged, the name of the largest that has one."""
    joined: list[str | None] = [None] * (int(became.max()) + 1)
    for topic in np.argsort(weight, kind="stable"):
        if names[topic] is not None:
            joined[became[topic]] = names[topic]
    return joined


def joined_examples(lists: list[Any]) -> list[Any]:
    """Documents of several topics by their share of all of them together, as far as it is known."""
    found: dict[int, list[Any]] = {}
    for title, excerpt, share, document in (example for one in lists for example in one):
        known = found.setdefault(document, [title, excerpt, 0.0, document])
        known[2] += share
    best = sorted(found.values(), key=lambda row: (-row[2], row[3]))[:MOST_EXAMPLES]
    return [(title, excerpt, min(share, 1.0), document) for title, excerpt, share, document in best]
