"""Metrics of predicted sequences beside other programs, enumeration and answers by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluri.datasets import make_bracketed_sentences
from pluri.metrics import (
    bleu_score,
    bracket_f1,
    bracket_scores,
    cider_score,
    exact_meteor_score,
    frame_error_rate,
    perplexity,
)
from pluri.metrics.sequence.exact_meteor import fewest_chunks

CANDIDATES = [
    "a large red disc lies over the small blue box",
    "a small green star is below a huge yellow triangle on white paper",
    "the tiny box sits to the left of a big big circle",
    "two stars",
]
REFERENCES = [
    ["a big red disc lies above the small blue box", "the large crimson circle is over a small blue square"],
    [
        "a little green star is under a huge golden triangle on white paper",
        "a small emerald star is below a large yellow triangle",
        "a star below a triangle",
    ],
    ["a tiny square lies to the left of a big circle", "the small box sits left of the big disc on a dark ground"],
    ["two stars on a wall", "there are two stars"],
]
sentences = st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(tuple)


def test_bleu_is_that_of_sacrebleu_and_nltk():
    """Numbers of sacrebleu 2.6.0 (smooth_method="none", tokenize="none") and of NLTK 3.10.4 for orders 1 and 2.

    For higher orders NLTK counts a missing n-gram of each sentence that is too short to have one.
    """
    assert bleu_score(CANDIDATES, REFERENCES) == pytest.approx(0.490999745652861, rel=1e-12)
    assert bleu_score(CANDIDATES[:3], REFERENCES[:3]) == pytest.approx(0.5025290605269687, rel=1e-12)
    assert bleu_score(CANDIDATES, REFERENCES, max_order=2) == pytest.approx(0.8015297522664875, rel=1e-12)


def test_bleu_by_hand():
    """Clipped precisions 5/6, 5/5, 3/4 and 1/3, equal lengths; and a candidate of 4 words beside one of 6."""
    references = [["the cat sat on a mat", "a cat is on the mat"]]
    expected = (5 / 6 * 1 * 3 / 4 * 1 / 3) ** 0.25
    assert bleu_score(["the cat sat on the mat"], references) == pytest.approx(expected)
    assert bleu_score(["the cat sat on"], ["the cat sat on a mat"]) == pytest.approx(math.exp(1 - 6 / 4))


def test_a_reference_has_bleu_one_against_itself_and_no_match_zero():
    texts = [text for group in REFERENCES[:3] for text in group]
    assert bleu_score(texts, texts) == pytest.approx(1)
    assert bleu_score(["x y z u v"], ["a b c d e"]) == 0
    assert bleu_score(["", "a b c d"], ["a", "a b c d"]) == pytest.approx(math.exp(1 - 5 / 4))
    assert bleu_score([""], ["a"]) == 0


def test_strings_and_tokens_give_the_same_scores():
    tokens = [text.split() for text in CANDIDATES]
    groups = [[text.split() for text in group] for group in REFERENCES]
    for score in (bleu_score, cider_score, exact_meteor_score):
        assert score(tokens, groups) == score(CANDIDATES, REFERENCES)


def test_cider_d_is_that_of_the_caption_server():
    """The number of pycocoevalcap 1.2, whose "CIDEr" is the variant D."""
    assert cider_score(CANDIDATES, REFERENCES, variant="cider_d") == pytest.approx(3.079623446659747, rel=1e-12)


def test_cider_equals_cosines_of_dense_vectors():
    total = 0.0
    for order in (1, 2, 3, 4):

        def grams(text, order=order):
            words = text.split()
            return [tuple(words[i : i + order]) for i in range(len(words) - order + 1)]

        vocabulary = sorted(
            {gram for text in CANDIDATES + [one for group in REFERENCES for one in group] for gram in grams(text)}
        )
        n_items = np.array([sum(any(g in grams(t) for t in group) for group in REFERENCES) for g in vocabulary])
        idf = np.log(len(REFERENCES) / np.maximum(n_items, 1))
        for text, group in zip(CANDIDATES, REFERENCES):
            own = idf * [grams(text).count(gram) for gram in vocabulary]
            for one in group:
                other = idf * [grams(one).count(gram) for gram in vocabulary]
                norm = np.linalg.norm(own) * np.linalg.norm(other)
                total += (own @ other / norm if norm else 0) / len(group)
    assert cider_score(CANDIDATES, REFERENCES) == pytest.approx(10 * total / 16, rel=1e-12)


@pytest.mark.parametrize("variant", ["cider", "cider_d"])
def test_an_identical_corpus_has_the_largest_cider(variant):
    texts = [text for group in REFERENCES[:3] for text in group]
    assert cider_score(texts, texts, variant=variant) == pytest.approx(10)
    assert cider_score(texts[:1], texts[:1], variant=variant) == 0  # a single item has no rare words


def test_exact_meteor_is_that_of_nltk_without_stems_and_synonyms():
    """The number of NLTK 3.10.4 with a stemmer that leaves words alone and a WordNet without synonyms."""
    assert exact_meteor_score(CANDIDATES, REFERENCES) == pytest.approx(0.682566076292024, rel=1e-12)


def test_exact_meteor_by_hand():
    same = "the cat sat on the mat"
    assert exact_meteor_score([same], [same]) == pytest.approx(1 - 0.5 / 6**3)
    assert exact_meteor_score([same], ["no word here"]) == 0
    # Three matches in two chunks, P = 3/4, R = 3/5.
    score = 10 * 0.45 / (0.6 + 6.75) * (1 - 0.5 * (2 / 3) ** 3)
    assert exact_meteor_score(["a b x c"], ["c y a b z"]) == pytest.approx(score)


def brute_chunks(candidate, reference):
    """Fewest chunks over all ways to pair equal words, among those with the most pairs."""
    n_pairs = (Counter(candidate) & Counter(reference)).total()
    best = math.inf
    slots = list(range(len(reference))) + [None] * len(candidate)
    for pairing in set(permutations(slots, len(candidate))):
        pairs = [(i, j) for i, j in enumerate(pairing) if j is not None]
        if len(pairs) == n_pairs and all(candidate[i] == reference[j] for i, j in pairs):
            starts = [(i, j) for i, j in pairs if (i - 1, j - 1) not in pairs]
            best = min(best, len(starts))
    return best


@settings(max_examples=25, deadline=None)
@given(sentences.map(lambda words: words[:4]), sentences.map(lambda words: words[:4]))
def test_the_fewest_chunks_are_those_of_enumeration(candidate, reference):
    if set(candidate) & set(reference):
        assert fewest_chunks(candidate, reference) == brute_chunks(candidate, reference)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4))
def test_scores_stay_in_their_ranges(pairs):
    candidates, references = [a for a, _ in pairs], [[b] for _, b in pairs]
    assert 0 <= bleu_score(candidates, references) <= 1 + 1e-12
    assert 0 <= exact_meteor_score(candidates, references) < 1
    assert 0 <= cider_score(candidates, references) <= 10 + 1e-9


@pytest.mark.parametrize("score", [bleu_score, cider_score, exact_meteor_score])
@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        ("a b", ["a b"], "got a string"),
        (["a"], [["a"], ["b"]], "equally many"),
        ([], [], "at least one"),
        (["a"], [[]], "got none for 0"),
        ([["a", "b"]], [["a", "b"]], "all strings or all lists of tokens"),
        (["a b"], [[["a", "b"]]], "all strings or all lists of tokens"),
    ],
)
def test_sentences_that_could_be_misread_are_refused(score, candidates, references, message):
    with pytest.raises(ValueError, match=message):
        score(candidates, references)


def test_frame_error_rate_and_weights():
    true, predicted = [[0, 0, 1], [2], [1, 1]], [[0, 1, 1], [2], [0, 0]]
    assert frame_error_rate(true, predicted) == 0.5
    assert frame_error_rate(np.concatenate(true), np.concatenate(predicted)) == 0.5
    assert frame_error_rate(true, predicted, sample_weight=[3, 1, 0]) == pytest.approx(3 / 10)
    assert frame_error_rate([0, 1], [1, 1], sample_weight=[1, 3]) == 0.25
    assert frame_error_rate([[0, 1]], [[1, 1]], sample_weight=[5]) == 0.5
    assert frame_error_rate(np.array([["a", "b"], ["c", "d"]]), [["a", "b"], ["c", "x"]]) == 0.25
    assert frame_error_rate(["north", "south"], ["north", "north"]) == 0.5
    for wrong, message in (
        ([[0, 0, 1], [2]], "3 and 2 sequences"),
        ([[0, 0], [2], [1, 1]], "3 and 2 in sequence 0"),
        ([], "y_pred must have at least one frame"),
    ):
        with pytest.raises(ValueError, match=message):
            frame_error_rate(true, wrong)


def test_perplexity_is_the_geometric_mean_of_the_odds():
    probabilities = [0.5, 0.25, 0.125, 1.0]
    expected = np.prod(probabilities) ** (-1 / 4)
    assert perplexity(np.log(probabilities)) == pytest.approx(expected)
    assert perplexity([np.log(probabilities[:1]), np.log(probabilities[1:])]) == pytest.approx(expected)
    assert perplexity(np.log(np.full(7, 0.1))) == pytest.approx(10)
    assert perplexity([np.log([0.5]), np.log([0.25])], sample_weight=[1, 0]) == pytest.approx(2)
    assert perplexity([-np.inf, 0]) == np.inf
    assert perplexity([-1e5]) == np.inf
    for wrong in ([0.5], [np.nan, -1]):
        with pytest.raises(ValueError, match="log_prob must be at most 0"):
            perplexity(wrong)


def test_brackets_by_hand():
    """Of three predicted and four true brackets two agree."""
    true = "(S (NP the cat) (VP saw (NP it)))"
    predicted = "(S (NP the cat) saw (VP it))"
    scores = bracket_scores([true], [predicted])
    assert (scores.precision, scores.recall, scores.n_invalid, scores.n_trees) == (2 / 3, 0.5, 0, 1)
    assert scores.f1 == pytest.approx(2 * 2 / 7)


def test_equal_labels_over_the_same_words_count_once_each():
    assert bracket_f1(["(A (A x))"], ["(A x)"]) == pytest.approx(2 / 3)
    assert bracket_f1(["(A (A x))"], ["(A (A x))"]) == 1


def test_trees_agree_with_themselves_and_f1_is_symmetric():
    data = make_bracketed_sentences(60, random_state=0)
    assert bracket_scores(data.Y, data.Y).f1 == 1
    same_length = [
        (a, b) for a in data.Y for b in data.Y if a.count("XX") == b.count("XX")
    ]  # every pair in both orders
    for one, other in same_length[:200]:
        assert bracket_f1([one], [other]) == pytest.approx(bracket_f1([other], [one]))
    assert bracket_f1([" ".join(tree) for tree in data.Y], data.Y) == 1


@pytest.mark.parametrize(
    "tree",
    ["(A x y", "(A x y)B", "x (A y)", "(A x) (A y)", "(A x) y", ")A x y", "", "x y", "(A x)", "(A x y z)", "(A x y))"],
)
def test_invalid_trees_score_nothing_and_are_counted(tree):
    scores = bracket_scores(["(A x y)", "(A x)"], [tree, "(A x)"])
    n_opened = tree.count("(")
    assert scores.n_invalid == 1
    assert scores.recall == 0.5
    assert scores.precision == pytest.approx(1 / (1 + n_opened))


def test_wrong_trees_are_refused():
    with pytest.raises(ValueError, match="y_true must be well-formed trees, got '\\(A' at 0"):
        bracket_scores(["(A"], ["(A x)"])
    with pytest.raises(ValueError, match="equally many"):
        bracket_scores(["(A x)"], [])
    with pytest.raises(ValueError, match="lists of trees"):
        bracket_scores("(A x)", "(A x)")
