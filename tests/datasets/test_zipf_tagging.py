"""The artificial corpus: class frequencies, grammar, Zipf law, invented words."""

from __future__ import annotations

import numpy as np
import pytest

from pluri.datasets import TAG_GROUPS, make_zipf_tagging
from pluri.datasets.treebank import GROUP_COUNTS, GROUP_OF_TAG


def test_the_tag_groups_are_the_published_table():
    assert len(TAG_GROUPS) == 15
    assert len(GROUP_OF_TAG) == sum(map(len, TAG_GROUPS.values())) == 46
    assert sum(GROUP_COUNTS) == 94081
    assert max(GROUP_COUNTS) / sum(GROUP_COUNTS) == pytest.approx(0.307, abs=5e-4)


@pytest.mark.parametrize("n_states", [2, 5, 15])
def test_parameters_are_distributions_and_frequencies_stationary(n_states):
    corpus = make_zipf_tagging(3, n_states=n_states, n_words=100, random_state=0)
    for rows in (corpus.startprob[None], corpus.transmat, corpus.emissionprob):
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-12)
        assert (rows > 0).all()
    np.testing.assert_allclose(corpus.startprob @ corpus.transmat, corpus.startprob, rtol=1e-11)
    assert corpus.tags.size == n_states
    expected = np.sort(GROUP_COUNTS)[::-1][:n_states]
    np.testing.assert_allclose(np.sort(corpus.startprob)[::-1], expected / expected.sum())


def test_class_and_word_frequencies_are_those_of_the_parameters():
    """Frequencies of 15 classes and the 50 commonest words within 6 standard errors over sentences; rate below 1e-6."""
    corpus = make_zipf_tagging(4000, n_words=500, mean_length=15, random_state=0)
    sentence = np.repeat(np.arange(4000), corpus.lengths)

    def check(codes, probabilities):
        for code, probability in enumerate(probabilities):
            excess = np.bincount(sentence, weights=(codes == code) - probability)
            assert abs(excess.sum()) < 6 * np.sqrt((excess**2).sum()) + 1e-9

    # The two classes of about 4 in 94081 are too rare for the normal law: at most a handful may appear.
    common = corpus.startprob > 1e-4
    check(np.where(common[corpus.states], corpus.states, -1), np.where(common, corpus.startprob, 0))
    assert np.isin(corpus.states, np.flatnonzero(~common)).sum() < 25
    check(corpus.X[:, 0], (corpus.startprob @ corpus.emissionprob)[:50])


def test_lengths_have_the_mean_asked_for_and_at_least_two_words():
    """The mean within 5 standard errors; false alarms below 6e-7."""
    lengths = make_zipf_tagging(5000, n_words=20, mean_length=12, random_state=1).lengths
    assert lengths.min() >= 2
    assert abs(lengths.mean() - 12) < 5 * lengths.std() / np.sqrt(5000)
    np.testing.assert_array_equal(make_zipf_tagging(5, mean_length=2, random_state=1).lengths, 2)


def test_word_frequencies_fall_like_a_power_of_the_rank():
    corpus = make_zipf_tagging(2, n_words=2000, random_state=0)
    overall = corpus.startprob @ corpus.emissionprob
    assert (np.diff(overall) <= 1e-15).all()
    slope = np.polyfit(np.log(np.arange(1, 1001)), np.log(overall[:1000]), 1)[0]
    assert -1.4 < slope < -0.8


def test_ambiguity_mixes_the_classes_but_leaves_overall_frequencies():
    pure, mixed, blurred = (make_zipf_tagging(2, ambiguity=a, random_state=0) for a in (0, 0.3, 1))
    assert ((pure.emissionprob > 0).sum(axis=0) == 1).all()
    for corpus in (mixed, blurred):
        np.testing.assert_allclose(corpus.startprob @ corpus.emissionprob, pure.startprob @ pure.emissionprob)
    np.testing.assert_allclose(blurred.emissionprob, np.tile(blurred.emissionprob[0], (15, 1)))


def test_words_are_distinct_short_first_and_stand_for_the_same_tokens():
    numbers = make_zipf_tagging(30, n_words=5100, random_state=2)
    words = make_zipf_tagging(30, n_words=5100, as_words=True, random_state=2)
    assert np.unique(numbers.vocabulary).size == 5100
    sizes = np.char.str_len(numbers.vocabulary)
    assert (np.diff(sizes) >= 0).all()
    assert set(sizes) == {2, 4, 6}
    np.testing.assert_array_equal(words.X[:, 0], numbers.vocabulary[numbers.X[:, 0]])
    np.testing.assert_array_equal(words.states, numbers.states)


def test_the_same_seed_gives_the_same_corpus():
    first, again, other = (make_zipf_tagging(20, random_state=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.lengths, again.lengths)
    assert not np.array_equal(first.lengths, other.lengths)
    np.testing.assert_array_equal(first.transmat, other.transmat)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_sequences": 0},
        {"n_states": 1},
        {"n_states": 16},
        {"n_words": 14},
        {"mean_length": 1.5},
        {"exponent": -1},
        {"ambiguity": 1.2},
    ],
)
def test_bad_arguments_are_named(bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be"):
        make_zipf_tagging(**bad)
