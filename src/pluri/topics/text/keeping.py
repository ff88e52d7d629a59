"""A vectorizer that is kept with a model, and saved with it: texts go in, counts come out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.topics.documents import words_of_columns
from pluri.topics.text.cutting import each_text


class KeepsVectorizer:
    """Base of topic models: how texts become their counts."""

    topic_word_: Any
    vocabulary_: Any

    def keep_vectorizer(self, vectorizer: Any) -> Self:
        """Keep the vectorizer that made the counts, and its words; both are saved with the model.

        Parameters
        ----------
        vectorizer : CountVectorizer
            Fitted, with as many words as the model. A tokenizer that is a function of your own is not part of a file:
            see `trusted` of :func:`pluri.save`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "topic_word_")
        if not hasattr(vectorizer, "transform") or not hasattr(vectorizer, "get_feature_names_out"):
            raise TypeError(f"vectorizer must be a fitted CountVectorizer, got {type(vectorizer).__name__}")
        self.vocabulary_ = words_of_columns(vectorizer, self.topic_word_.shape[1], "vectorizer")
        self.vectorizer_ = vectorizer
        return self

    def count_texts(self, texts: Iterable[str]) -> Any:
        """Counts of the words of texts, as the model takes them; needs :meth:`keep_vectorizer`.

        Parameters
        ----------
        texts : iterable of str
            A list, or a column of pandas or polars.

        Returns
        -------
        csr matrix of shape (n_texts, n_words)
        """
        return self._vectorizer().transform(as_texts(texts))

    def count_unknown_words(self, texts: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Words of each text that the model does not know, and all of them; phrases by n-grams do not count.

        Parameters
        ----------
        texts : iterable of str
        """
        vectorizer = self._vectorizer()
        cut, known = vectorizer.build_analyzer(), vectorizer.vocabulary_
        n_grams = getattr(vectorizer.analyzer, "n_grams", vectorizer.ngram_range[1])
        unknown, whole = [], []
        for text in as_texts(texts):
            words = cut(text)
            if n_grams > 1:
                words = [word for word in words if " " not in word]
            whole.append(len(words))
            unknown.append(sum(word not in known for word in words))
        return np.array(unknown, dtype=np.int64), np.array(whole, dtype=np.int64)

    def _vectorizer(self) -> Any:
        check_is_fitted(self, "topic_word_")
        if not hasattr(self, "vectorizer_"):
            raise ValueError("the model must have a vectorizer to count texts, got none: see keep_vectorizer")
        return self.vectorizer_


def as_texts(texts: Any) -> Sequence[str]:
    """Texts of a list or of a column of a data frame; nothing where one is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from pluri.topics.text.keeping import as_texts
    >>> as_texts(pd.Series(["ice", None, "moon"]))
    ['ice', '', 'moon']
    """
    return list(each_text(texts))
