"""How many topics: the estimator that tries several numbers and keeps the one it recommends."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, MetaEstimatorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pluri.topics.documents import check_documents
from pluri.topics.number.candidates import Judged, judge
from pluri.topics.number.recommendation import reasons, recommended, sweep, table_of, telling
from pluri.topics.number.settings import folds_of, numbers_of, rows_of, starting_from, template_of
from pluri.validation import (
    Allowed,
    Number,
    Only,
    RandomState,
    Whole,
    as_generator,
    check_parameters,
    is_source,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
#: Documents that there must be for each topic of the largest number that is tried.
DOCUMENTS_PER_TOPIC = 5


class TopicSearchCV(MetaEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Search for the largest number of topics that can be relied on.

    For each number, models of separate parts of the documents are compared: how many topics of one are *found again* in
    the other? If there is a number beyond which held-out documents are predicted worse, the topics that are found again
    of so many are recommended: somewhat too many are needed to find all that are there. On text the likelihood rises
    almost without end; then it is the number where those found again most exceed those that are not (a topic more is
    worth it if it is likelier than not to be found again).

    Parameters
    ----------
    estimator : LatentDirichletAllocation, optional
        Whose settings are used; by default Gibbs sampling with learned priors and 150 sweeps, and for the final model
        the better of two chains of 300.
    n_components : sequence of int, int or "auto", default="auto"
        Numbers to try, of which the one nearest to the topics found again is recommended. "auto" begins with 2, 4, 8,
        ... until held-out documents are no longer predicted better, and then looks closer around the best.
    max_components : int, default=200
        Largest number that "auto" tries, if there are five documents for each topic.
    cv : int or splitter, default=2
        Parts of the documents. With two, the models that are compared have no document in common.
    likeness : float, default=0.5
        Topics are like each other if the cosine of what they have above the mean of all topics is larger.
    max_documents : int, optional, default=20000
        Numbers are compared on so many documents, drawn at random, if there are more; the final model learns from all.
    refit : bool, default=True
        Whether to fit the recommended number on all documents.
    n_jobs : int, optional
        Models fitted at a time, in threads.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 tells of each number that was tried, on stderr.

    Attributes
    ----------
    n_components_ : int
        The number that is recommended.
    reasons_ : list of str
        Why, in sentences.
    first_topics_ : array of shape (at most n_components_, n_words)
        Topics that were found again, the largest first; the final model begins with them.
    best_estimator_ : LatentDirichletAllocation
        Fitted on all documents, if `refit`.
    best_params_ : dict
        The same, as of scikit-learn's searches.
    best_index_, best_score_ : int and float
        Place in `cv_results_` of the number that the recommendation follows from, and its held-out log likelihood per
        word.
    cv_results_ : dict of arrays
        One entry for each number that was tried, in increasing order: ``param_n_components``; ``mean_test_score``
        (held-out log likelihood per word); ``gain_per_topic`` and ``gain_error`` (nats per document that each topic
        more has gained since the number before, and its standard error); ``found_again`` (topics) and
        ``found_again_share``; ``coherence`` (mean NPMI); ``redundancy`` (share of topics like another one);
        ``smallest_share`` and ``largest_share`` (of the tokens); ``surplus`` (found again minus not).

    Notes
    -----
    On documents drawn from latent Dirichlet allocation with 5, 10, 20 and 50 topics the recommendation is compared with
    the truth by ``benchmarks/accuracy/number_of_topics.py``, which prints it for real corpora too. There no number is
    true; the recommended one says how fine a division the documents support. Fewer topics may be easier to read: see
    :class:`~pluri.topics.TopicTree` and :meth:`LatentDirichletAllocation.reduce`.

    Examples
    --------
    >>> from pluri.datasets import make_topic_documents
    >>> from pluri.topics import TopicSearchCV
    >>> data = make_topic_documents(
    ...     n_documents=200, n_words_per_document=60, n_words=100, n_topics=4, doc_topic_prior=0.2,
    ...     topic_word_prior=0.05, random_state=0,
    ... )
    >>> search = TopicSearchCV(n_components=[2, 3, 4, 5, 6], random_state=0).fit(data.counts)
    >>> search.n_components_
    4
    >>> print(search.reasons_[0])
    4 topics are recommended, after 5 numbers from 2 to 6 were tried on 200 documents.
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "max_components": Whole(1), "likeness": Number(0, 1), "max_documents": Whole(2) | Only(None),
    }  # fmt: skip

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_components: Sequence[int] | int | Literal["auto"] = "auto",
        max_components: int = 200,
        cv: Any = 2,
        likeness: float = 0.5,
        max_documents: int | None = 20_000,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.max_components = max_components
        self.cv = cv
        self.likeness = likeness
        self.max_documents = max_documents
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Try numbers of topics, and fit the recommended one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Whole counts of words.
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        template, numbers = template_of(self), numbers_of(self)
        if is_source(X):
            raise ValueError("X must be documents in memory, got a source: give some of them")
        with restored_on_failure(self):
            counts = check_documents(self, X)
            rng = as_generator(self.random_state)
            rows = rows_of(self, counts, rng)
            some, seed = counts[rows], int(rng.integers(2**31))
            folds = folds_of(self, some, rng)

            def judged(number: int) -> Judged:
                one = judge(template, number, some, folds, likeness=float(self.likeness), seed=seed, n_jobs=self.n_jobs)
                if self.verbose:
                    told = f"{one.found_again:.3g} found again, {one.per_word:.4f} per held-out word"
                    print(f"{number} topics: {told}", file=sys.stderr, flush=True)
                return one

            if numbers is None:
                most = max(2, min(self.max_components, some.shape[0] // DOCUMENTS_PER_TOPIC))
                candidates = sweep(judged, most)
            else:
                candidates = [judged(number) for number in numbers]
            self._store(candidates, numbers, some.shape[0])
            self.__dict__.pop("best_estimator_", None)
            if self.refit:
                final = template_of(self, final=True)
                final.set_params(n_components=self.n_components_, random_state=int(rng.integers(2**31)))
                with starting_from(final, self.first_topics_):
                    self.best_estimator_ = final.fit(X)
        return self

    def transform(self, X: Any) -> Array:
        """Share of each topic of the recommended model in each document."""
        shares: Array = self._best().transform(X)
        return shares

    def score(self, X: Any, y: Any = None) -> float:
        """Score of documents under the recommended model: that of its own method ``score``."""
        return float(self._best().score(X))

    def _best(self) -> Any:
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("TopicSearchCV has a model of the recommended number of topics only with refit=True")
        return self.best_estimator_

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def summary(self) -> str:
        """The recommendation, its reasons, and a table of all numbers that were tried; plain text."""
        check_is_fitted(self, "cv_results_")
        return "\n".join([" ".join(self.reasons_), "", *table_of(self.cv_results_, self.best_index_)])

    def _store(self, candidates: list[Judged], numbers_listed: list[int] | None, n_documents: int) -> None:
        gains = [(np.nan, np.nan), *(b.gain_over(a) for a, b in itertools.pairwise(candidates))]
        scores = np.array([one.per_word for one in candidates])
        again = np.array([one.found_again for one in candidates])
        numbers = np.array([one.n_components for one in candidates])
        self.cv_results_ = {
            "params": [{"n_components": one.n_components} for one in candidates],
            "param_n_components": numbers,
            "mean_test_score": scores,
            "gain_per_topic": np.array([gain for gain, _ in gains]),
            "gain_error": np.array([error for _, error in gains]),
            "found_again": again,
            "found_again_share": again / numbers,
            "coherence": np.array([one.coherence for one in candidates]),
            "redundancy": np.array([one.redundancy for one in candidates]),
            "smallest_share": np.array([one.smallest for one in candidates]),
            "largest_share": np.array([one.largest for one in candidates]),
            "surplus": np.array([one.surplus for one in candidates]),
        }
        self.best_index_ = candidates.index(telling(candidates))
        self.n_components_ = recommended(candidates, numbers_listed)
        self.best_params_, self.best_score_ = {"n_components": self.n_components_}, float(scores[self.best_index_])
        found = telling(candidates).topics
        self.first_topics_ = None if found is None else np.array(found[: self.n_components_])
        self.reasons_ = reasons(candidates, self.n_components_, n_documents)

    def _check_fitted_state(self) -> None:
        """Raise a ValueError if what was learned does not fit together, as in a file that was changed by hand."""
        if not hasattr(self, "cv_results_"):
            return
        n_tried = len(self.cv_results_["params"])
        for name, values in self.cv_results_.items():
            if len(values) != n_tried:
                raise ValueError(
                    f"cv_results_[{name!r}] must have an entry for each of {n_tried} numbers, got {len(values)}"
                )
        if not isinstance(self.best_index_, int | np.integer) or not 0 <= self.best_index_ < n_tried:
            raise ValueError(f"best_index_ must lie between 0 and {n_tried - 1}, got {self.best_index_!r}")
        if not isinstance(self.n_components_, int | np.integer) or self.n_components_ < 1:
            raise ValueError(f"n_components_ must be a whole number of at least 1, got {self.n_components_!r}")
        topics = getattr(self, "first_topics_", None)
        if topics is not None and (np.ndim(topics) != 2 or not len(topics) <= self.n_components_):
            raise ValueError(f"first_topics_ must be at most {self.n_components_} topics, got shape {np.shape(topics)}")
        if hasattr(self, "best_estimator_"):
            self.best_estimator_._check_fitted_state()
            if len(self.best_estimator_.topic_word_) != self.n_components_:
                raise ValueError(f"best_estimator_ must have {self.n_components_} topics, got another number")


def choose_n_topics(X: Any, estimator: Any = None, **settings: Any) -> TopicSearchCV:
    """How many topics documents support: a :class:`TopicSearchCV` that has tried numbers of them and kept no model.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
    estimator : LatentDirichletAllocation, optional
    **settings
        Of :class:`TopicSearchCV`.

    Returns
    -------
    TopicSearchCV

    Examples
    --------
    >>> from pluri.datasets import make_topic_documents
    >>> from pluri.topics import choose_n_topics
    >>> data = make_topic_documents(
    ...     n_documents=200, n_words_per_document=60, n_words=100, n_topics=4, doc_topic_prior=0.2,
    ...     topic_word_prior=0.05, random_state=0,
    ... )
    >>> choose_n_topics(data.counts, n_components=[3, 4, 5], random_state=0).n_components_
    4
    """
    return TopicSearchCV(estimator, refit=False, **settings).fit(X)
