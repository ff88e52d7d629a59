"""Parts of the page about topics: an index within bounds, every word, time, labels of many topics; in a browser too."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from pluri.report import DocumentIndex, topic_report
from pluri.report.svg_map import draw_map
from pluri.topics import topic_trends

FIRST = np.datetime64("2024-01-01")


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_index_takes_columns_of_a_frame_by_their_places():
    titles, shares = [f"letter {row}" for row in range(4)], np.eye(4)
    days = np.array(["2024-01-01", "NaT", "2024-01-03", "2024-01-04"], "M8[D]")
    expected = DocumentIndex().add(titles, titles, shares, days).to_dict()
    column, dates = (pd.Series(values, index=[3, 2, 1, 0]) for values in (titles, days))
    assert DocumentIndex().add(column, column, shares, dates).to_dict() == expected


def test_the_index_stays_within_its_bound_and_says_what_it_lists():
    rng = np.random.default_rng(0)
    index = DocumentIndex(budget=50_000)
    for begin in range(0, 5000, 500):
        titles = [f"title {row}" for row in range(begin, begin + 500)]
        index.add(titles, [f"{title} " + "text " * 100 for title in titles], rng.dirichlet(np.ones(4), 500))
    kept = index.to_dict()
    assert (kept["total"], index.n_documents) == (5000, 5000)
    assert 100 < index.n_listed < 5000
    assert len(json.dumps(kept)) < 75_000
    assert kept["excerpt"] == 50
    assert [f"title {place}" for place in kept["places"]] == kept["titles"]
    # Drawn at random: places of the listed documents are spread evenly, but for 1 in 10,000.
    assert abs(np.mean(kept["places"]) - 2500) < 3.9 * 5000 / np.sqrt(12 * index.n_listed)


def test_small_corpora_are_listed_whole_with_their_dates_and_topics():
    shares = np.array([[0.7, 0.3, 0.0], [0.1, 0.2, 0.7]])
    index = DocumentIndex().add(
        ["Ice", ""], ["Ice and  snow", "moon"], shares, np.array(["2024-01-02", "NaT"], "M8[D]")
    )
    kept = index.to_dict()
    assert kept["places"] is None
    assert kept["excerpts"] == ["and snow", "moon"]  # a text goes on after its title
    assert kept["topics"] == [[0, 1], [2, 1, 0]]
    assert kept["shares"] == [[70, 30], [70, 20, 10]]
    assert kept["days"] == [19724, None]
    with pytest.raises(ValueError, match="must have one for each of 2 documents, got 1"):
        index.add(["one"], None, shares)


def test_every_word_is_known_to_the_page(topics):
    model = topics(6, 400)
    kept = data_of(topic_report(model, n_words=5))["vocabulary"]
    assert sorted(kept["words"]) == sorted(model.vocabulary_)
    joint = model.topic_weight_[:, None] * model.topic_word_
    for place in (0, 17, 399):
        column = list(model.vocabulary_).index(kept["words"][place])
        assert kept["topics"][place][0] == joint[:, column].argmax()
        assert kept["shares"][place][0] == round(100 * joint[:, column].max() / joint[:, column].sum())


@pytest.mark.parametrize("n_topics", [60, 200])
def test_labels_of_many_topics_are_there_and_do_not_cover_each_other(topics, n_topics):
    from pluri.plotting.topics.topic_map import hellinger_distances
    from pluri.report.labels import text_width

    model = topics(n_topics, 2000)
    body = draw_map(model.topic_graph(10), hellinger_distances(model.topic_word_)).body
    assert body.count("spare") <= 0.05 * n_topics
    boxes = []
    for x, y, inside in re.findall(r'transform="translate\(([\d.]+) ([\d.]+)\)">.*?(<text.*?)</a>', body):
        if "spare" in inside:
            continue
        size = float(re.search(r'font-size="([\d.]+)"', inside)[1])
        lines = re.findall(r'<tspan x="0" y="([-\d.]+)" dy="0.35em">(.*?)</tspan>', inside)
        if lines:
            spans = [(0.0, float(dy), "middle", text) for dy, text in lines]
        else:
            anchor, dx, dy, text = re.search(
                r'anchor="(\w+)" x="([-\d.]+)" y="([-\d.]+)".*?>(.*?)</text>', inside
            ).groups()
            spans = [(float(dx), float(dy), anchor, text)]
        for dx, dy, anchor, text in spans:
            reach = text_width(text, size)
            left = float(x) + dx - {"middle": reach / 2, "start": 0.0, "end": reach}[anchor]
            boxes.append((left, float(y) + dy - 0.5 * size, left + reach, float(y) + dy + 0.5 * size))
    a = np.array(boxes)
    over = (a[:, None, 0] < a[None, :, 2] - 0.5) & (a[None, :, 0] < a[:, None, 2] - 0.5)
    over &= (a[:, None, 1] < a[None, :, 3] - 0.5) & (a[None, :, 1] < a[:, None, 3] - 0.5)
    assert over.sum() == len(a)  # each covers itself


def dated_page(topics, n_topics=8, kind="flat", n_documents=300, pause=0):
    """Ten documents a week; a topic emerges in week 24, after a pause of some weeks."""
    model = topics(n_topics, 120, kind=kind, n_documents=n_documents)
    rng = np.random.default_rng(1)
    shares = model.shares_.copy()
    dates = FIRST + 7 * (np.arange(n_documents) // 10)
    late = np.flatnonzero(dates >= FIRST + 7 * 24)
    dates[late] += 7 * pause
    shares[: late[0], 3] = 0.001
    shares[late[: len(late) // 2 * 2], 3] = 0.8
    shares /= shares.sum(axis=1, keepdims=True)
    X = rng.integers(0, 2, (n_documents, 120))
    model.n_features_in_ = 120
    trends = topic_trends(model, X, dates, shares=shares, n_permutations=99)
    titles = [f"letter {row}" for row in range(n_documents)]
    texts = [f"letter {row} is about zebra{row % 7} and more" for row in range(n_documents)]
    index = DocumentIndex().add(titles, texts, shares, dates)
    return model, trends, topic_report(model, documents=index, trends=trends)


def test_time_documents_and_the_slider_work_together(browse, topics):
    _, trends, page = dated_page(topics)
    assert [change.topic for change in trends.emerging()] == [3]
    program = """
        const html = document.documentElement;
        say.alarm = $('.changes .emerging').textContent;
        say.layers = $$('.stream .layer').length;
        const slider = $('#period'); slider.value = '25'; slider.dispatchEvent(new Event('input', {bubbles: true}));
        slider.dispatchEvent(new Event('change', {bubbles: true})); await wait();
        say.hash = location.hash; say.first = $('.period-topics tbody tr').dataset.node;
        $('.period-topics .more').click(); await wait();
        say.view = html.dataset.view; say.week = html.dataset.documents;
        location.hash = '#view=documents&node=3'; await wait(); say.topic = html.dataset.documents;
        location.hash = '#view=documents&find=zebra3'; await wait(); say.words = html.dataset.documents;
        say.head = $('.browse-head').textContent; say.left = $('.left-out').textContent;
        $('.browse summary').click(); await wait(); say.excerpt = $('.browse details p').textContent;
        $('#order').value = 'new'; $('#order').dispatchEvent(new Event('change')); await wait();
        say.newest = $('.browse summary small').textContent;
        key(document.body, 'Escape'); await wait(); say.cleared = location.hash;
    """
    _, _, said = browse(page, "#view=time", program)
    assert "since 2024-06-" in said["alarm"]
    assert said["layers"] == 8
    assert (said["hash"], said["first"]) == ("#view=time&time=25", "3")
    assert (said["view"], said["week"]) == ("documents", "10")
    assert int(said["topic"]) >= 60
    assert int(said["words"]) == 43
    assert said["head"] == "43 documents of 300"
    assert said["left"].startswith("All 300 documents are listed.")
    assert "zebra3" in said["excerpt"]
    assert said["newest"] == str(FIRST + 7 * 29)
    assert said["cleared"] == "#view=documents"


def test_weeks_without_documents_are_no_data(browse, topics):
    _, _, page = dated_page(topics, pause=3)
    program = """
        say.pale = $$('.stream .empty title').map((title) => title.textContent);
        say.notes = $$('.changes .note').map((note) => note.textContent).join(' ');
    """
    _, _, said = browse(page, "#view=time", program)
    assert said["pale"] == [f"{FIRST + 7 * week}: no documents" for week in (24, 25, 26)]
    assert "3 weeks without documents: pale." in said["notes"]


def test_the_search_finds_words_that_no_topic_lists_and_every_document(browse, topics):
    model = topics(5, 400, n_documents=30)
    index = DocumentIndex().add([f"letter {row}" for row in range(90)], [f"text with quagga{row}" for row in range(90)],
                                np.full((90, 5), 0.2))  # fmt: skip
    page = topic_report(model, n_words=5, documents=index)
    listed = set(data_of(page)["words"])
    word = next(word for word in model.vocabulary_ if word not in listed and len(word) == 7)
    program = """
        const html = document.documentElement, input = $('#find');
        const type = async (text) => {
            input.value = text; input.dispatchEvent(new Event('input', {bubbles: true})); await wait();
        };
        await type('WORD'); say.hits = Number(html.dataset.hits); say.words = html.dataset.words;
        say.shown = $$('#found a').map((one) => one.firstChild.textContent).includes('WORD');
        await type('quagga77'); say.texts = html.dataset.texts; say.box = $('#found').textContent;
        $$('#found a').pop().click(); await wait(); say.view = html.dataset.view;
        say.documents = html.dataset.documents;
        key(document.body, 'Escape'); await wait(); say.find = input.value;
    """.replace("WORD", word)
    _, _, said = browse(page, "", program)
    assert said["hits"] >= 1
    assert int(said["words"]) >= 1
    assert said["shown"]
    assert said["texts"] == "1"
    assert "letter 77" in said["box"]
    assert (said["view"], said["documents"], said["find"]) == ("documents", "1", "")


def test_edits_and_the_table_are_saved_as_files(browse, topics):
    model = topics(6, 100)
    program = """
        const saved = []; window.Blob = function (parts) { this.text = parts.join(''); };
        URL.createObjectURL = (blob) => { saved.push(blob.text); return 'blob:none'; };
        HTMLAnchorElement.prototype.click = function () { say.name = this.download; };
        location.hash = '#node=3'; await wait();
        $('#new-name').value = 'Zebras, "and" more'; $('#rename').click(); await wait();
        say.title = $('#topic h2').textContent;
        $('#merge-with').value = '1'; $('#merge-with').dispatchEvent(new Event('change')); await wait();
        location.hash = '#node=2'; await wait(); $('#drop').click(); await wait();
        $('#drop').click(); await wait();
        key(document.body, 'Escape'); await wait();
        $$('#edits li button').pop().click(); await wait(); say.count = document.documentElement.dataset.edits;
        say.struck = $$('.outline .struck').map((one) => one.dataset.node);
        $('#save-edits').click(); say.edits = saved[0]; say.file = say.name;
        $('#tab-table').click(); await wait(); $('#save-table').click(); say.table = saved[1];
    """
    _, _, said = browse(topic_report(model, scores={"coherence": np.linspace(-0.1, 0.1, 6)}), "", program)
    assert said["title"] == 'Zebras, "and" more'
    assert json.loads(said["edits"]) == {
        "edits": [
            {"edit": "rename", "topic": 3, "name": 'Zebras, "and" more'},
            {"edit": "merge", "topics": [3, 1]},
            {"edit": "drop", "topic": 2},
        ]
    }
    assert (said["file"], said["name"], said["count"]) == ("edits.json", "topics.csv", "3")
    assert sorted(said["struck"]) == ["1", "2"]
    rows = list(csv.DictReader(io.StringIO(said["table"].lstrip("\ufeff"))))
    assert [int(row["topic"]) for row in rows] == np.argsort(-model.topic_weight_, kind="stable").tolist()
    (named,) = [row for row in rows if row["topic"] == "3"]
    assert named["name"] == 'Zebras, "and" more'
    assert float(named["coherence"]) == pytest.approx(0.02)
    assert named["words"].split()[0] == model.top_words(1)[3][0]


def test_small_topics_and_weak_edges_can_be_hidden(browse, topics):
    model = topics(40, kind="graph")
    program = """
        const seen = (what) => $$('#view-graph ' + what).filter((one) => one.style.display !== 'none').length;
        const set = async (name, value) => {
            const one = $('#least-' + name); one.value = value;
            one.dispatchEvent(new Event('input', {bubbles: true})); await wait();
        };
        say.part = [seen('a.node'), seen('.edge')]; $('#readable').click(); await wait();
        say.all = [seen('a.node'), seen('.edge')];
        await set('edge', '9'); say.strong = [seen('a.node'), seen('.edge')];
        await set('topic', '6'); say.large = [seen('a.node'), seen('.edge')];
        say.hidden = document.documentElement.dataset.hidden;
        await set('topic', '0'); await set('edge', '0'); say.back = [seen('a.node'), seen('.edge')];
    """
    _, _, said = browse(topic_report(model), "", program)
    graph = model.topic_graph()
    part = graph.readable()
    assert said["part"] == [len(part.nodes), len(part.edges)]
    assert said["all"] == said["back"] == [40, len(graph.edges)]
    strongest = {(*graph.parents(node.index)[:1], node.index) for node in graph.nodes if graph.parents(node.index)}
    strong = sum(edge.weight >= 0.5 or (edge.parent, edge.child) in strongest for edge in graph.edges)
    assert said["strong"] == [40, strong]
    assert said["large"][0] == 40 - int(said["hidden"]) < 40
    assert said["large"][1] >= said["large"][0] - len(graph.roots())
