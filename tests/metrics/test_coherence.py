"""Coherence of topics by hand, by counting windows one by one, and against gensim."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse

from pluri.metrics import topic_coherence

E = 1e-12
#: Documents of five words a, b, c, d, e; e is never with a.
COUNTS = np.array([[2, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 1, 1]])
NAMES = ["a", "b", "c", "d", "e"]


def random_texts(n_texts: int = 60, seed: int = 0) -> list[list[str]]:
    """Texts of 2 to 40 words, with repetitions."""
    rng = np.random.default_rng(seed)
    probability = 1 / np.arange(1, 21)
    texts = []
    for _ in range(n_texts):
        words = rng.choice(20, size=rng.integers(2, 41), p=rng.permutation(probability) / probability.sum())
        texts.append([f"w{word}" for word in words])
    return texts


def slid(texts: list[list[str]], length: int) -> list[set[str]]:
    """Every window as a set."""
    return [set(text[i : i + length]) for text in texts for i in range(max(1, len(text) - length + 1))]


def test_npmi_and_uci_of_counts_by_hand():
    # p(a) = 3/4, p(b) = 3/4, p(c) = 1/2, p(a, b) = 1/2, p(a, c) = 1/2, p(b, c) = 1/4
    pmi = np.log([(0.5 + E) / (0.75 * 0.75), (0.5 + E) / (0.75 * 0.5), (0.25 + E) / (0.75 * 0.5)])
    npmi = pmi / -np.log(np.array([0.5, 0.5, 0.25]) + E)
    for documents in (COUNTS, scipy.sparse.csr_matrix(COUNTS), scipy.sparse.coo_matrix(COUNTS.astype(np.float32))):
        assert topic_coherence([[0, 1, 2]], documents, "uci").mean == pytest.approx(pmi.mean(), abs=1e-12)
        assert topic_coherence([[0, 1, 2]], documents).per_topic == pytest.approx([npmi.mean()], abs=1e-12)


def test_umass_of_counts_by_hand():
    """Each word given the earlier ones of the topic; with one document added it is the formula of Mimno et al."""
    given = np.log([(0.5 + E) / 0.75, (0.5 + E) / 0.75, (0.25 + E) / 0.75])
    assert topic_coherence([[0, 1, 2]], COUNTS, "umass").mean == pytest.approx(given.mean(), abs=1e-12)
    mimno = np.log((2 + 1) / 3) + np.log((2 + 1) / 3) + np.log((1 + 1) / 3)
    assert 3 * topic_coherence([[0, 1, 2]], COUNTS, "umass", epsilon=1 / 4).mean == pytest.approx(mimno, abs=1e-12)
    reverse = np.log([(0.25 + E) / 0.5, (0.5 + E) / 0.5, (0.5 + E) / 0.75])
    assert topic_coherence([[2, 1, 0]], COUNTS, "umass").mean == pytest.approx(reverse.mean(), abs=1e-12)


def test_cv_of_counts_by_hand():
    def npmi(together: float, one: float, other: float) -> float:
        return float(np.log((together + E) / (one * other)) / -np.log(together + E))

    vectors = np.array(
        [
            [npmi(0.75, 0.75, 0.75), npmi(0.5, 0.75, 0.75), npmi(0.5, 0.75, 0.5)],
            [npmi(0.5, 0.75, 0.75), npmi(0.75, 0.75, 0.75), npmi(0.25, 0.75, 0.5)],
            [npmi(0.5, 0.5, 0.75), npmi(0.25, 0.5, 0.75), npmi(0.5, 0.5, 0.5)],
        ]
    )
    whole = vectors.sum(axis=0)
    expected = np.mean([v @ whole / np.linalg.norm(v) / np.linalg.norm(whole) for v in vectors])
    assert topic_coherence([[0, 1, 2]], COUNTS, "c_v").mean == pytest.approx(expected, abs=1e-12)


def test_words_that_never_occur_and_pairs_that_always_do():
    counts = np.array([[1, 1, 0], [2, 3, 0]])
    assert topic_coherence([[0, 2], [0, 1]], counts).per_topic.tolist() == [0.0, 1.0]
    # Given a word that never occurs: 0. A word that never occurs, given another: log of epsilon.
    np.testing.assert_allclose(topic_coherence([[2, 0], [0, 2]], counts, "umass").per_topic, [0.0, np.log(E)])
    assert topic_coherence([[0, 2]], counts, "c_v").mean == 0.5
    assert topic_coherence([[0, 4]], COUNTS).mean == pytest.approx(np.log(E / (0.75 * 0.25)) / -np.log(E), abs=1e-12)


@pytest.mark.parametrize("length", [1, 3, 10, 200])
def test_windows_are_counted_as_one_by_one(length):
    texts = random_texts(25, seed=length)
    windows = slid(texts, length)
    topic = ["w0", "w3", "w7", "w1"]
    expected = []
    for one, other in combinations(topic, 2):
        p, q = (np.mean([word in window for window in windows]) for word in (one, other))
        both = np.mean([one in window and other in window for window in windows])
        expected.append(np.log((both + E) / (p * q)))
    result = topic_coherence([topic], texts, "uci", window=length)
    assert result.mean == pytest.approx(np.mean(expected), abs=1e-10)


def test_blocks_of_texts_do_not_change_the_result(monkeypatch):
    texts = random_texts()
    whole = topic_coherence([["w0", "w3", "w7"]], texts, "c_v", window=7).mean
    monkeypatch.setattr("pluri.metrics.coherence.BLOCK", 50)
    assert topic_coherence([["w0", "w3", "w7"]], texts, "c_v", window=7).mean == pytest.approx(whole, abs=1e-12)


def test_whole_documents_as_windows_equal_counts():
    texts = [[NAMES[word] for word, n in enumerate(row) for _ in range(n)] for row in COUNTS]
    for measure in ("npmi", "umass", "uci", "c_v"):
        by_counts = topic_coherence([[0, 1, 2]], COUNTS, measure).mean
        by_texts = topic_coherence([["a", "b", "c"]], texts, measure, window="document").mean
        by_columns = topic_coherence([[0, 1, 2]], [[NAMES.index(w) for w in t] for t in texts], measure, window=50).mean
        assert by_counts == pytest.approx(by_texts, abs=1e-12) == pytest.approx(by_columns, abs=1e-12)


def test_topics_may_be_probabilities_columns_or_words():
    probabilities = np.array([[0.5, 0.3, 0.1, 0.1, 0.0], [0.0, 0.1, 0.2, 0.3, 0.4]])
    by_matrix = topic_coherence(probabilities, COUNTS, n_words=3).per_topic
    by_columns = topic_coherence([[0, 1, 2, 3], [4, 3, 2, 0]], COUNTS, n_words=3).per_topic
    by_words = topic_coherence([["a", "b", "c"], ["e", "d", "c"]], COUNTS, vocabulary=NAMES).per_topic
    np.testing.assert_array_equal(by_matrix, by_columns)
    np.testing.assert_array_equal(by_matrix, by_words)


@pytest.mark.parametrize(
    ("measure", "name", "window"),
    [("umass", "u_mass", None), ("uci", "c_uci", None), ("npmi", "c_npmi", 4), ("c_v", "c_v", 6), ("c_v", "c_v", None)],
)
def test_measures_equal_those_of_gensim(measure, name, window):
    pytest.importorskip("gensim")
    from gensim.corpora import Dictionary
    from gensim.models.coherencemodel import CoherenceModel

    # Each word at most once in a text: gensim forgets a word of a window when the first of two leaves it.
    texts = [list(dict.fromkeys(text)) for text in random_texts(200, seed=3)]
    topics = [["w0", "w3", "w5", "w2", "w9"], ["w11", "w1", "w0", "w4", "w6"], ["w19", "w18", "w17", "w16", "w15"]]
    dictionary = Dictionary(texts)
    if measure == "umass":
        corpus = [dictionary.doc2bow(text) for text in texts]
        peer = CoherenceModel(topics=topics, corpus=corpus, dictionary=dictionary, coherence=name)
    else:
        settings = {"coherence": name, "window_size": window, "processes": 1}
        peer = CoherenceModel(topics=topics, texts=texts, dictionary=dictionary, **settings)
    ours = topic_coherence(topics, texts, measure, window=window)
    np.testing.assert_allclose(ours.per_topic, peer.get_coherence_per_topic(), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "c_w2v"}, "measure must be one of"),
        ({"n_words": 1}, "n_words"),
        ({"window": 5}, "counts, which have no order"),
        ({"topics": [[0, 0]]}, "2 or more different words"),
        ({"topics": [[0]]}, "2 or more different words"),
        ({"topics": [[0, 9]]}, "columns below 5, got 9"),
        ({"topics": [["a", "b"]]}, "vocabulary must be given"),
        ({"topics": [["a", "z"]], "vocabulary": NAMES}, "words of the vocabulary, got 'z'"),
        ({"topics": []}, "at least one topic"),
        ({"topics": [[np.nan, 0.5]]}, "finite"),
        ({"documents": np.zeros((0, 5))}, "at least one document"),
        ({"documents": [["a", "b"]]}, "vocabulary must be given"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
    ],
)
def test_wrong_arguments_get_a_sentence(change, message):
    with pytest.raises(ValueError, match=message):
        topic_coherence(**({"topics": [[0, 1]], "documents": COUNTS} | change))


class Fitted:
    """What a fitted topic model shows."""

    topic_word_ = np.array([[0.4, 0.3, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.3, 0.4]])


def test_a_fitted_model_stands_for_its_topics_and_its_words():
    expected = topic_coherence(Fitted.topic_word_, COUNTS, n_words=3).per_topic
    np.testing.assert_array_equal(topic_coherence(Fitted(), COUNTS, n_words=3).per_topic, expected)
    texts = [[name for name, n in zip(NAMES, row) for _ in range(n)] for row in COUNTS]
    with pytest.raises(ValueError, match="vocabulary must be given"):
        topic_coherence(Fitted(), texts, n_words=3)
    named = Fitted()
    named.vocabulary_ = np.array(NAMES)
    of_texts = topic_coherence(named, texts, n_words=3, window="document").per_topic
    np.testing.assert_allclose(of_texts, expected)
    shuffled = {"e": 4, "b": 1, "a": 0, "d": 3, "c": 2}
    by_dict = topic_coherence(Fitted(), texts, n_words=3, window="document", vocabulary=shuffled).per_topic
    np.testing.assert_allclose(by_dict, expected)


def test_a_model_that_is_not_fitted_is_refused():
    class Unfitted:
        def fit(self, X):
            return self

    with pytest.raises(ValueError, match="topics must be a fitted model with topic_word_, got Unfitted"):
        topic_coherence(Unfitted(), COUNTS)
