"""``pluri report``: saved models as pages."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cli.describing import naming
from pluri.embedding import SNE
from pluri.io import save
from pluri.mixtures import GaussianMixture
from pluri.report import model_report, topic_report
from pluri.topics import LatentDirichletAllocation


def run(*arguments, code=0):
    result = CliRunner().invoke(application, ["report", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def topics():
    counts = np.random.default_rng(0).poisson(1.0, (30, 12))
    model = LatentDirichletAllocation(3, max_iter=100, random_state=0).fit(counts)
    model.name_words([f"word{column}" for column in range(12)])
    return model.keep_examples(counts, [f"letter {row} <b>" for row in range(30)], ["a text"] * 30)


def test_a_topic_model_is_shown_with_what_was_noted_of_it(topics, tmp_path):
    notes = {"corpus": "letters", "documents": 30, "coherence": [0.1, 0.2, 0.3]}
    save(topics, tmp_path / "model.skops", notes=notes)
    result = run(tmp_path / "model.skops")
    page = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert f"page written to {tmp_path / 'model.html'}" in result.stderr
    facts = {"corpus": "letters", "documents": 30}
    scores = {"coherence": notes["coherence"]}
    assert page == topic_report(topics, title="Topics of letters", facts=facts, scores=scores)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert {title for title, _ in data["documents"]} <= {f"letter {row} <b>" for row in range(30)}
    save(topics, tmp_path / "bare.skops", notes={"coherence": [1.0]})  # of other topics
    run(tmp_path / "bare.skops", "-o", tmp_path / "page.html", "--title", "Mine & yours")
    assert "<title>Mine &amp; yours</title>" in (tmp_path / "page.html").read_text()
    assert "coherence" not in (tmp_path / "page.html").read_text().split('id="data"')[0]


def test_other_models_are_shown_plainly(tmp_path):
    model = GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(40, 2)))
    save(model, tmp_path / "model.skops")
    run(tmp_path / "model.skops", "-o", tmp_path / "page.html", "--title", "Two")
    assert (tmp_path / "page.html").read_text() == model_report(model, title="Two")


def test_the_page_is_opened_only_if_asked(topics, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    save(topics, tmp_path / "model.skops")
    run(tmp_path / "model.skops")
    assert opened == []
    run(tmp_path / "model.skops", "--open", "--force")
    assert opened == [(tmp_path / "model.html").absolute().as_uri()]


def test_mistakes_get_a_sentence(topics, tmp_path):
    save(topics, tmp_path / "model.skops")
    (tmp_path / "model.html").write_text("precious")
    assert "which exists" in run(tmp_path / "model.skops", code=2).stderr
    assert (tmp_path / "model.html").read_text() == "precious"
    assert "path must name an existing model file" in run(tmp_path / "absent.skops", code=1).stderr
    (tmp_path / "text.skops").write_text("no model")
    failed = run(tmp_path / "text.skops", code=1)
    assert "it is not a zip archive" in failed.stderr
    assert "Traceback" not in failed.stderr
    save(GaussianMixture(2), tmp_path / "unfitted.skops")
    assert "is not fitted yet" in run(tmp_path / "unfitted.skops", code=1).stderr
    assert not (tmp_path / "unfitted.html").exists()


def test_rows_of_a_file_are_drawn_by_the_columns_of_the_fit(tmp_path):
    X = np.concatenate([np.random.default_rng(0).normal(center, 1.0, (40, 2)) for center in (0, 6)])
    model = GaussianMixture(2, random_state=0).fit(X)
    save(model, tmp_path / "model.skops", notes={"columns": ["a", "b"]})
    rows = np.column_stack([np.arange(80), X])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="number,a,b", comments="")
    run(tmp_path / "model.skops", tmp_path / "rows.csv")
    with naming(model, ["a", "b"]), pytest.warns(UserWarning, match="valid feature names"):
        assert (tmp_path / "model.html").read_text() == model_report(model, X=X)
    result = run(tmp_path / "model.skops", tmp_path / "rows.csv", "--columns", "number", "--force", code=1)
    assert "features" in result.stderr


def test_rows_beside_a_map_of_its_own_are_refused_by_the_name_of_the_argument(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    save(SNE(perplexity=5, random_state=0).fit(X), tmp_path / "map.skops")
    np.save(tmp_path / "rows.npy", X)
    told = run(tmp_path / "map.skops", tmp_path / "rows.npy", "-o", tmp_path / "page.html", code=1).stderr
    assert "DATA must not be given for SNE, whose page holds the data of its fit" in told
