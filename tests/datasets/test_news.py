"""Loaders of news on small files of the same layout, and front pages made of documents."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from pluri.datasets import data_home
from pluri.datasets.feeds import document_stream
from pluri.datasets.news import load_newsgroups, load_reuters

POSTS = [
    {"id": 7, "split": "train", "label": "sci.space", "subject": "orbit", "text": "a b"},
    {"id": 9, "split": "train", "label": "rec.autos", "subject": "brakes", "text": "b c"},
    {"id": 3, "split": "test", "label": "sci.space", "subject": "moon", "text": "c d"},
]
STORIES = [
    {
        "id": 1,
        "split": "train",
        "date": "2-MAR-1987 04:28:59.85",
        "topics": ["crude", "ship"],
        "title": "T",
        "text": "x",
    },
    {"id": 2, "split": "test", "date": "26-FEB-1987 15:01:01.79", "topics": ["cocoa"], "title": None, "text": "y"},
    {"id": 3, "split": "train", "date": " 1-jun-1987 00:00:00.05&#5;F", "topics": ["earn"], "title": "U", "text": "z"},
]


def needs(name):
    """Skip the test where the data folder (``PLURI_DATA``) has no such file."""
    return pytest.mark.skipif(not (data_home() / name).is_file(), reason=f"no {name} in the folder PLURI_DATA names")


def write(folder, name, rows):
    text = "\n".join(json.dumps(row) for row in rows)
    (folder / name).write_bytes(gzip.compress(text.encode()))


def test_posts_keep_the_order_of_the_file(tmp_path):
    write(tmp_path, "newsgroups20_bydate.jsonl.gz", POSTS)
    posts = load_newsgroups(tmp_path)
    assert posts.texts == ("a b", "b c", "c d")
    assert posts.titles == ("orbit", "brakes", "moon")
    assert posts.labels.tolist() == ["sci.space", "rec.autos", "sci.space"]
    assert posts.is_test.tolist() == [False, False, True]
    assert posts.dates is None
    assert repr(posts) == "Documents(3 texts, 2 labels)"
    assert load_newsgroups(tmp_path, subset="test").texts == ("c d",)


def test_stories_come_in_the_order_of_their_dates(tmp_path, monkeypatch):
    monkeypatch.setenv("PLURI_DATA", str(tmp_path))
    write(tmp_path, "reuters21578_modapte.jsonl.gz", STORIES)
    stories = load_reuters()
    assert stories.texts == ("y", "x", "z")
    assert stories.titles == ("", "T", "U")
    assert stories.topics == (("cocoa",), ("crude", "ship"), ("earn",))
    assert stories.labels.tolist() == ["cocoa", "crude", "earn"]
    assert stories.dates.astype(str).tolist() == [
        "1987-02-26T15:01:01.790", "1987-03-02T04:28:59.850", "1987-06-01T00:00:00.050",
    ]  # fmt: skip
    assert repr(stories) == "Documents(3 texts, 3 labels, 1987-02-26 to 1987-06-01)"


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must hold newsgroups20_bydate\.jsonl\.gz.*PLURI_DATA.*20news-bydate"):
        load_newsgroups(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"reuters21578_modapte\.jsonl\.gz.*topics, title and text"):
        load_reuters(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"date": "1987-02-26"}, "must date its stories as 26-FEB-1987"),
        ({"date": "26-FOO-1987 15:01:01.79"}, "must date its stories as 26-FEB-1987"),
        ({"topics": []}, "at least one topic"),
        ({"split": "other"}, "documents of the subset 'train', got none"),
    ],
)
def test_stories_of_another_layout_are_refused(tmp_path, change, message):
    write(tmp_path, "reuters21578_modapte.jsonl.gz", [STORIES[0] | change])
    with pytest.raises(ValueError, match=message):
        load_reuters(tmp_path, subset="train" if "split" in change else "all")


def test_missing_fields_and_unknown_subsets_are_named(tmp_path):
    write(tmp_path, "newsgroups20_bydate.jsonl.gz", [{"split": "train", "label": "a", "text": ""}])
    with pytest.raises(ValueError, match=r"got none of \['subject'\] in 1"):
        load_newsgroups(tmp_path)
    with pytest.raises(ValueError, match="subset must be one of 'all', 'train', 'test', got 'dev'"):
        load_newsgroups(tmp_path, subset="dev")


@pytest.mark.parametrize("arrival", ["in order", "drawn"])
def test_each_step_replaces_so_many_slots_by_later_documents_of_their_feeds(arrival):
    feeds = np.random.default_rng(0).choice(list("abcde"), size=400, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    stream = document_stream(feeds, n_slots=7, n_replaced=3, n_steps=20, arrival=arrival, random_state=1)
    assert stream.documents.shape == (20, 7)
    assert repr(stream) == "DocumentStream(20 steps, 7 slots, 3 replaced a step)"
    assert (feeds[stream.documents] == stream.slot_feeds).all()
    for before, after, changed in zip(stream.documents, stream.documents[1:], stream.changed):
        np.testing.assert_array_equal(np.flatnonzero(before != after), changed)
        assert changed.size == 3
        assert (after[changed] > before[changed]).all()
    assert stream.shown.size == 7 + 3 * 19  # nothing is shown twice


def test_slots_are_given_to_feeds_in_turn_or_to_the_most_frequent():
    few = document_stream(["b", "a", "b", "a", "b", "b"], n_slots=3, n_replaced=1)
    assert few.slot_feeds.tolist() == ["b", "a", "b"]
    assert few.documents[0].tolist() == [0, 1, 2]
    many = document_stream(list("cabbacbd"), n_slots=2, n_replaced=1)
    assert many.slot_feeds.tolist() == ["c", "b"]


def test_documents_in_order_go_to_the_slot_unchanged_for_longest():
    stream = document_stream(["a"] * 6, n_slots=2, n_replaced=1)
    assert stream.documents.tolist() == [[0, 1], [2, 1], [2, 3], [4, 3], [4, 5]]
    # Two slots must change before the page does: what came and went in between was never shown.
    slow = document_stream(["a", "b", "a", "a", "a", "b", "b"], n_slots=2, n_replaced=2)
    assert slow.documents.tolist() == [[0, 1], [4, 5]]


@pytest.mark.parametrize(
    ("feeds", "options", "message"),
    [
        ([], {}, "feeds must have one axis and an entry"),
        (["a"], {"n_slots": 2, "n_replaced": 1}, "got too few of 'a'"),
        (["a"] * 9, {"n_slots": 2, "n_replaced": 3}, r"from 1 to the number of slots \(2\), got 3"),
        (["a"] * 4, {"n_slots": 2, "n_replaced": 1, "n_steps": 9}, "got documents for 3"),
        (["a"] * 4, {"n_slots": 2, "n_replaced": 1, "n_steps": 9, "arrival": "drawn"}, "got documents for 3"),
        (["a"] * 4, {"n_slots": 2, "n_replaced": 1, "n_steps": 0}, "n_steps must be at least 1"),
        (["a"] * 4, {"n_slots": 2, "n_replaced": 1, "arrival": "late"}, "arrival must be one of 'in order', 'drawn'"),
    ],
)
def test_streams_that_cannot_be_are_refused(feeds, options, message):
    with pytest.raises(ValueError, match=message):
        document_stream(feeds, **options)


@needs("newsgroups20_bydate.jsonl.gz")
def test_the_real_posts_have_the_known_counts():
    posts = load_newsgroups()
    assert (len(posts), int(posts.is_test.sum()), np.unique(posts.labels).size) == (18846, 7532, 20)


@needs("reuters21578_modapte.jsonl.gz")
def test_the_real_stories_have_the_known_counts():
    stories = load_reuters()
    assert (len(stories), int(stories.is_test.sum())) == (10794, 3019)
    assert (np.diff(stories.dates) >= np.timedelta64(0)).all()
