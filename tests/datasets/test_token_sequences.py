"""Generators and loaders of frames, tokens, trees, captions and phrases."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.datasets import (
    data_home,
    load_spoken_digit_frames,
    load_sst_phrases,
    make_bracketed_sentences,
    make_negated_sentences,
    make_shape_captions,
    make_sticky_frames,
    make_two_tokens,
)
from pluri.datasets.token_sequences.shape_captions import FEATURES

needs_sst = pytest.mark.skipif(
    not (data_home() / "sst_train_phrases.tsv.gz").is_file(), reason="no phrases in the folder PLURI_DATA names"
)


def test_sticky_states_move_on_by_one_or_two_at_the_rate_asked_for():
    """Stays and steps of 29,500 moves within 5 standard errors, three rates; false alarms below 2e-6."""
    frames = make_sticky_frames(random_state=0)
    assert frames.X.shape == (30000, 5)
    steps = np.concatenate([np.diff(states) % 10 for _, states in frames.sequences()])
    assert set(steps) == {0, 1, 2}
    for step, rate in ((0, 0.9), (1, 0.05), (2, 0.05)):
        assert abs((steps == step).mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / steps.size)
    starts = np.bincount([states[0] for _, states in frames.sequences()], minlength=10)
    assert ((starts - 50) ** 2 / 50).sum() < 45  # chi-squared of 9 degrees of freedom: 1e-6


def test_sticky_frames_are_means_and_noise():
    """The variance of 150,000 residuals within 5 standard errors, false alarms 6e-7; without noise nothing is left."""
    frames = make_sticky_frames(random_state=1)
    residual = frames.X - frames.means[frames.states]
    assert abs(residual.var() / 1.44 - 1) < 5 * np.sqrt(2 / residual.size)
    clean = make_sticky_frames(5, noise_scale=0, stay=1, random_state=1)
    assert_array_equal(clean.X, clean.means[clean.states])
    assert (clean.states.reshape(5, 60) == clean.states.reshape(5, 60)[:, :1]).all()


def test_two_tokens_are_exactly_half_and_half():
    pairs = make_two_tokens(101, length=3, random_state=0)
    assert pairs.Y.count(("0", "0", "0")) == 50
    assert pairs.Y.count(("1", "1", "1")) == 51
    assert pairs.X.shape == (101, 1)
    assert not pairs.X.any()
    assert pairs["Y"] is pairs.Y
    assert list(pairs) == ["X", "Y"]
    assert pairs.Y != make_two_tokens(101, length=3, random_state=1).Y


def test_trees_are_well_formed_and_have_a_leaf_for_each_word():
    sentences = make_bracketed_sentences(300, n_labels=3, max_depth=4, random_state=0)
    deepest = 0
    for words, tree in zip(sentences.X, sentences.Y):
        assert tree.count("XX") == len(words)
        stack, leaf = [], 0
        for token in tree:
            if token[0] == "(":
                stack.append(token[1:])
                # The first word of a phrase opens its kind, or says nothing.
                assert words[leaf].rstrip("0123456789") in (token[1:].lower(), "any")
            elif token[0] == ")":
                assert stack.pop() == token[1:]
                assert words[leaf - 1].startswith("closing")
            else:
                leaf += 1
            deepest = max(deepest, len(stack))
        assert not stack
    assert deepest == 4


def test_ambiguous_openings_come_as_often_as_asked():
    """A share of over 500 phrases within 5 standard errors; false alarms below 6e-7."""
    sentences = make_bracketed_sentences(500, ambiguity=0.3, random_state=0)
    opening = [word for words in sentences.X for word in words if word[0] != "w" and not word.startswith("closing")]
    share = np.mean([word.startswith("any") for word in opening])
    assert abs(share - 0.3) < 5 * np.sqrt(0.21 / len(opening))
    assert not any("any" in word for words in make_bracketed_sentences(50, ambiguity=0).X for word in words)


def test_a_vocabulary_has_the_size_asked_for():
    """A word of the rarest kind is drawn twenty times on average: false alarms below 1e-7."""
    for n_words in (7, 20, 61):
        sentences = make_bracketed_sentences(500, n_words=n_words, random_state=0)
        assert len({word for words in sentences.X for word in words}) == n_words


def test_captions_say_what_is_in_the_scene():
    captions = make_shape_captions(50, n_references=3, random_state=0)
    assert captions.X.shape == (50, sum(map(len, FEATURES)))
    assert (captions.X.sum(axis=1) == 8).all()
    for scene, references, first in zip(captions.scenes, captions.references, captions.Y):
        assert references[0] == first
        assert len(references) == 3
        for words in references:
            text = " " + " ".join(words) + " "
            for values, value in zip(FEATURES, scene):
                assert any(f" {word} " in text for word in values[value])
    stops = np.cumsum([len(values) for values in FEATURES])
    assert_array_equal(
        np.stack([part.argmax(axis=1) for part in np.split(captions.X, stops[:-1], axis=1)], axis=1), captions.scenes
    )


def test_a_negation_reverses_the_next_feeling_only():
    from pluri.datasets.token_sequences.negated_sentences import negated_class

    feeling = {"fine": 1, "awful": -2}
    for words, expected in (
        ("fine", 3), ("not fine", 1), ("not very fine", 1), ("not fine fine", 2), ("never awful", 4), ("awful", 0),
        ("not", 2), ("not never fine", 1), ("fine fine fine", 4),
    ):  # fmt: skip
        assert negated_class(tuple(words.split()), feeling) == expected, words
    data = make_negated_sentences(400, random_state=0)
    assert_array_equal(data.y, [negated_class(words, data.feeling) for words in data.X])
    assert {len(words) for words in data.X} == set(range(5, 31))


def test_label_noise_replaces_classes_uniformly():
    """The share of changed classes, noise * 4/5, within 5 standard errors; false alarms below 6e-7."""
    from pluri.datasets.token_sequences.negated_sentences import negated_class

    data = make_negated_sentences(2000, label_noise=0.5, random_state=0)
    changed = np.mean(data.y != [negated_class(words, data.feeling) for words in data.X])
    assert abs(changed - 0.4) < 5 * np.sqrt(0.24 / 2000)


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (make_sticky_frames, {"n_states": 2}, "n_states must be an integer of at least 3"),
        (make_sticky_frames, {"stay": 1.5}, "stay must be a number"),
        (make_two_tokens, {"n_sequences": 1}, "n_sequences must be"),
        (make_bracketed_sentences, {"n_labels": 27}, "n_labels must be at most 26"),
        (make_bracketed_sentences, {"n_words": 6}, "n_words must be an integer of at least 7"),
        (make_bracketed_sentences, {"ambiguity": np.nan}, "ambiguity must be"),
        (make_shape_captions, {"n_references": 0}, "n_references must be"),
        (make_negated_sentences, {"max_length": 4}, "max_length must be an integer of at least 5"),
        (make_negated_sentences, {"label_noise": -1}, "label_noise must be"),
    ],
)
def test_impossible_settings_are_refused(make, wrong, message):
    with pytest.raises(ValueError, match=message):
        make(**wrong)


SENTENCES = "split\tlabel0to4\ttext\ntrain\t3\tThe film works\ndev\t0\tNo .\ntrain\t1\tworks\ntrain\t2\tThe end\n"
PHRASES = "label0to4\tphrase\n2\tThe\n2\tfilm\n3\tworks\n3\tfilm works\n3\tThe film works\n2\tend\n4\tThe end\n"


def write(folder, sentences=SENTENCES, phrases=PHRASES):
    (folder / "sst_sentences.tsv.gz").write_bytes(gzip.compress(sentences.encode()))
    (folder / "sst_train_phrases.tsv.gz").write_bytes(gzip.compress(phrases.encode()))


def test_phrases_belong_to_the_first_sentence_they_occur_in(tmp_path):
    write(tmp_path)
    phrases = load_sst_phrases(tmp_path)
    assert phrases.sentence.tolist() == [0, 0, 0, 0, 0, 2, 2]
    assert phrases.y.tolist() == [2, 2, 3, 3, 3, 2, 4]
    assert phrases.texts[3] == "film works"
    assert repr(phrases) == "SentimentPhrases(7 phrases of 2 sentences)"
    assert load_sst_phrases(tmp_path, n_phrases=6).texts == phrases.texts[:6]


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        (PHRASES + "2\tThe dog\n", "parts of the training sentences in their order, got 'The dog'"),
        (PHRASES + "5\tend\n", "labels from 0 to 4, got '5'"),
        (PHRASES + "2\n", "2 columns, got 1 in line 9"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, phrases, message):
    write(tmp_path, phrases=phrases)
    with pytest.raises(ValueError, match=message):
        load_sst_phrases(tmp_path)


def test_missing_phrases_are_told_with_the_place_to_get_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nlp\.stanford\.edu"):
        load_sst_phrases(tmp_path)


@needs_sst
def test_the_phrases_are_those_of_the_treebank():
    phrases = load_sst_phrases()
    assert len(phrases) == len(set(phrases.texts)) == 159274
    assert np.unique(phrases.sentence).size == 8534
    assert (np.diff(phrases.sentence) >= 0).all()
    assert (phrases.y == 2).mean() == pytest.approx(0.5127, abs=1e-4)


def digits(folder):
    """Three digits of two speakers, one of them in the test part; frame t of utterance u is 10 u + t, squared."""
    lengths = [4, 6, 5]
    X = np.concatenate([(10 * number + np.arange(length)) ** 2 for number, length in enumerate(lengths)])
    np.savez(
        folder / "fsdd_mfcc13.npz", X=X[:, None].astype(float), length=lengths, digit=[3, 7, 7],
        speaker=["ann", "ann", "bob"], index=[5, 6, 0],
    )  # fmt: skip


def test_digits_in_a_row_are_labelled_by_digit_and_part(tmp_path):
    digits(tmp_path)
    frames = load_spoken_digit_frames(tmp_path, n_parts=2, derivatives=False)
    assert frames.lengths.tolist() == [10, 5]
    assert frames.speaker.tolist() == ["ann", "bob"]
    assert frames.is_test.tolist() == [False, True]
    first, second = (states for _, states in frames.sequences())
    assert np.diff(first).max() <= 8
    assert sorted(first.tolist()) == [6, 6, 7, 7, 14, 14, 14, 15, 15, 15]
    assert second.tolist() == [14, 14, 14, 15, 15]
    assert_array_equal(frames.X[-5:, 0], (20 + np.arange(5)) ** 2)
    alone = load_spoken_digit_frames(tmp_path, n_digits=1, n_parts=2, derivatives=False)
    assert sorted(alone.lengths.tolist()) == [4, 5, 6]


def test_derivatives_are_differences_in_time(tmp_path):
    digits(tmp_path)
    X = load_spoken_digit_frames(tmp_path).X[-5:]
    assert X.shape == (5, 3)
    assert_allclose(X[1:-1, 1], 2 * (20 + np.arange(1, 4)))
    assert X[2, 2] == pytest.approx(2)
