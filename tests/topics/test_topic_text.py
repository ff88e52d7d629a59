"""From texts to words: what is cut, what is joined, what is left out, and what is kept in files."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import pluri
from pluri.io.archive import Unsound
from pluri.topics import LatentDirichletAllocation, WordCutter, find_phrases, stop_words
from pluri.topics.text.cutting import TOKEN
from pluri.topics.text.stop_words import LANGUAGES

TEXTS = ["The puck, on the ice! Ice-hockey 2024", "A rocket to the moon", "x 12 don't Über straße", ""]


@pytest.mark.parametrize("n_grams", [1, 2, 3])
def test_words_are_those_of_scikit_learn(n_grams):
    stopped = ["the", "on"]
    theirs = CountVectorizer(token_pattern=TOKEN, stop_words=stopped, ngram_range=(1, n_grams)).build_analyzer()
    ours = WordCutter(stop_words=stopped, n_grams=n_grams)
    for text in TEXTS:
        assert sorted(ours(text)) == sorted(theirs(text))


def test_text_without_spaces_is_cut_into_pairs_of_characters():
    cut = WordCutter()
    assert cut("我喜欢北京") == ["我喜", "喜欢", "欢北", "北京"]
    assert cut("ภาษาไทย")[:2] == ["ภา", "าษ"]
    assert cut("Python で書く") == ["python", "で書", "書く"]
    assert WordCutter(segmenter="none")("我喜欢北京") == ["我喜欢北京"]


def test_segmenters_are_asked_when_they_are_there_and_named_when_they_are_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", SimpleNamespace(lcut=lambda text: text.split("|")))
    assert WordCutter(segmenter="jieba", stop_words=["喜欢"])("我|喜欢|北京|12") == ["北京"]
    monkeypatch.setitem(sys.modules, "pythainlp.tokenize", None)
    with pytest.raises(ImportError, match=r"segmenter 'pythainlp' \(Thai\) needs its package: pip install pythainlp"):
        WordCutter(segmenter="pythainlp")("ภาษา")


def test_stop_words_of_languages(monkeypatch):
    pytest.importorskip("stopwordsiso")
    for name, code in LANGUAGES.items():
        assert len(stop_words(name)) > 20, name
        assert stop_words(code) == stop_words(name)
    assert {"und", "der"} <= set(stop_words("German"))
    with pytest.raises(ValueError, match=r"language must be one of .*german.* got 'elvish'"):
        stop_words("elvish")
    monkeypatch.setitem(sys.modules, "stopwordsiso", None)
    assert "the" in stop_words("en")
    with pytest.raises(ImportError, match=r"need stopwordsiso: pip install 'pluri\[text\]'"):
        stop_words("de")


def test_phrases_have_the_score_of_the_formula():
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in range(20)]
    texts = [" ".join(rng.choice(words, 12)) + " new york city" + " " + rng.choice(words) for _ in range(200)]
    texts += [f"new {word} of york" for word in words] * 2
    found = find_phrases(texts, max_words=2)
    tokens = [token for text in texts for token in text.split() if len(token) > 1]
    chance = 200 / len(tokens)
    parts = [tokens.count(word) / len(tokens) for word in ("new", "york")]
    assert found["new york"] == pytest.approx(np.log(chance / np.prod(parts)) / -np.log(chance), abs=1e-5)
    assert all(not phrase.startswith("w") or phrase.count("w") < 2 for phrase in found)
    longer = find_phrases(texts)
    assert "new york city" in longer
    assert WordCutter(phrases=longer)("To New York City") == ["to", "new york city"]
    assert find_phrases(texts, WordCutter(stop_words=["york"])).keys() & {"new york", "york city"} == set()
    with pytest.raises(ValueError, match="min_score must lie between -1 and 1, got 2"):
        find_phrases(texts, min_score=2)


def test_own_tokenizers_and_settings_that_mean_nothing():
    assert WordCutter(tokenizer=lambda text: text.split("-"), stop_words=["b"])("A-b-c") == ["a", "c"]
    for settings, message in [
        ({"segmenter": "spacy"}, "segmenter must be one of auto, none, jieba"),
        ({"n_grams": 0}, "n_grams must be a whole number of at least 1, got 0"),
        ({"pattern": "("}, "pattern must be a regular expression, got '\\('"),
        ({"stop_words": "the"}, "stop_words must be a sequence of words, got the text 'the'"),
    ]:
        with pytest.raises(ValueError, match=message):
            WordCutter(**settings)


@pytest.fixture
def fitted():
    texts = ["new york ice puck ice", "moon rocket moon orbit"] * 10
    vectorizer = CountVectorizer(analyzer=WordCutter(stop_words=("the",), phrases=("new york",)))
    X = vectorizer.fit_transform(texts)
    model = LatentDirichletAllocation(2, inference="gibbs", n_warmup=10, random_state=0).fit(X)
    return model.keep_vectorizer(vectorizer), vectorizer


def test_the_vectorizer_is_saved_with_the_model(fitted, tmp_path):
    model, vectorizer = fitted
    pluri.save(model, tmp_path / "model.skops")
    loaded = pluri.load(tmp_path / "model.skops")
    texts = pd.Series(["The New York moon", None, "violin moon"])
    wanted = vectorizer.transform(["The New York moon", "", "violin moon"])
    assert (loaded.count_texts(texts) != wanted).nnz == 0
    unknown, whole = loaded.count_unknown_words(texts)
    assert (unknown.tolist(), whole.tolist()) == ([0, 0, 1], [2, 0, 2])
    np.testing.assert_array_equal(loaded.transform(wanted), model.transform(wanted))


def test_a_new_fit_with_other_words_forgets_the_vectorizer(fitted):
    model, _ = fitted
    model.fit(np.ones((4, 3), dtype=int))
    with pytest.raises(ValueError, match="must have a vectorizer to count texts, got none: see keep_vectorizer"):
        model.count_texts(["moon"])
    with pytest.raises(TypeError, match="vectorizer must be a fitted CountVectorizer, got list"):
        model.keep_vectorizer(["a", "b", "c"])


def test_files_with_functions_or_changed_settings_are_refused(fitted, tmp_path):
    model, vectorizer = fitted
    object.__setattr__(vectorizer.analyzer, "segmenter", "os")
    with pytest.raises((Unsound, ValueError), match="segmenter must be one of"):
        pluri.save(model, tmp_path / "changed.skops")
    object.__setattr__(vectorizer.analyzer, "segmenter", "auto")
    object.__setattr__(vectorizer.analyzer, "tokenizer", lambda text: text.split())
    with pytest.raises(Exception, match=r"types that can be loaded again|tokenizer"):
        pluri.save(model, tmp_path / "function.skops")


def test_missing_texts_are_empty_and_tables_are_no_texts():
    frame = pd.DataFrame({"text": ["new york is big", None, "old new york", np.nan] * 10, "n": 1})
    same = find_phrases(frame["text"].astype("string"))  # where missing is pd.NA
    assert find_phrases(frame["text"]) == same == find_phrases(["new york is big", "", "old new york", ""] * 10) != {}
    with pytest.raises(ValueError, match="texts must be one column of texts, got a table with the columns 'text'"):
        find_phrases(frame)
    with pytest.raises(ValueError, match="a text must be a str, got nan"):
        WordCutter()(np.nan)
    with pytest.raises(ValueError, match="texts must be texts, got 3 in row 1"):
        find_phrases(["ice", 3])


def test_texts_of_data_frames(fitted):
    model, _ = fitted
    with pytest.raises(ValueError, match="texts must be texts, got 7 in row 1"):
        model.count_texts(["moon", 7])
    with pytest.raises(ValueError, match="texts must be several, got one: 'moon'"):
        model.count_texts("moon")
