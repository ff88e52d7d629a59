"""What a search for the number of topics was asked for: the model, the numbers, the documents and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv

from pluri.topics.lda import LatentDirichletAllocation

if TYPE_CHECKING:
    from pluri.topics.number.search import TopicSearchCV

#: Sweeps of the models that are compared: enough to tell numbers of topics apart.
WARMUP, DRAWS, THIN = 100, 5, 10
#: Chains of the final model, of which the likeliest is kept.
CHAINS = 2


def template_of(search: TopicSearchCV, final: bool = False) -> Any:
    """The model whose settings are used, of the comparison or of the final fit."""
    if search.estimator is None:
        length: dict[str, Any] = {"n_chains": CHAINS} if final else {"n_warmup": WARMUP, "n_draws": DRAWS, "thin": THIN}
        return LatentDirichletAllocation(inference="gibbs", doc_topic_prior="learn", topic_word_prior="learn", **length)
    if not isinstance(search.estimator, LatentDirichletAllocation):
        raise TypeError(f"estimator must be a LatentDirichletAllocation or None, got {type(search.estimator).__name__}")
    return clone(search.estimator)


@contextmanager
def starting_from(model: Any, topics: Any) -> Iterator[None]:
    """Have a model begin with given topics, if there are enough of them and it has no seed words; settings stay."""
    if topics is None or len(topics) != model.n_components or model.seed_words is not None:
        yield
        return
    before = model.init
    model.set_params(init=np.asarray(topics, dtype=np.float64))
    try:
        yield
    finally:
        model.set_params(init=before)


def numbers_of(search: TopicSearchCV) -> list[int] | None:
    """Numbers to try, in increasing order; None if they are to be found."""
    given = search.n_components
    if isinstance(given, str):
        if given != "auto":
            raise ValueError(f"n_components must be whole numbers or 'auto', got {given!r}")
        return None
    listed = np.atleast_1d(np.asarray(given, dtype=object))
    good = [isinstance(one, int | np.integer) and not isinstance(one, bool) and one >= 1 for one in listed.flat]
    if listed.ndim != 1 or not len(listed) or not all(good):
        raise ValueError(f"n_components must be whole numbers of at least 1, or 'auto', got {given!r}")
    return sorted({int(one) for one in listed})


def rows_of(search: TopicSearchCV, counts: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Documents with words, or as many of them as numbers are compared on."""
    filled = np.flatnonzero(np.diff(counts.indptr))
    if search.max_documents is None or len(filled) <= search.max_documents:
        return filled
    return np.sort(rng.choice(filled, int(search.max_documents), replace=False))


def folds_of(
    search: TopicSearchCV, counts: Any, rng: np.random.Generator
) -> list[tuple[NDArray[np.int_], NDArray[np.int_]]]:
    """Rows to learn from and rows to predict, for each part of the documents."""
    cv = search.cv
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= counts.shape[0]:
            allowed = f"at least 2 and at most the number of documents with words ({counts.shape[0]})"
            raise ValueError(f"cv must be {allowed}, got {cv}")
        cv = KFold(int(cv), shuffle=True, random_state=int(rng.integers(2**31)))
    folds = [(np.asarray(train), np.asarray(test)) for train, test in check_cv(cv).split(counts)]
    if len(folds) < 2 or len(np.unique(np.concatenate([test for _, test in folds]))) != counts.shape[0]:
        raise ValueError("cv must have at least two parts, and every document in one of them, got others")
    return folds
