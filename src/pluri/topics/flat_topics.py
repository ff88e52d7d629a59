"""Topic models without a hierarchy: each document has shares of the topics under a Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.topics import checked_state
from pluri.topics.documents import check_documents
from pluri.topics.topic_model import TopicModel
from pluri.validation import check_count

if TYPE_CHECKING:
    from pluri.topics.held_out import HeldOut

Array = NDArray[np.float64]


def held_out_flat(
    topic_word: Array, doc_topic_prior: Array, X: Any, method: str, rng: np.random.Generator, **options: Any
) -> HeldOut:
    """Log likelihood of documents whose shares of fixed topics have a Dirichlet distribution, by a named method.

    Parameters
    ----------
    topic_word : array of shape (n_topics, n_words)
    doc_topic_prior : array of shape (n_topics,)
    X : csr matrix
    method : {"completion", "left_to_right", "importance", "annealed", "empirical"}
    rng : Generator
    **options
        Of the method.
    """
    from pluri.topics import held_out

    methods: dict[str, Callable[..., HeldOut]] = {
        "completion": held_out.completion,
        "left_to_right": held_out.left_to_right,
        "importance": held_out.importance_sampling,
        "annealed": held_out.annealed_importance,
        "empirical": _empirical,
    }
    if method not in methods:
        raise ValueError(f"method must be one of {sorted(methods)}, got {method!r}")
    return methods[method](topic_word, doc_topic_prior, X, rng, **options)


def _empirical(
    topic_word: Array, doc_topic_prior: Array, X: Any, rng: np.random.Generator, *, n_samples: int = 2000
) -> HeldOut:
    """Average over `n_samples` documents that the model makes up."""
    from pluri.topics.held_out import empirical_likelihood

    check_count(n_samples, "n_samples")
    return empirical_likelihood(rng.dirichlet(doc_topic_prior, n_samples) @ topic_word, X)


class FlatTopicModel(TopicModel):
    """Base of topic models in which documents have shares of topics under a Dirichlet distribution.

    A fit sets, besides, `doc_topic_prior_`: a number, or one for each topic.
    """

    doc_topic_prior_: Any

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        prior = np.asarray(self.doc_topic_prior_)
        checked_state.numbers("doc_topic_prior_", prior, (n_topics,) if prior.ndim else (), least=0)

    def _prior_vector(self) -> Array:
        return np.array(np.broadcast_to(np.asarray(self.doc_topic_prior_, dtype=float), (len(self.topic_word_),)))

    def transform(self, X: Any) -> Array:
        """Share of each topic in each document: their posterior mean given the topics.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        array of shape (n_documents, n_topics)
            Rows sum to one; an empty document has the prior mean.
        """
        from pluri.topics.expected_shares import expected_shares

        check_is_fitted(self, "topic_word_")
        counts = check_documents(self, X, whole=False, reset=False, whom="transform", empty="ignore")
        return expected_shares(self.topic_word_, self._prior_vector(), counts)

    #: What a table of topics says of each besides its share and its words.
    _remark_title = ""

    def _remark(self, topic: int) -> str:
        return ""

    def summary(self, n_topics: int = 20, n_words: int = 8) -> str:
        """The largest topics with their words, on one page of plain text.

        Parameters
        ----------
        n_topics, n_words : int, default=20 and 8
            At most so many topics, and words of each.

        Returns
        -------
        str
        """
        check_is_fitted(self, "topic_word_")
        rows = self.topic_table(n_words)
        shown = rows[:n_topics]
        remarks = [self._remark(row["topic"]) for row in shown]
        width = max(map(len, [self._remark_title, *remarks]))
        gap = "  " if width else ""
        lines = [
            f"{type(self).__name__}: " + ", ".join(f"{name} {value}" for name, value in self._facts().items()),
            f"topic   share  {self._remark_title:>{width}}{gap}words",
        ]
        for row, remark in zip(shown, remarks):
            name = f"{row['name']}: " if row.get("name") else ""
            lines.append(f"{row['topic']:>5d}  {row['share']:6.1%}  {remark:>{width}}{gap}{name}{row['words']}")
        if len(rows) > len(shown):
            lines.append(f"  ... {len(rows) - len(shown)} more")
        return "\n".join(lines)

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        return held_out_flat(self.topic_word_, self._prior_vector(), X, method, rng, **options)
