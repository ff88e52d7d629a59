"""The page in a browser: what it shows for an address, and what keys and clicks do."""

from __future__ import annotations

import json
import re

import numpy as np

from pluri.report import topic_report

BAD = (
    "<script>document.documentElement.dataset.ran='yes'</script><img src=x onerror=\"document.body.dataset.ran='yes'\">"
)


def test_an_address_opens_a_topic_and_text_is_never_run(browse, given):
    model = given([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], [0.6, 0.4], words=["ice", BAD, "<b>bat</b>"])
    model.shares_ = np.array([[0.9, 0.1], [0.2, 0.8]])
    model.keep_examples(None, [BAD, "plain"], [BAD, "text"])
    attributes, document, _ = browse(topic_report(model, title=BAD), "#node=1&find=ice")
    assert attributes["data-node"] == "1"
    assert attributes["data-view"] == "map"
    assert attributes["data-hits"] == "2"
    assert "data-ran" not in document.split("<body>")[0]
    assert 'data-ran="yes"' not in document
    panel = re.search(r'<section id="topic".*?</section>', document, re.DOTALL)[0]
    assert "&lt;b&gt;bat&lt;/b&gt;" in panel
    assert "All topics" in panel


def test_an_address_that_means_nothing_opens_the_page_as_it_is(browse, topics):
    attributes, document, _ = browse(topic_report(topics(4)), "#node=77&view=none&lambda=9&find=%ZZ&&=")
    assert attributes["data-node"] == ""
    assert '<section id="topic" aria-live="polite" hidden' in document


def test_words_are_ordered_by_relevance_for_the_chosen_weight(browse, topics):
    model = topics(5, 100)
    marginal = model.topic_weight_ @ model.topic_word_
    row = model.topic_word_[2]
    page = topic_report(model, n_words=8)
    for weight in (1.0, 0.3):
        relevance = weight * np.log(row) + (1 - weight) * np.log(row / marginal)
        expected = [f"word{column}" for column in np.argsort(-relevance)[:8]]
        _, document, _ = browse(page, f"#node=2&lambda={weight}")
        listed = re.search(r'<ul class="words">.*?</ul>', document, re.DOTALL)[0]
        assert re.findall(r"<button[^>]*>([^<]+)</button>", listed) == expected


def test_clicks_keys_and_the_search_lead_through_the_page(browse, topics):
    model = topics(14, kind="tree", n_documents=20)
    children = model.topic_graph().children(0)
    program = """
        const html = document.documentElement;
        $('#view-graph a[data-node="3"]').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}));
        await wait(); say.clicked = html.dataset.node; say.hash = location.hash;
        $('#topic .documents details').open = true; say.excerpt = $('#topic .documents p').textContent.slice(0, 4);
        $('#tab-outline').click(); await wait(); say.view = html.dataset.view; say.kept = html.dataset.node;
        const top = $('.outline li'); top.focus(); key(top, 'ArrowRight'); key(document.activeElement, 'ArrowRight');
        say.focused = document.activeElement.dataset.node; key(document.activeElement, 'Enter');
        await wait(); say.entered = html.dataset.node;
        key(document.activeElement, 'Escape'); await wait(); say.left = html.dataset.node;
        key(document.body, '/'); say.searching = document.activeElement.id;
        const input = $('#find'); input.value = 'word1'; input.dispatchEvent(new Event('input', {bubbles: true}));
        await wait(); say.hits = Number(html.dataset.hits); say.listed = $$('#found a.of-topic').length;
        key(input, 'Enter'); await wait(); say.best = html.dataset.node;
        $('#tab-table').click(); await wait();
        $('th[data-sort] button').click(); say.first = $('.topic-table tbody tr').dataset.node;
        $('.topic-table tbody tr').click(); await wait(); say.row = html.dataset.node;
        history.back(); await wait(); say.back = html.dataset.node;
    """
    _, _, said = browse(topic_report(model), "", program)
    assert said["clicked"] == "3"
    assert said["hash"] == "#node=3"
    assert said["excerpt"] == "word"
    assert (said["view"], said["kept"]) == ("outline", "3")
    assert said["focused"] == said["entered"] == str(children[0])
    assert (said["left"], said["searching"]) == ("", "find")
    data = json.loads(re.search(r'id="data">(.*?)</script>', topic_report(model), re.DOTALL)[1])
    score = {
        node["index"]: sum(p for place, p in zip(node["words"], node["p"]) if data["words"][place].startswith("word1"))
        for node in data["nodes"]
    }
    assert said["hits"] == sum(value > 0 for value in score.values())
    assert said["listed"] == min(12, said["hits"])
    assert said["best"] == str(max(score, key=score.get))
    assert (said["first"], said["row"]) == ("13", "13")
    assert said["back"] == said["best"]


def test_branches_of_a_large_graph_are_folded_and_open_where_a_topic_is_chosen(browse, topics):
    model = topics(200, kind="graph")
    graph = model.topic_graph()
    deepest = max(graph.nodes, key=lambda node: node.depth).index
    program = f"""
        const html = document.documentElement;
        const shown = () => $$('#view-graph a.node').filter((node) => node.style.display !== 'none').length;
        say.part = shown(); $('#readable').click(); await wait(); say.more = shown();
        $('#readable').click(); await wait(); say.again = shown(); $('#readable').click(); await wait();
        say.folded = shown();
        say.lines = $$('#view-graph .edge').filter((edge) => edge.style.display !== 'none').length;
        location.hash = '#node={deepest}'; await wait();
        say.opened = $('#view-graph a[data-node="{deepest}"]').style.display !== 'none';
        $('[data-zoom=fold]').click(); await wait(); say.all = shown();
        say.edges = $$('#view-graph .edge').filter((edge) => edge.style.display !== 'none').length;
        const badge = $('#view-graph a[data-node="0"] .badge');
        badge.dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true}})); await wait();
        say.root = shown(); say.still = html.dataset.node;
    """
    _, _, said = browse(topic_report(model), "", program)
    assert said["part"] == said["again"] == len(graph.readable().nodes)
    assert said["more"] == said["folded"]
    assert 1 < said["folded"] < 200
    assert said["lines"] >= said["folded"] - 1
    assert said["opened"] is True
    assert (said["all"], said["edges"]) == (200, len(graph.edges))
    assert said["root"] == len(graph.roots())
    assert said["still"] == str(deepest)
