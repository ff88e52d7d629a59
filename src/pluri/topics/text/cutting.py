"""Texts cut into words: by a pattern, without stop words, with phrases, and where there are no spaces between words.

Chinese, Japanese, Thai, Lao, Khmer and Burmese put no spaces between words. Runs of their letters are cut into
overlapping pairs of characters, which serve topics well and need nothing; or by a segmenter that is installed besides.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

#: A word begins with a letter and has at least two characters: no numbers.
TOKEN = r"(?u)\b[^\W\d_]\w+\b"
#: Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0002ffff"
)
RUN = re.compile(f"[{UNSPACED}]+")
#: Segmenters, what they are for, and how they are asked.
SEGMENTERS = {"jieba": "Chinese", "janome": "Japanese", "pythainlp": "Thai"}


class _Ready(NamedTuple):
    """What follows from the settings of a cutter."""

    find: Callable[[str], list[str]]
    stopped: frozenset[str]
    starts: dict[str, list[tuple[str, ...]]]


@dataclass(frozen=True, eq=False)
class WordCutter:
    """Cuts a text into words; the ``analyzer`` of scikit-learn's vectorizers, and as safe in files as they are.

    Parameters
    ----------
    pattern : str
        Regular expression of a word; by default two or more characters of which the first is a letter.
    lowercase : bool, default=True
    stop_words : sequence of str
        Left out after phrases were joined.
    phrases : sequence of str
        Words that stand one after the other and count as one, such as "new york"; see :func:`find_phrases`.
    n_grams : int, default=1
        All sequences of up to so many words are words too.
    segmenter : {"auto", "none", "jieba", "janome", "pythainlp"}, default="auto"
        For text without spaces between words. "auto": overlapping pairs of characters in Chinese, Japanese, Thai, Lao,
        Khmer and Burmese; the others are packages to be installed, for Chinese, Japanese and Thai.
    tokenizer : callable, optional
        A function of your own from a text to a list of words, instead of pattern and segmenter. It is not part of a
        file: see `trusted` of :func:`pluri.save`.

    Examples
    --------
    >>> from pluri.topics import WordCutter
    >>> WordCutter(stop_words=["the"], phrases=["new york"])("The New York of 1920, the city")
    ['new york', 'of', 'city']
    >>> WordCutter()("東京タワー is high")
    ['東京', '京タ', 'タワ', 'ワー', 'is', 'high']
    """

    pattern: str = TOKEN
    lowercase: bool = True
    stop_words: Sequence[str] = ()
    phrases: Sequence[str] = ()
    n_grams: int = 1
    segmenter: str = "auto"
    tokenizer: Callable[[str], list[str]] | None = None

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse settings that mean nothing."""
        if self.segmenter not in ("auto", "none", *SEGMENTERS):
            raise ValueError(f"segmenter must be one of auto, none, {', '.join(SEGMENTERS)}, got {self.segmenter!r}")
        if not isinstance(self.n_grams, int) or self.n_grams < 1:
            raise ValueError(f"n_grams must be a whole number of at least 1, got {self.n_grams!r}")
        for name in ("stop_words", "phrases"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a sequence of words, got the text {getattr(self, name)!r}")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"pattern must be a regular expression, got {self.pattern!r}: {error}") from error

    def _check_fitted_state(self) -> None:
        """Raise a ValueError if a file was changed by hand."""
        self.check()

    def __call__(self, text: str) -> list[str]:
        """The words of a text, in their order."""
        words = self.tokens(text)
        stopped = _ready(self).stopped
        words = [word for word in words if word not in stopped] if stopped else words
        if self.n_grams == 1:
            return words
        longer = [
            " ".join(words[begin : begin + n])
            for n in range(2, self.n_grams + 1)
            for begin in range(len(words) - n + 1)
        ]
        return words + longer

    def tokens(self, text: str) -> list[str]:
        """Words with phrases joined, before stop words are left out."""
        if not isinstance(text, str):
            raise ValueError(f"a text must be a str, got {text!r}; a missing one may be ''")
        if self.lowercase:
            text = text.lower()
        if self.tokenizer is not None:
            words = list(self.tokenizer(text))
        elif self.segmenter in SEGMENTERS:
            words = [word for word in segmented(text, self.segmenter) if _ready(self).find(word)]
        else:
            words = _ready(self).find(text)
            if self.segmenter == "auto" and RUN.search(text):
                words = [part for word in words for part in pairs(word)]
        return self._joined(words) if self.phrases else words

    def _joined(self, words: list[str]) -> list[str]:
        found, place, starts = [], 0, _ready(self).starts
        while place < len(words):
            for parts in starts.get(words[place], ()):
                if tuple(words[place : place + len(parts)]) == parts:
                    found.append(" ".join(parts))
                    place += len(parts)
                    break
            else:
                found.append(words[place])
                place += 1
        return found


#: Made when a cutter is first used, and gone with it: files have its settings only.
_MADE: WeakKeyDictionary[WordCutter, _Ready] = WeakKeyDictionary()


def _ready(cutter: WordCutter) -> _Ready:
    if cutter not in _MADE:
        starts: dict[str, list[tuple[str, ...]]] = {}
        for phrase in sorted(cutter.phrases, key=lambda phrase: -len(phrase.split())):
            parts = tuple(phrase.split())
            starts.setdefault(parts[0], []).append(parts)
        _MADE[cutter] = _Ready(re.compile(cutter.pattern).findall, frozenset(cutter.stop_words), starts)
    return _MADE[cutter]


def pairs(word: str) -> list[str]:
    """Overlapping pairs of characters of the runs that have no spaces, and the rest as it is.

    Examples
    --------
    >>> from pluri.topics.text.cutting import pairs
    >>> pairs("今日はabc"), pairs("plain")
    (['今日', '日は', 'abc'], ['plain'])
    """
    found, last = [], 0
    for run in RUN.finditer(word):
        found.append(word[last : run.start()])
        text = run[0]
        found += [text[place : place + 2] for place in range(max(len(text) - 1, 1))]
        last = run.end()
    found.append(word[last:])
    return [part for part in found if len(part) > 1]


def segmented(text: str, segmenter: str) -> list[str]:
    """Words of a text by an installed segmenter."""
    try:
        if segmenter == "jieba":
            return list(import_module("jieba").lcut(text))
        if segmenter == "janome":
            return list(_janome().tokenize(text, wakati=True))
        return list(import_module("pythainlp.tokenize").word_tokenize(text, keep_whitespace=False))
    except ImportError as missing:
        raise ImportError(
            f"segmenter {segmenter!r} ({SEGMENTERS[segmenter]}) needs its package: pip install {segmenter}; segmenter "
            "'auto' cuts such text into pairs of characters, and needs nothing"
        ) from missing


def _janome() -> Any:
    """Janome's tokenizer, which takes a second to make."""
    if "janome" not in _READY:
        _READY["janome"] = import_module("janome.tokenizer").Tokenizer()
    return _READY["janome"]


_READY: dict[str, Any] = {}


def each_text(texts: Iterable[Any]) -> Iterator[str]:
    """Texts of a list or of a column of a data frame, one after the other; nothing where one is missing."""
    if isinstance(texts, str):
        raise ValueError(f"texts must be several, got one: {texts[:40]!r}")
    if hasattr(texts, "columns"):
        names = ", ".join(repr(name) for name in list(texts.columns)[:5])
        raise ValueError(f"texts must be one column of texts, got a table with the columns {names}")
    for row, text in enumerate(texts):
        if isinstance(text, str):
            yield text
        elif text is None or text is getattr(sys.modules.get("pandas"), "NA", None) or text != text:
            yield ""
        else:
            raise ValueError(f"texts must be texts, got {text!r} in row {row}")
